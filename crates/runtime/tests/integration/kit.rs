//! Shared parts of the tests: runtimes of one and two workers, random numbers, and an actor that
//! replies.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::cell::Cell;
use std::fmt::Debug;
use std::io::Write as _;
use std::str::FromStr;
use std::sync::Once;
use std::time::Duration;

use thalweg_runtime::{
    Actor, Config, Context, ExitReason, Handler, JoinError, Runtime, init, sleep, spawn, yield_now,
};

/// A timeout of zero.
pub const NO_TIME: Duration = Duration::ZERO;
/// A short timeout that does expire.
pub const SHORT: Duration = Duration::from_millis(3);
/// A timeout that only a hanging test reaches.
pub const LONG: Duration = Duration::from_secs(600);

pub fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

pub fn runtime(workers: usize) -> Runtime {
    Runtime::start(Config::with_workers(workers)).unwrap()
}

/// Runs `test` in an actor of a runtime of one worker, then in one of a runtime of two.
pub fn on_both(test: fn()) {
    for workers in [1, 2] {
        init(Config::with_workers(workers)).unwrap().run(test);
    }
}

/// With one worker: lets everything that was spawned before run until it waits.
pub fn let_others() {
    (0..3).for_each(|_| yield_now());
}

/// Yields until `condition` is true.
pub fn until(condition: impl Fn() -> bool) {
    while !condition() {
        yield_now();
    }
}

/// The value of the environment variable `name`, or the default.
pub fn setting<T: FromStr<Err: Debug>>(name: &str, default: T) -> T {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Runs the test of one seed in an actor. If it hangs, prints the seed and aborts the process.
pub fn one_seed(seed: u64, test: impl FnOnce(u64)) {
    let slow = spawn(move || {
        sleep(Duration::from_secs(60));
        // `eprintln!` would write to the test's captured output, which the abort loses.
        let _ = writeln!(std::io::stderr(), "seed {seed} hangs");
        std::process::abort();
    });
    test(seed);
    let _ = slow.pid().kill();
    let _ = slow.join();
}

/// From now on, the process does not report panics with the message "bad luck". Call it in an
/// actor: then the runtime has installed its own panic hook, which this one wraps.
pub fn silence_bad_luck() {
    static SET: Once = Once::new();
    SET.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.to_string().contains("bad luck") {
                hook(info);
            }
        }));
    });
}

/// SplitMix64 (Steele, Lea, Flood, 2014).
#[derive(Clone)]
pub struct Random(Cell<u64>);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    pub fn below(&self, end: u64) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let mut mix = state;
        mix = (mix ^ (mix >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mix = (mix ^ (mix >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mix ^ (mix >> 31)) % end
    }

    pub fn one_in(&self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Returns a random element of `all`.
    pub fn of<T: Copy>(&self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Replies to a number with the same number, and panics on a text.
pub struct Echo;

impl Actor for Echo {}

impl Handler<u32> for Echo {
    type Reply = u32;
    fn handle(&mut self, number: u32, _: &Context<'_, Self>) -> u32 {
        number
    }
}

impl Handler<&'static str> for Echo {
    type Reply = ();
    fn handle(&mut self, text: &'static str, _: &Context<'_, Self>) {
        panic!("{text}");
    }
}

/// The exit reason of an actor that a signal ended.
pub fn reason_of<T: Debug>(joined: Result<T, JoinError>) -> ExitReason {
    match joined {
        Err(JoinError::Exit(reason)) => reason,
        other => panic!("it did not end by a signal: {other:?}"),
    }
}

pub fn boom() -> ExitReason {
    ExitReason::from("boom")
}
