//! `catch_unwind_panics`: actors that panic, and a supervisor that is notified of each panic.

use std::panic::panic_any;

use thalweg_peers::tokio_runtime;
use thalweg_runtime::{Signal, channel, spawn_under};

use crate::cell::Cell;
use crate::problem::Problem;
use crate::workloads::{Knob, Workload};

use super::driver::{open, run};
use super::pair::{ENDS, Pair, same};
use super::point::{DRIVERS, HOOK, LIFETIME, OWN, WORKERS};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "catch_unwind_panics",
    group: "runtime",
    what: "Actors panic, and their supervisor is notified of each: the cost of a panic without its message and backtrace.",
    source: "smarm's benchmark of this name: 10,000 panics, and tokio's 4.8 times as dear by what the hook prints",
    peers: &["tokio_current_thread", "tokio_multi_thread"],
    seconds: 120,
    run: run::<Panics>,
    knobs: &[
        LIFETIME,
        WORKERS,
        DRIVERS,
        Knob {
            default: "silent,default",
            ..HOOK
        },
        OWN[0],
        OWN[1],
        OWN[2],
        Knob {
            name: "actors",
            default: "10000",
            what: "actors that panic",
        },
    ],
    cells: Some(open::<Panics>),
};

/// The panic message. The silent hook recognises it.
pub const PLANNED: &str = "a planned panic";

/// See [`WORKLOAD`].
#[derive(Clone, Copy, Debug)]
pub struct Panics(u64);

impl Pair for Panics {
    const WORKLOAD: &'static Workload = &WORKLOAD;
    const BARS: Option<(f64, f64)> = Some((0.9, 0.5));
    const CHECKED: &'static str = "an operation is a spawn, its panic and the news of it, a signal or the JoinHandle's error; all were spawned before the first was heard of; the number of panics";
    type Found = u64;

    fn of(cell: &Cell) -> Result<Self, Problem> {
        cell.number("actors").map(Self)
    }

    fn operations(self) -> u64 {
        self.0
    }

    fn ours(self) -> u64 {
        let (supervisor, signals) = channel();
        for _ in 0..self.0 {
            drop(spawn_under(supervisor.clone(), panicking));
        }
        let signals = (0..self.0).map(|_| signals.recv().expect(ENDS));
        signals
            .filter(|signal| matches!(signal, Signal::Panic(..)))
            .count() as u64
    }

    fn tokio(self) -> impl Future<Output = u64> + Send + 'static {
        tokio_runtime::panics(self.0, panicking)
    }

    fn check(self, found: &u64) -> Result<(), String> {
        same("panics", *found, self.0)
    }
}

fn panicking() {
    panic_any(PLANNED)
}
