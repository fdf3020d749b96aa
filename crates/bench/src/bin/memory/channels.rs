//! What a channel takes of the heap: one JSON line a case.
//!
//! One thread does everything, one case after the other, and each case runs twice: what a first use allocates for ever, such as a
//! thread's own things, is not the channel's.

use thalweg::queue::{mpmc, mpsc, oneshot, spsc};
use thalweg_peers::crates::{crossbeam_channel, tokio};

use crate::live;

const CAPACITY: usize = 16;
/// Through each channel before it is looked at again: more than any of them keeps a place for.
const MESSAGES: u64 = 1_000;
const STRING: usize = 100_000;
const STRINGS: usize = 1_000;

const OPEN: &str = "both sides live, and there is room";

/// What a case found, in bytes.
#[derive(Clone, Copy)]
struct Found {
    /// When it was new.
    fresh: i64,
    /// When its messages had come and gone.
    used: i64,
}

/// Makes something, uses it, drops it; twice.
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

/// Sends and receives in turn, by two expressions.
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

/// 1,000 strings of 100 KB; what is `used` is what is left of them.
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

/// Says what each case found.
pub fn all() {
    numbers();
    strings();
}
