//! The environment of a search: where its jobs run, and where its lines go.

use std::fmt;

use super::Hit;

/// The search ends: the call was cancelled, its deadline passed, or the reader is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop;

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the search was stopped")
    }
}

impl std::error::Error for Stop {}

/// The workers of a search. A search has no thread of its own: its jobs run on the workers of the
/// call's runtime, or on threads that a caller of [`start`](super::start) provides.
pub trait Crew: Clone + Send + 'static {
    /// Runs `job` soon, beside the caller. A crew that shuts down may drop the job instead.
    fn spawn(&self, job: impl FnOnce(&Self) + Send + 'static);

    /// Called between files, and every [`CHECK_BYTES`](super::CHECK_BYTES) inside one. The place to
    /// let others run.
    ///
    /// # Errors
    /// [`Stop`]: the whole search ends, lines that were found so far stay delivered.
    fn check(&self) -> Result<(), Stop>;

    /// The maximum number of jobs that run at the same time.
    fn workers(&self) -> usize;
}

/// Where the lines of one searcher go. A search makes at most [`Crew::workers`] of them and uses
/// each from one job at a time, so a sink needs no lock.
pub trait Sink: Send + 'static {
    /// Whether it uses the lines. If not, lines are only counted, which saves their numbers and
    /// columns.
    const LINES: bool = true;

    /// Takes one line, which it may borrow only until it returns. It may park: a slow reader stops
    /// the walk in this way.
    ///
    /// # Errors
    /// [`Stop`] if the reader is closed.
    fn hit(&mut self, hit: &Hit<'_>) -> Result<(), Stop>;

    /// All lines were sent. It is not called if the search was stopped.
    fn finish(self)
    where
        Self: Sized,
    {
    }
}

impl<F> Sink for F
where
    F: FnMut(&Hit<'_>) -> Result<(), Stop> + Send + 'static,
{
    fn hit(&mut self, hit: &Hit<'_>) -> Result<(), Stop> {
        self(hit)
    }
}

/// The sink of a search that only counts.
#[derive(Clone, Copy, Debug)]
pub struct CountOnly;

impl Sink for CountOnly {
    const LINES: bool = false;

    fn hit(&mut self, _: &Hit<'_>) -> Result<(), Stop> {
        Ok(())
    }
}
