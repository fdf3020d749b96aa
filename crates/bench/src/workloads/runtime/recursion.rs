//! `deep_recursion`: a recursive function, which is plain calls on one side and boxed futures on
//! the other.

use std::hint::black_box;

use thalweg_peers::tokio_runtime;
use thalweg_runtime::spawn;

use crate::cell::Cell;
use crate::judgement::Target;
use crate::problem::Problem;
use crate::workloads::Workload;

use super::driver::{open, run};
use super::pair::{ENDS, Pair, same};
use super::point::{Point, either, knobs};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "deep_recursion",
    group: "runtime",
    what: "A recursion 500 levels deep, in one actor and with one actor per level; when cold, the runtime's start dominates.",
    source: "smarm's benchmark of this name: depth 500",
    peers: &["tokio_current_thread", "tokio_multi_thread"],
    seconds: 30,
    run: run::<DeepRecursion>,
    knobs: knobs![
        ("depth", "500", "levels"),
        (
            "form",
            "plain,actor_per_level",
            "plain: calls in one actor, boxed futures in one task; actor_per_level: an actor or task for each, joined by the one above; as a list"
        )
    ],
    cells: Some(open::<DeepRecursion>),
};

/// See [`WORKLOAD`].
#[derive(Clone, Copy, Debug)]
pub struct DeepRecursion {
    depth: u64,
    plain: bool,
}

impl Pair for DeepRecursion {
    const WORKLOAD: &'static Workload = &WORKLOAD;
    const CHECKED: &'static str = "an operation is a whole run; the depth that was reached";
    type Found = u64;

    fn of(cell: &Cell) -> Result<Self, Problem> {
        let plain = either(cell, "form", "plain", "actor_per_level")?;
        let depth = cell.number("depth")?;
        Ok(Self { depth, plain })
    }

    fn operations(self) -> u64 {
        1
    }

    fn ours(self) -> u64 {
        if self.plain {
            level(self.depth)
        } else {
            actor_per_level(self.depth)
        }
    }

    fn tokio(self) -> impl Future<Output = u64> + Send + 'static {
        if self.plain {
            tokio_runtime::recursion(self.depth)
        } else {
            tokio_runtime::task_per_level(self.depth)
        }
    }

    fn check(self, found: &u64) -> Result<(), String> {
        same("depth", *found, self.depth)
    }

    fn target(self, point: Point) -> Option<Target> {
        point.bars(0.8, 0.2).filter(|_| self.plain && point.cold)
    }
}

/// Each level has its own frame: the compiler cannot predict the depth or the result.
#[inline(never)]
fn level(depth: u64) -> u64 {
    match black_box(depth) {
        0 => 0,
        depth => 1 + black_box(level(depth - 1)),
    }
}

fn actor_per_level(depth: u64) -> u64 {
    match depth {
        0 => 0,
        _ => {
            1 + spawn(move || actor_per_level(depth - 1))
                .join()
                .expect(ENDS)
        }
    }
}
