//! `skynet`: a tree of actors in which each inner actor has ten children.

use thalweg_peers::tokio_beyond;
use thalweg_runtime::spawn;

use crate::cell::Cell;
use crate::problem::Problem;
use crate::workloads::Workload;

use super::driver::{open, run};
use super::pair::{ENDS, Pair, same, sum_below};
use super::point::knobs;

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "skynet",
    group: "runtime",
    what: "A tree of actors with ten children each; the numbers of the leaves are added up on the way back.",
    source: "the benchmark of this name that many runtimes quote: a million leaves; here 100,000, a power of ten may be set",
    peers: &["tokio_current_thread", "tokio_multi_thread"],
    seconds: 30,
    run: run::<Skynet>,
    knobs: knobs![("actors", "100000", "leaves, a power of ten")],
    cells: Some(open::<Skynet>),
};

/// See [`WORKLOAD`].
#[derive(Clone, Copy, Debug)]
pub struct Skynet(u64);

impl Pair for Skynet {
    const WORKLOAD: &'static Workload = &WORKLOAD;
    const CHECKED: &'static str = "an operation is a leaf; the sum of the leaves' numbers";
    type Found = u64;

    fn of(cell: &Cell) -> Result<Self, Problem> {
        let leaves = cell.number("actors")?;
        if 10_u64.checked_pow(leaves.max(1).ilog10()) == Some(leaves) {
            return Ok(Self(leaves));
        }
        Err(Problem::Usage(format!(
            "skynet: `actors` is a power of ten, not {leaves}"
        )))
    }

    fn operations(self) -> u64 {
        self.0
    }

    fn ours(self) -> u64 {
        below(0, self.0)
    }

    fn tokio(self) -> impl Future<Output = u64> + Send + 'static {
        tokio_beyond::skynet(0, self.0)
    }

    fn check(self, found: &u64) -> Result<(), String> {
        same("sum of the leaves", *found, sum_below(self.0))
    }
}

fn below(first: u64, leaves: u64) -> u64 {
    if leaves == 1 {
        return first;
    }
    let part = leaves / 10;
    let children: Vec<_> = (0..10)
        .map(|child| spawn(move || below(first + child * part, part)))
        .collect();
    children
        .into_iter()
        .map(|child| child.join().expect(ENDS))
        .sum()
}
