//! The same work on two sides: the description of a workload.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use crate::cell::Cell;
use crate::judgement::Target;
use crate::latency::Latencies;
use crate::problem::Problem;
use crate::workloads::Workload;

use super::point::Point;

/// The message for joining an actor that is not expected to panic.
pub const ENDS: &str = "an actor that nobody told to panic ends well";

/// The future result of a run by an actor library.
pub type Found<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// One workload, with its sizes.
pub trait Pair: Copy + Send + 'static {
    /// Its description.
    const WORKLOAD: &'static Workload;
    /// The meaning of an operation, and the checks.
    const CHECKED: &'static str;
    /// The name of another form of our own side, if the row is also compared with that.
    const OTHER_FORM: Option<&'static str> = None;
    /// The result of a run.
    type Found: Send + 'static;

    /// The sizes in `cell`.
    ///
    /// # Errors
    /// A size is missing, or is not a number.
    fn of(cell: &Cell) -> Result<Self, Problem>;

    /// See [`Pair::OTHER_FORM`].
    #[must_use]
    fn other_form(self) -> Self {
        self
    }

    /// The actor libraries on tokio that the row is compared with, instead of tokio's own tasks.
    #[must_use]
    fn libraries(self) -> &'static [&'static str] {
        &[]
    }

    /// The number of operations in a run.
    fn operations(self) -> u64;

    /// Runs once, in an actor.
    fn ours(self) -> Self::Found;

    /// Runs once, in a tokio task.
    fn tokio(self) -> impl Future<Output = Self::Found> + Send + 'static;

    /// Runs once with one of [`Pair::libraries`], in a tokio task.
    fn library(self, name: &str) -> Found<Self::Found> {
        unreachable!("{name} is none of the libraries")
    }

    /// Checks the result of a run.
    ///
    /// # Errors
    /// The result is wrong; the message contains the actual and the expected result.
    fn check(self, found: &Self::Found) -> Result<(), String>;

    /// Records the latencies of single operations in a run.
    fn record(_found: &Self::Found, _latencies: &mut Latencies) {}

    /// Further metrics of a run, by name; a sample has the median of its runs.
    fn metrics(self, _found: &Self::Found) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// The limits of the ratio on one worker and on two, if there are any.
    const BARS: Option<(f64, f64)> = None;

    /// The target of the row at `point`.
    fn target(self, point: Point) -> Option<Target> {
        let (one, two) = Self::BARS?;
        point.bars(one, two)
    }
}

/// Checks that `found` equals `due`.
///
/// # Errors
/// They differ.
pub fn same<T: PartialEq + Debug>(what: &str, found: T, due: T) -> Result<(), String> {
    if found == due {
        Ok(())
    } else {
        Err(format!("{what}: {found:?}, and {due:?} were due"))
    }
}

/// The sum of 0 .. `count`.
#[must_use]
pub fn sum_below(count: u64) -> u64 {
    (0..count).sum()
}
