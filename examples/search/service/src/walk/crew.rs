//! The two things a search asks of its surroundings: where its jobs run, and where its lines go.

use std::fmt;

use super::Hit;

/// The search ends here: the call was cancelled, its deadline passed, or nobody reads any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop;

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the search was stopped")
    }
}

impl std::error::Error for Stop {}

/// Who does the work. A search has no thread of its own: its jobs run on the workers of the runtime that
/// the call came in on, or on whatever threads a caller of [`start`](super::start) offers.
pub trait Crew: Clone + Send + 'static {
    /// Runs `job` soon, beside the caller. A crew that shuts down may drop the job instead.
    fn spawn(&self, job: impl FnOnce(&Self) + Send + 'static);

    /// Called between files, and every [`CHECK_BYTES`](super::CHECK_BYTES) inside one. The place to let
    /// others run.
    ///
    /// # Errors
    /// [`Stop`]: the whole search ends, lines that were found so far stay delivered.
    fn check(&self) -> Result<(), Stop>;

    /// How many jobs can run at once; a search never has more than this under way.
    fn workers(&self) -> usize;
}

/// Where the lines of one searcher go. A search makes at most [`Crew::workers`] of them and uses each
/// from one job at a time, so a sink needs no lock.
pub trait Sink: Send + 'static {
    /// Whether it wants the lines. Where it does not, lines are only counted, which saves numbering
    /// them and looking for their columns.
    const LINES: bool = true;

    /// Takes one line. What it borrows is gone when this returns. It may park: that is how a slow
    /// reader stops the walk.
    ///
    /// # Errors
    /// [`Stop`] when nobody wants more.
    fn hit(&mut self, hit: &Hit<'_>) -> Result<(), Stop>;

    /// Nothing more comes, and nothing is missing. Not called where the search was stopped.
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
