//! `chained_spawn`, `ping_pong_oneshot`, `spawn_storm_busy`: short-lived actors.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use thalweg::queue::oneshot;
use thalweg_peers::tokio_runtime;
use thalweg_runtime::{JoinHandle, spawn, yield_now};

use crate::cell::Cell;
use crate::problem::Problem;
use crate::workloads::Workload;

use super::driver::{open, run};
use super::pair::{ENDS, Pair, same, sum_below};
use super::point::knobs;

/// Spawns and joins an actor, repeatedly.
pub const CHAINED_SPAWN: Workload = Workload {
    name: "chained_spawn",
    group: "runtime",
    what: "Actors are spawned and joined, one after another: the cost of the shortest possible actor.",
    source: "smarm's benchmark of this name: 1,000 times spawn and join",
    peers: &["tokio_current_thread", "tokio_multi_thread"],
    seconds: 15,
    run: run::<ChainedSpawn>,
    knobs: knobs![(
        "actors",
        "1000",
        "actors that are spawned, one after another"
    )],
    cells: Some(open::<ChainedSpawn>),
};

/// See [`CHAINED_SPAWN`].
#[derive(Clone, Copy, Debug)]
pub struct ChainedSpawn(u64);

impl Pair for ChainedSpawn {
    const WORKLOAD: &'static Workload = &CHAINED_SPAWN;
    const BARS: Option<(f64, f64)> = Some((0.5, 0.5));
    const CHECKED: &'static str =
        "an operation is a spawn and its join; the sum of what the actors returned";
    type Found = u64;

    fn of(cell: &Cell) -> Result<Self, Problem> {
        cell.number("actors").map(Self)
    }

    fn operations(self) -> u64 {
        self.0
    }

    fn ours(self) -> u64 {
        (0..self.0)
            .map(|number| spawn(move || number).join().expect(ENDS))
            .sum()
    }

    fn tokio(self) -> impl Future<Output = u64> + Send + 'static {
        tokio_runtime::chained_spawn(self.0)
    }

    fn check(self, found: &u64) -> Result<(), String> {
        same("sum of the actors' numbers", *found, sum_below(self.0))
    }
}

/// Asks a new actor a question, and receives its answer.
pub const PING_PONG_ONESHOT: Workload = Workload {
    name: "ping_pong_oneshot",
    what: "A new actor each round, asked over one oneshot channel and answering over another.",
    source: "smarm's benchmark of this name: 1,000 rounds",
    run: run::<PingPong>,
    knobs: knobs![(
        "rounds",
        "1000",
        "actors that are spawned, asked and heard, one after another"
    )],
    cells: Some(open::<PingPong>),
    ..CHAINED_SPAWN
};

/// See [`PING_PONG_ONESHOT`].
#[derive(Clone, Copy, Debug)]
pub struct PingPong(u64);

impl Pair for PingPong {
    const WORKLOAD: &'static Workload = &PING_PONG_ONESHOT;
    const BARS: Option<(f64, f64)> = Some((0.65, 0.65));
    const CHECKED: &'static str =
        "an operation is a round: two oneshots, a spawn, there and back; the sum of the answers";
    type Found = u64;

    fn of(cell: &Cell) -> Result<Self, Problem> {
        cell.number("rounds").map(Self)
    }

    fn operations(self) -> u64 {
        self.0
    }

    fn ours(self) -> u64 {
        let mut sum = 0;
        for number in 0..self.0 {
            let (ask, asked) = oneshot::channel();
            let (answer, answered) = oneshot::channel();
            drop(spawn(move || {
                let number: u64 = asked.recv().expect(ENDS);
                answer.send(number + 1).expect(ENDS);
            }));
            ask.send(number).expect(ENDS);
            sum += answered.recv().expect(ENDS);
        }
        sum
    }

    fn tokio(self) -> impl Future<Output = u64> + Send + 'static {
        tokio_runtime::ping_pong_oneshot(self.0)
    }

    fn check(self, found: &u64) -> Result<(), String> {
        same("sum of the answers", *found, sum_below(self.0) + self.0)
    }
}

/// Spawns many short-lived actors while a few long-lived ones yield.
pub const SPAWN_STORM_BUSY: Workload = Workload {
    name: "spawn_storm_busy",
    what: "Actors are spawned and joined in blocks of 64 while others yield; no block begins before each of the others has run since the previous block began.",
    source: "smarm's benchmark of this name: 10,000 actors while 8 yield in the background",
    run: run::<SpawnStorm>,
    knobs: knobs![
        (
            "actors",
            "10000",
            "actors that are spawned, a block at a time"
        ),
        ("yielders", "8", "actors that yield in the background")
    ],
    cells: Some(open::<SpawnStorm>),
    ..CHAINED_SPAWN
};

/// Actors that are spawned before the first of them is joined.
const BLOCK: u64 = 64;

/// See [`SPAWN_STORM_BUSY`].
#[derive(Clone, Copy, Debug)]
pub struct SpawnStorm {
    actors: u64,
    yielders: u64,
}

impl Pair for SpawnStorm {
    const WORKLOAD: &'static Workload = &SPAWN_STORM_BUSY;
    const BARS: Option<(f64, f64)> = Some((0.65, 0.8));
    const CHECKED: &'static str = "an operation is a spawn and its join; the sum of what the actors returned; each yielder ran at least once per 64 spawns, for which the spawner yields until it has, on both sides";
    /// The sum of the numbers, how often each yielder ran, and how often the spawner yielded for
    /// them.
    type Found = (u64, Vec<u64>, u64);

    fn of(cell: &Cell) -> Result<Self, Problem> {
        Ok(Self {
            actors: cell.number("actors")?,
            yielders: cell.number("yielders")?,
        })
    }

    fn operations(self) -> u64 {
        self.actors
    }

    fn ours(self) -> Self::Found {
        let stop = Arc::new(AtomicBool::new(false));
        let turns: Vec<_> = (0..self.yielders)
            .map(|_| Arc::new(AtomicU64::new(0)))
            .collect();
        let yielding = |turns: &Arc<AtomicU64>| {
            let (stop, turns) = (Arc::clone(&stop), Arc::clone(turns));
            spawn(move || yield_until(&stop, &turns))
        };
        let background: Vec<_> = turns.iter().map(yielding).collect();
        let (mut sum, mut waited) = (0, 0);
        for first in (0..self.actors).step_by(BLOCK as usize) {
            let before: Vec<u64> = turns
                .iter()
                .map(|turns| turns.load(Ordering::Relaxed))
                .collect();
            let numbers = first..(first + BLOCK).min(self.actors);
            let spawned: Vec<_> = numbers.map(|number| spawn(move || number)).collect();
            sum += joined(spawned).sum::<u64>();
            for (turns, before) in turns.iter().zip(before) {
                while turns.load(Ordering::Relaxed) == before {
                    waited += 1;
                    yield_now();
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        let _yielders = joined(background).count();
        let turns = turns.iter().map(|turns| turns.load(Ordering::Relaxed));
        (sum, turns.collect(), waited)
    }

    fn tokio(self) -> impl Future<Output = Self::Found> + Send + 'static {
        tokio_runtime::spawn_storm_busy(self.actors, BLOCK, self.yielders)
    }

    fn check(self, (sum, turns, _): &Self::Found) -> Result<(), String> {
        same("sum of the actors' numbers", *sum, sum_below(self.actors))?;
        same("yielders", turns.len() as u64, self.yielders)?;
        let due = self.actors.div_ceil(BLOCK);
        match turns.iter().min() {
            Some(fewest) if *fewest < due => Err(format!(
                "a yielder had {fewest} turns, and {due} were due: {turns:?}"
            )),
            _ => Ok(()),
        }
    }

    fn metrics(self, (_, turns, waited): &Self::Found) -> Vec<(&'static str, f64)> {
        let fewest = turns.iter().min().copied().unwrap_or_default();
        vec![
            ("fewest_turns", fewest as f64),
            ("yielded_for_turns", *waited as f64),
        ]
    }
}

fn yield_until(stop: &AtomicBool, turns: &AtomicU64) {
    let mut so_far = 0;
    while !stop.load(Ordering::Relaxed) {
        so_far += 1;
        turns.store(so_far, Ordering::Relaxed);
        yield_now();
    }
}

fn joined<T>(actors: Vec<JoinHandle<T>>) -> impl Iterator<Item = T> {
    actors.into_iter().map(|actor| actor.join().expect(ENDS))
}
