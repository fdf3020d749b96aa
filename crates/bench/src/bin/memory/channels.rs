//! Measures the heap memory of a channel: one JSON line per case.
//!
//! One thread runs the cases one after the other. Each case runs twice, so that one-time
//! allocations of the first use, such as a thread's own data, are not attributed to the channel.

use thalweg::queue::{mpmc, mpsc, oneshot, spsc};
use thalweg_peers::crates::{crossbeam_channel, tokio};

use crate::live;

const CAPACITY: usize = 16;
/// Messages sent through each channel before the second measurement: more than the capacity of any
/// of them.
const MESSAGES: u64 = 1_000;
const STRING: usize = 100_000;
const STRINGS: usize = 1_000;

const OPEN: &str = "both sides live, and there is room";

/// The result of a case, in bytes.
#[derive(Clone, Copy)]
struct Found {
    /// The size of a new channel.
    fresh: i64,
    /// The size after all messages were sent and received.
    used: i64,
}

/// Creates a value, uses it and drops it; twice.
fn measure<C>(make: impl Fn() -> C, used: impl Fn(&mut C)) -> Found {
    let once = || {
        let before = live();
        let mut channel = make();
        let fresh = live() - before;
        used(&mut channel);
        let used = live() - before;
        Found { fresh, used }
    };
    once();
    once()
}

fn say(case: &str, subject: &str, found: Found) {
    let Found { fresh, used } = found;
    println!(r#"{{"case": "{case}", "subject": "{subject}", "fresh": {fresh}, "used": {used}}}"#);
}

/// Sends and receives in turns, using two expressions.
macro_rules! turns {
    ($count:expr, $message:expr, $send:expr, $receive:expr) => {
        for number in 0..$count {
            $send($message(number));
            assert!($receive().is_ok(), "{OPEN}");
        }
    };
}

fn numbers() {
    let number = |number: u64| number;
    let crossbeam = measure(
        || crossbeam_channel::bounded::<u64>(CAPACITY),
        |(s, r)| turns!(MESSAGES, number, |m| s.send(m).expect(OPEN), || r.recv()),
    );
    let tokio = measure(
        || tokio::sync::mpsc::channel::<u64>(CAPACITY),
        |(s, r)| {
            turns!(MESSAGES, number, |m| s.try_send(m).expect(OPEN), || r
                .try_recv())
        },
    );
    let ours = measure(
        || spsc::channel::<u64>(CAPACITY).expect(OPEN),
        |(s, r)| turns!(MESSAGES, number, |m| s.send(m).expect(OPEN), || r.recv()),
    );
    say("spsc", "thalweg", ours);
    say("spsc", "crossbeam", crossbeam);
    say("spsc", "tokio", tokio);
    let ours = measure(
        || mpmc::channel::<u64>(CAPACITY).expect(OPEN),
        |(s, r)| turns!(MESSAGES, number, |m| s.send(m).expect(OPEN), || r.recv()),
    );
    say("mpmc", "thalweg", ours);
    say("mpmc", "crossbeam", crossbeam);

    for senders in [1, 8] {
        let case = format!("mpsc_{senders}");
        let ours = measure(
            || {
                let (sender, receiver) = mpsc::channel::<u64>(CAPACITY).expect(OPEN);
                (vec![sender; senders], receiver)
            },
            |(senders, r)| {
                for s in senders {
                    turns!(MESSAGES, number, |m| s.send(m).expect(OPEN), || r.recv());
                }
            },
        );
        say(&case, "thalweg", ours);
        let crossbeam = measure(
            || {
                let (sender, receiver) = crossbeam_channel::bounded::<u64>(CAPACITY);
                (vec![sender; senders], receiver)
            },
            |(senders, r)| {
                for s in senders {
                    turns!(MESSAGES, number, |m| s.send(m).expect(OPEN), || r.recv());
                }
            },
        );
        say(&case, "crossbeam", crossbeam);
        let tokio = measure(
            || {
                let (sender, receiver) = tokio::sync::mpsc::channel::<u64>(CAPACITY);
                (vec![sender; senders], receiver)
            },
            |(senders, r)| {
                for s in senders {
                    turns!(MESSAGES, number, |m| s.try_send(m).expect(OPEN), || r
                        .try_recv());
                }
            },
        );
        say(&case, "tokio", tokio);
    }
    say(
        "oneshot",
        "thalweg",
        measure(oneshot::channel::<u64>, |_| ()),
    );
    say(
        "oneshot",
        "tokio",
        measure(tokio::sync::oneshot::channel::<u64>, |_| ()),
    );
}

/// 1,000 strings of 100 KB; `used` is the memory that remains afterwards.
fn strings() {
    let string = |_| "x".repeat(STRING);
    let left = |found: Found| Found {
        fresh: 0,
        used: found.used - found.fresh,
    };
    let ours = measure(
        || spsc::channel::<String>(CAPACITY).expect(OPEN),
        |(s, r)| turns!(STRINGS, string, |m| s.send(m).expect(OPEN), || r.recv()),
    );
    say("strings", "thalweg", left(ours));
    let crossbeam = measure(
        || crossbeam_channel::bounded::<String>(CAPACITY),
        |(s, r)| turns!(STRINGS, string, |m| s.send(m).expect(OPEN), || r.recv()),
    );
    say("strings", "crossbeam", left(crossbeam));
    let tokio = measure(
        || tokio::sync::mpsc::channel::<String>(CAPACITY),
        |(s, r)| {
            turns!(STRINGS, string, |m| s.try_send(m).expect(OPEN), || r
                .try_recv())
        },
    );
    say("strings", "tokio", left(tokio));
}

/// Prints the result of every case.
pub fn all() {
    numbers();
    strings();
}
