//! A loop that starts an actor again after a panic, and gives up after five attempts.
//!
//! The program asserts that the flaky actor succeeds at its third attempt, and that the loop gives
//! up on the hopeless one.

use thalweg::runtime::{Receiver, Sender, Signal, channel, run, spawn_under};

const MAX_ATTEMPTS: u32 = 5;

fn main() {
    // The panics are intended, and the loop prints them.
    std::panic::set_hook(Box::new(|_| {}));
    run(|| {
        let flaky = supervise(|attempt| assert!(attempt >= 3, "the database is not ready"));
        let hopeless = supervise(|_| panic!("the disk is full"));
        assert_eq!((flaky, hopeless), (Some(3), None));
    });
}

/// The first successful attempt. `None`: all attempts failed.
fn supervise(job: fn(u32)) -> Option<u32> {
    let (signals, ends): (Sender<Signal>, Receiver<Signal>) = channel();
    for attempt in 1..=MAX_ATTEMPTS {
        spawn_under(signals.clone(), move || job(attempt));
        match ends.recv().expect("this function keeps a sender") {
            Signal::Panic(id, panic) => println!("attempt {attempt}: actor {id}: {panic}"),
            _ => {
                println!("attempt {attempt}: succeeded");
                return Some(attempt);
            }
        }
    }
    println!("given up after {MAX_ATTEMPTS}");
    None
}
