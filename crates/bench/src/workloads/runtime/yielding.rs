//! `yield_many`, `yield_in_hot_loop`: actors that yield to each other, and one that has no other
//! actor to yield to.

use thalweg_peers::tokio_runtime;
use thalweg_runtime::{spawn, yield_now};

use crate::cell::Cell;
use crate::problem::Problem;
use crate::workloads::Workload;

use super::driver::{open, run};
use super::pair::{ENDS, Pair, same};
use super::point::knobs;

/// Many actors that take turns.
pub const YIELD_MANY: Workload = Workload {
    name: "yield_many",
    group: "runtime",
    what: "Actors that only yield to each other: the cost of a turn.",
    source: "smarm's benchmark of this name: of the order of 100,000 yields",
    peers: &["tokio_current_thread", "tokio_multi_thread"],
    seconds: 15,
    run: run::<Yields<false>>,
    knobs: knobs![
        ("actors", "200", "actors that yield"),
        ("yields", "1000", "yields of each")
    ],
    cells: Some(open::<Yields<false>>),
};

/// One actor that yields while no other wants to run.
pub const YIELD_IN_HOT_LOOP: Workload = Workload {
    name: "yield_in_hot_loop",
    what: "One actor that yields repeatedly while no other actor wants to run.",
    source: "smarm's benchmark of this name: 1,000,000 yields",
    seconds: 60,
    run: run::<Yields<true>>,
    knobs: knobs![
        ("actors", "1", "actors that yield"),
        ("yields", "1000000", "yields of each")
    ],
    cells: Some(open::<Yields<true>>),
    ..YIELD_MANY
};

/// Both workloads: they differ only in their sizes.
#[derive(Clone, Copy, Debug)]
pub struct Yields<const ALONE: bool> {
    actors: u64,
    yields: u64,
}

impl<const ALONE: bool> Pair for Yields<ALONE> {
    const WORKLOAD: &'static Workload = if ALONE {
        &YIELD_IN_HOT_LOOP
    } else {
        &YIELD_MANY
    };
    const BARS: Option<(f64, f64)> = Some(if ALONE { (0.15, 0.1) } else { (0.5, 0.5) });
    const CHECKED: &'static str = "an operation is a yield; how often all actors yielded";
    type Found = u64;

    fn of(cell: &Cell) -> Result<Self, Problem> {
        Ok(Self {
            actors: cell.number("actors")?,
            yields: cell.number("yields")?,
        })
    }

    fn operations(self) -> u64 {
        self.actors * self.yields
    }

    fn ours(self) -> u64 {
        let yielding = |_| {
            spawn(move || {
                let mut done = 0;
                while done < self.yields {
                    yield_now();
                    done += 1;
                }
                done
            })
        };
        let actors: Vec<_> = (0..self.actors).map(yielding).collect();
        actors
            .into_iter()
            .map(|actor| actor.join().expect(ENDS))
            .sum()
    }

    fn tokio(self) -> impl Future<Output = u64> + Send + 'static {
        tokio_runtime::yield_many(self.actors, self.yields)
    }

    fn check(self, found: &u64) -> Result<(), String> {
        same("yields", *found, self.operations())
    }
}
