//! The same work twice: what each workload says of itself.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use crate::cell::Cell;
use crate::judgement::Target;
use crate::latency::Latencies;
use crate::problem::Problem;
use crate::workloads::Workload;

use super::point::Point;

/// What a call says that cannot fail.
pub const ENDS: &str = "an actor that nobody told to panic ends well";

/// What a run by a library of actors finds.
pub type Found<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// One workload, with its sizes.
pub trait Pair: Copy + Send + 'static {
    /// Its description.
    const WORKLOAD: &'static Workload;
    /// What an operation is, and what is checked.
    const CHECKED: &'static str;
    /// How another form of our own side is called, where the row is held against that, too.
    const OTHER_FORM: Option<&'static str> = None;
    /// What a run finds.
    type Found: Send + 'static;

    /// The sizes of `cell`.
    ///
    /// # Errors
    /// One is missing, or is no number.
    fn of(cell: &Cell) -> Result<Self, Problem>;

    /// See [`Pair::OTHER_FORM`].
    #[must_use]
    fn other_form(self) -> Self {
        self
    }

    /// The libraries of actors on tokio that the row is held against, instead of tokio's own tasks.
    #[must_use]
    fn libraries(self) -> &'static [&'static str] {
        &[]
    }

    /// Operations of a run.
    fn operations(self) -> u64;

    /// One run, in an actor.
    fn ours(self) -> Self::Found;

    /// One run, in a task of tokio's.
    fn tokio(self) -> impl Future<Output = Self::Found> + Send + 'static;

    /// One run by one of [`Pair::libraries`], in a task of tokio's.
    fn library(self, name: &str) -> Found<Self::Found> {
        unreachable!("{name} is none of the libraries")
    }

    /// Whether a run found what it must.
    ///
    /// # Errors
    /// What it found, and what it must.
    fn check(self, found: &Self::Found) -> Result<(), String>;

    /// What a run found out about single operations.
    fn record(_found: &Self::Found, _latencies: &mut Latencies) {}

    /// What else a run found out, by name; a sample has the median of its runs.
    fn metrics(self, _found: &Self::Found) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// What the row at `point` must keep.
    fn target(self, point: Point) -> Option<Target>;
}

/// Whether `found` is what is `due`.
///
/// # Errors
/// It is not.
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
