//! `supervised_spawn`: the cost of notifying a supervisor of an actor's exit, against bare spawn.

use thalweg_peers::tokio_beyond;
use thalweg_runtime::{JoinSet, Signal, channel, spawn, spawn_under};

use crate::cell::Cell;
use crate::problem::Problem;
use crate::workloads::Workload;

use super::driver::{open, run};
use super::pair::{ENDS, Pair, same};
use super::point::{either, knobs};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "supervised_spawn",
    group: "runtime",
    what: "Actors that exit normally, all spawned first, then collected as they exit, against ours that are joined one after the other, and tokio's.",
    source: "smarm's claim that supervision costs nothing",
    peers: &["thalweg@bare", "tokio_current_thread", "tokio_multi_thread"],
    seconds: 20,
    run: run::<Supervision>,
    knobs: knobs![
        (
            "actors",
            "10000",
            "actors that are spawned before the first exit is received"
        ),
        (
            "by",
            "spawn_under,join_set",
            "how the exits are received: spawn_under: its signals on one channel, where tokio's tasks are joined in order; join_set: a JoinSet, as tokio's; as a list"
        )
    ],
    cells: Some(open::<Supervision>),
};

/// See [`WORKLOAD`].
#[derive(Clone, Copy, Debug)]
pub struct Supervision {
    actors: u64,
    by: By,
}

#[derive(Clone, Copy, Debug)]
enum By {
    Set,
    Channel,
    /// Ours without a supervisor.
    Handles,
}

impl Pair for Supervision {
    const WORKLOAD: &'static Workload = &WORKLOAD;
    const CHECKED: &'static str =
        "an operation is a spawn and the news of its end; as many ended well as were spawned";
    const OTHER_FORM: Option<&'static str> = Some("thalweg@bare");
    type Found = u64;

    fn of(cell: &Cell) -> Result<Self, Problem> {
        let by = match either(cell, "by", "join_set", "spawn_under")? {
            true => By::Set,
            false => By::Channel,
        };
        let actors = cell.number("actors")?;
        Ok(Self { actors, by })
    }

    fn other_form(self) -> Self {
        Self {
            by: By::Handles,
            ..self
        }
    }

    fn operations(self) -> u64 {
        self.actors
    }

    fn ours(self) -> u64 {
        match self.by {
            By::Handles => {
                let actors: Vec<_> = (0..self.actors).map(|_| spawn(|| ())).collect();
                let joined = actors.into_iter().filter_map(|one| one.join().ok());
                joined.count() as u64
            }
            By::Set => {
                let mut set: JoinSet<()> = JoinSet::new();
                for _ in 0..self.actors {
                    set.spawn(|| ());
                }
                let ends = std::iter::from_fn(|| set.join_next());
                ends.filter(|ended| ended.result.is_ok()).count() as u64
            }
            By::Channel => {
                let (supervisor, signals) = channel();
                for _ in 0..self.actors {
                    drop(spawn_under(supervisor.clone(), || ()));
                }
                (0..self.actors)
                    .map(|_| signals.recv().expect(ENDS))
                    .filter(|signal| matches!(signal, Signal::Exit(_)))
                    .count() as u64
            }
        }
    }

    async fn tokio(self) -> u64 {
        match self.by {
            By::Set => tokio_beyond::all_in_a_set(self.actors).await,
            By::Channel | By::Handles => tokio_beyond::all_joined(self.actors).await,
        }
    }

    fn check(self, found: &u64) -> Result<(), String> {
        same("actors that ended well", *found, self.actors)
    }
}
