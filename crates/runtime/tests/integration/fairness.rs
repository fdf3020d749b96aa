//! Fairness: no actor is starved. The tests count how many turns of other actors pass before an
//! actor's own turn; they do not measure time where counting is possible.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::task::Waker;
use std::time::Duration;

use thalweg_queue::clock;
use thalweg_runtime::{
    Config, Handle, JoinHandle, Runtime, WakeReason, sleep, spawn, wait, yield_now,
};

const YIELDERS: usize = 8;

/// Runs `test` as an actor of a runtime of one worker.
fn on_one_worker(test: impl FnOnce(&Handle) + Send + 'static) {
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let handle = runtime.handle().clone();
    let test = runtime.handle().spawn(move || test(&handle));
    test.join().unwrap();
}

/// Actors that only yield, and count their turns.
struct Flood {
    turns: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    all: Vec<JoinHandle<()>>,
}

impl Flood {
    fn of_yields() -> Self {
        let mut flood = Self {
            turns: Arc::default(),
            over: Arc::default(),
            all: Vec::new(),
        };
        for _ in 0..YIELDERS {
            let (turns, over) = (flood.turns.clone(), flood.over.clone());
            flood.all.push(spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    turns.fetch_add(1, Ordering::Relaxed);
                    yield_now();
                }
            }));
        }
        while flood.turns() < 10 * YIELDERS as u64 {
            yield_now();
        }
        flood
    }

    fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for one in self.all.drain(..) {
            one.join().unwrap();
        }
    }
}

/// The slot for the most recently woken actor is used at most three times in a row.
#[test]
fn two_actors_that_wake_each_other_do_not_starve_a_third() {
    on_one_worker(|_| {
        let (turns, over) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let (ends, others): (Vec<mpsc::Sender<Waker>>, Vec<_>) =
            (0..2).map(|_| mpsc::channel()).unzip();
        let pair: Vec<_> = others
            .into_iter()
            .enumerate()
            .map(|(nth, other)| {
                let end = ends[1 - nth].clone();
                let (turns, over) = (turns.clone(), over.clone());
                spawn(move || {
                    end.send(wait::waker()).unwrap();
                    let other: Waker = loop {
                        match other.try_recv() {
                            Ok(waker) => break waker,
                            Err(_) => yield_now(),
                        }
                    };
                    while !over.load(Ordering::Relaxed) {
                        turns.fetch_add(1, Ordering::Relaxed);
                        other.wake_by_ref();
                        assert_eq!(wait::park(None), WakeReason::Woken);
                    }
                    other.wake();
                })
            })
            .collect();
        while turns.load(Ordering::Relaxed) < 20 {
            yield_now();
        }
        for _ in 0..20 {
            let before = turns.load(Ordering::Relaxed);
            yield_now();
            let between = turns.load(Ordering::Relaxed) - before;
            assert!(between > 0, "they run");
            assert!(between <= 8, "{between} turns before the third had one");
        }
        let before = turns.load(Ordering::Relaxed);
        let counted = turns.clone();
        let fresh = spawn(move || counted.load(Ordering::Relaxed))
            .join()
            .unwrap();
        assert!(
            fresh - before <= 16,
            "{} turns before the first",
            fresh - before
        );
        over.store(true, Ordering::Relaxed);
        for one in pair {
            one.join().unwrap();
        }
    });
}

/// The worker checks the injector and its own stealable tasks every eighth turn.
#[test]
fn new_actor_among_yielders_starts() {
    on_one_worker(|handle| {
        let flood = Flood::of_yields();
        for _ in 0..20 {
            let before = flood.turns();
            let turns = flood.turns.clone();
            let fresh = handle.spawn(move || turns.load(Ordering::Relaxed));
            let passed = fresh.join().unwrap() - before;
            assert!(passed <= 2 * YIELDERS as u64, "{passed} turns");
        }
    });
}

/// The worker checks its timers every 64th turn.
#[test]
fn actor_with_expired_sleeps_does_not_starve_others() {
    on_one_worker(|_| {
        let over = Arc::new(AtomicBool::new(false));
        let other = spawn({
            let over = over.clone();
            move || over.store(true, Ordering::Relaxed)
        });
        while !over.load(Ordering::Relaxed) {
            // Its deadline has passed before the sleep begins.
            sleep(Duration::ZERO);
        }
        other.join().unwrap();
    });
}

#[test]
fn timer_among_yielders_fires() {
    on_one_worker(|_| {
        /// Twice the granularity of the timer wheel.
        const GRAINS: u64 = 125_000;
        let flood = Flood::of_yields();
        for _ in 0..10 {
            let deadline = clock::deadline(Duration::from_millis(2));
            let (counted, due) = (flood.turns.clone(), Arc::new(AtomicU64::new(0)));
            let noted = due.clone();
            let notes = spawn(move || {
                while clock::now() < deadline + GRAINS {
                    yield_now();
                }
                noted.store(counted.load(Ordering::Relaxed), Ordering::Relaxed);
            });
            assert_eq!(wait::park(Some(deadline)), WakeReason::TimedOut);
            let now = flood.turns();
            notes.join().unwrap();
            let passed = now.saturating_sub(due.load(Ordering::Relaxed));
            assert!(passed <= 64 + 2 * YIELDERS as u64, "{passed} turns");
        }
    });
}

/// The worker checks its remote run queue every turn.
#[test]
fn wake_from_another_thread_among_yielders_is_noticed() {
    on_one_worker(|_| {
        let flood = Flood::of_yields();
        let (tx, wakers) = mpsc::channel::<Waker>();
        let turns = flood.turns.clone();
        let (woke, woken_at) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            for waker in wakers {
                waker.wake();
                woke.send(turns.load(Ordering::Relaxed)).unwrap();
            }
        });
        for _ in 0..20 {
            tx.send(wait::waker()).unwrap();
            assert_eq!(wait::park(None), WakeReason::Woken);
            let now = flood.turns();
            let at = loop {
                match woken_at.try_recv() {
                    Ok(at) => break at,
                    Err(_) => yield_now(),
                }
            };
            let passed = now.saturating_sub(at);
            assert!(passed <= 2 * YIELDERS as u64, "{passed} turns");
        }
        drop(tx);
        thread.join().unwrap();
    });
}

/// Each first job holds its worker until the second job has run. If both are submitted while one
/// worker searches, neither wakes a worker. The worker that finds one of them must therefore wake
/// another worker for the other.
#[test]
fn job_behind_a_busy_worker_wakes_a_sleeping_worker() {
    let runtime = Runtime::start(Config::with_workers(2)).unwrap();
    for _ in 0..if cfg!(miri) { 3 } else { 500 } {
        let ran = Arc::new(AtomicBool::new(false));
        let seen = ran.clone();
        let first = runtime.handle().spawn(move || {
            let deadline = clock::deadline(Duration::from_secs(20));
            while !seen.load(Ordering::Acquire) && clock::now() < deadline {
                std::thread::yield_now();
            }
            seen.load(Ordering::Acquire)
        });
        let second = runtime
            .handle()
            .spawn(move || ran.store(true, Ordering::Release));
        // The loop reacts fast enough that the next two jobs find the workers searching.
        while !first.is_finished() || !second.is_finished() {
            std::hint::spin_loop();
        }
        assert!(first.join().unwrap(), "the second one was left");
        second.join().unwrap();
    }
}
