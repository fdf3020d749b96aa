//! Frequent operations of actors, on one worker, without the end of a time slice.

use std::hint::black_box;
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Duration;

use thalweg::runtime::cancel::{OnFailure, scope};
use thalweg::runtime::{
    Actor, Config, Context, Handler, Signal, channel, init, spawn, spawn_under, start, wait,
    yield_now,
};

fn on_one_worker(job: impl FnOnce() + Send + 'static) {
    let config = Config::with_workers(1).timeslice(Duration::from_secs(1));
    init(config).expect("the settings are in order").run(job);
}

/// Spawns and joins an actor.
pub fn spawn_join(count: u64) {
    on_one_worker(move || {
        for number in 0..count {
            let actor = spawn(move || black_box(number));
            assert_eq!(actor.join().ok(), Some(number));
        }
    });
}

/// Spawns an actor in a scope and joins it.
pub fn scope_spawn(count: u64) {
    on_one_worker(move || {
        let whole = scope(OnFailure::FailFast, |scope| {
            for number in 0..count {
                let actor = scope.spawn(move || black_box(number));
                assert_eq!(actor.join().ok(), Some(number));
            }
        });
        whole.expect("none fails");
    });
}

/// Spawns actors that report their ends on a channel, and receives the reports of 100 at a time.
pub fn supervised_spawn(count: u64) {
    on_one_worker(move || {
        let (supervisor, signals) = channel();
        for _ in 0..count / 100 {
            for _ in 0..100 {
                drop(spawn_under(supervisor.clone(), || ()));
            }
            for _ in 0..100 {
                assert!(matches!(signals.recv(), Ok(Signal::Exit(_))));
            }
        }
    });
}

/// One of two actors yields to the other.
pub fn yield_turn(count: u64) {
    on_one_worker(move || {
        let other = spawn(move || (0..count / 2).for_each(|_| yield_now()));
        (0..count / 2).for_each(|_| yield_now());
        other.join().expect("it only yields");
    });
}

/// One of two actors wakes the other and waits.
pub fn wake_park(count: u64) {
    fn take_turns(rounds: u64, wakers: &[OnceLock<Waker>; 2], place: usize) {
        wakers[place].set(wait::waker()).expect("once");
        for _ in 0..rounds {
            if let Some(other) = wakers[1 - place].get() {
                other.wake_by_ref();
            }
            let _ = wait::park(None);
        }
        wakers[1 - place].get().expect("both ran").wake_by_ref();
    }
    on_one_worker(move || {
        let wakers: Arc<[OnceLock<Waker>; 2]> = Arc::default();
        let of_other = Arc::clone(&wakers);
        let other = spawn(move || take_turns(count / 2, &of_other, 1));
        take_turns(count / 2, &wakers, 0);
        other.join().expect("it only waits");
    });
}

struct Counter(u64);
struct Add(u64);
struct Sum;

impl Actor for Counter {}

impl Handler<Add> for Counter {
    type Reply = ();
    fn handle(&mut self, Add(number): Add, _: &Context<'_, Self>) {
        self.0 += number;
    }
}

impl Handler<Sum> for Counter {
    type Reply = u64;
    fn handle(&mut self, _: Sum, _: &Context<'_, Self>) -> u64 {
        self.0
    }
}

/// Casts a message to a behaviour actor, which handles 64 of them per turn.
pub fn actor_cast(count: u64) {
    on_one_worker(move || {
        let counter = start(Counter(0));
        for number in 0..count {
            counter.cast(Add(1)).expect("it lives");
            if number % 64 == 63 {
                yield_now();
            }
        }
        assert_eq!(counter.call(Sum).ok(), Some(count));
    });
}

/// Calls a behaviour actor, and receives its reply.
pub fn actor_call(count: u64) {
    on_one_worker(move || {
        let counter = start(Counter(7));
        for _ in 0..count {
            assert_eq!(counter.call(Sum).ok(), Some(7));
        }
    });
}
