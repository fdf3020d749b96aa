//! `wake`: a waiting actor is woken by an actor on its own worker, or by a thread.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::thread;
use std::time::Instant;

use thalweg_peers::tokio_beyond;
use thalweg_runtime::{spawn, wait};

use crate::cell::Cell;
use crate::judgement::Target;
use crate::problem::Problem;
use crate::workloads::Workload;

use super::driver::{open, run};
use super::pair::{ENDS, Pair, same};
use super::point::{Point, either, knobs};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "wake",
    group: "runtime",
    what: "From a wake-up until the woken actor runs: two actors take turns, or an actor and a thread that spins until it is its turn.",
    source: "the basis of every hand-off between actors",
    peers: &["tokio_current_thread", "tokio_multi_thread"],
    seconds: 40,
    run: run::<Waking>,
    knobs: knobs![
        ("rounds", "20000", "turns of each"),
        (
            "from",
            "actor,thread",
            "actor: two actors; thread: an actor and a thread; as a list"
        )
    ],
    cells: Some(open::<Waking>),
};

/// See [`WORKLOAD`].
#[derive(Clone, Copy, Debug)]
pub struct Waking {
    rounds: u64,
    by_thread: bool,
}

/// Two participants that take turns: the number of turns taken, and the wakers. The first
/// participant has the even turns.
#[derive(Debug, Default)]
pub struct Turns {
    taken: AtomicU64,
    waiting: [OnceLock<Waker>; 2],
}

impl Turns {
    fn is_of(&self, place: u64) -> bool {
        self.taken.load(Ordering::Acquire) % 2 == place
    }

    /// Ends the turn of participant `place`.
    fn pass(&self, place: u64) {
        self.taken.fetch_add(1, Ordering::AcqRel);
        // Pairs with the fence below: either this side sees the waker, or the other side sees the
        // turn.
        fence(Ordering::SeqCst);
        if let Some(other) = self.waiting[1 - place as usize].get() {
            other.wake_by_ref();
        }
    }

    fn register(&self, place: u64, waker: Waker) {
        self.waiting[place as usize]
            .set(waker)
            .expect("each is registered once");
        fence(Ordering::SeqCst);
    }
}

impl Pair for Waking {
    const WORKLOAD: &'static Workload = &WORKLOAD;
    const CHECKED: &'static str = "an operation is a turn, of which two make a round; by a thread a round is a wake-up and the answer that the thread spins for; as many turns were taken as were due; wake_ns is a turn without the runtime's start and stop";
    /// The number of turns taken, and ns per turn.
    type Found = (u64, f64);

    fn of(cell: &Cell) -> Result<Self, Problem> {
        Ok(Self {
            rounds: cell.number("rounds")?,
            by_thread: either(cell, "from", "thread", "actor")?,
        })
    }

    fn operations(self) -> u64 {
        2 * self.rounds
    }

    fn ours(self) -> Self::Found {
        let turns = Arc::new(Turns::default());
        let of_other = Arc::clone(&turns);
        let began = Instant::now();
        if self.by_thread {
            let asking = thread::spawn(move || self.spin(&of_other));
            self.wait(0, &turns);
            asking.join().expect(ENDS);
        } else {
            let other = spawn(move || self.wait(1, &of_other));
            self.wait(0, &turns);
            other.join().expect(ENDS);
        }
        self.found(&turns, began)
    }

    fn tokio(self) -> impl Future<Output = Self::Found> + Send + 'static {
        let turns = Arc::new(Turns::default());
        let wait = move |place: u64, turns: Arc<Turns>| {
            let passing = Arc::clone(&turns);
            let registering = Arc::clone(&turns);
            tokio_beyond::take_turns(
                self.rounds,
                move |waker: Waker| registering.register(place, waker),
                move || turns.is_of(place),
                move || passing.pass(place),
            )
        };
        async move {
            let began = Instant::now();
            let (first, of_other) = (wait(0, Arc::clone(&turns)), Arc::clone(&turns));
            if self.by_thread {
                let asking = thread::spawn(move || self.spin(&of_other));
                first.await;
                asking.join().expect(ENDS);
            } else {
                tokio_beyond::both(first, wait(1, of_other)).await;
            }
            self.found(&turns, began)
        }
    }

    fn check(self, (taken, _): &Self::Found) -> Result<(), String> {
        same("turns", *taken, self.operations())
    }

    fn metrics(self, (_, ns): &Self::Found) -> Vec<(&'static str, f64)> {
        vec![("wake_ns", *ns)]
    }

    fn target(self, point: Point) -> Option<Target> {
        let local = !self.by_thread && point.workers == 1 && !point.cold && point.is_barred();
        local.then_some(Target::Metric("wake_ns", 60.0))
    }
}

impl Waking {
    /// Takes the turns of participant `place`, in an actor.
    fn wait(self, place: u64, turns: &Turns) {
        turns.register(place, wait::waker());
        for _ in 0..self.rounds {
            while !turns.is_of(place) {
                let _ = wait::park(None);
            }
            turns.pass(place);
        }
    }

    /// Takes the turns of the second participant on a thread that never sleeps, because only the
    /// wake-up of the other participant is measured.
    fn spin(self, turns: &Turns) {
        for _ in 0..self.rounds {
            let mut spun = 0_u32;
            while !turns.is_of(1) {
                spun += 1;
                if spun.is_multiple_of(1_000) {
                    // On a machine with few processors, another thread may need this one.
                    thread::yield_now();
                }
                spin_loop();
            }
            turns.pass(1);
        }
    }

    fn found(self, turns: &Turns, began: Instant) -> (u64, f64) {
        let taken = turns.taken.load(Ordering::Acquire);
        (taken, began.elapsed().as_secs_f64() * 1e9 / taken as f64)
    }
}
