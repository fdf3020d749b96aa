//! `supervised_spawn`: what it costs that somebody hears of an actor's end.

use thalweg_peers::tokio_beyond;
use thalweg_runtime::{Signal, channel, spawn, spawn_under};

use crate::cell::Cell;
use crate::judgement::Target;
use crate::problem::Problem;
use crate::workloads::Workload;

use super::driver::{open, run};
use super::pair::{ENDS, Pair, same};
use super::point::{Point, knobs};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "supervised_spawn",
    group: "runtime",
    what: "Actors that end well, all spawned and then all heard of: by a supervisor, against ours that are joined, and tokio's.",
    source: "smarm's claim that supervision costs nothing",
    peers: &["thalweg@bare", "tokio_current_thread", "tokio_multi_thread"],
    seconds: 20,
    run: run::<Supervision>,
    knobs: knobs![(
        "actors",
        "10000",
        "actors that are spawned before the first is heard of"
    )],
    cells: Some(open::<Supervision>),
};

/// See [`WORKLOAD`].
#[derive(Clone, Copy, Debug)]
pub struct Supervision {
    actors: u64,
    supervised: bool,
}

impl Pair for Supervision {
    const WORKLOAD: &'static Workload = &WORKLOAD;
    const CHECKED: &'static str =
        "an operation is a spawn and the news of its end; as many ended well as were spawned";
    const OTHER_FORM: Option<&'static str> = Some("thalweg@bare");
    type Found = u64;

    fn of(cell: &Cell) -> Result<Self, Problem> {
        Ok(Self {
            actors: cell.number("actors")?,
            supervised: true,
        })
    }

    fn other_form(self) -> Self {
        Self {
            supervised: false,
            ..self
        }
    }

    fn operations(self) -> u64 {
        self.actors
    }

    fn ours(self) -> u64 {
        if !self.supervised {
            let actors: Vec<_> = (0..self.actors).map(|_| spawn(|| ())).collect();
            return actors.into_iter().filter_map(|one| one.join().ok()).count() as u64;
        }
        let (supervisor, signals) = channel();
        for _ in 0..self.actors {
            drop(spawn_under(supervisor.clone(), || ()));
        }
        (0..self.actors)
            .map(|_| signals.recv().expect(ENDS))
            .filter(|signal| matches!(signal, Signal::Exit(_)))
            .count() as u64
    }

    fn tokio(self) -> impl Future<Output = u64> + Send + 'static {
        tokio_beyond::all_joined(self.actors)
    }

    fn check(self, found: &u64) -> Result<(), String> {
        same("actors that ended well", *found, self.actors)
    }

    fn target(self, _: Point) -> Option<Target> {
        None
    }
}
