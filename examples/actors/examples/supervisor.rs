//! A loop that starts an actor again when it has panicked, and gives up when that does not help.
//!
//! It claims that the flaky one gets there at its third try, and the hopeless one is given up after five.

use thalweg::runtime::{Receiver, Sender, Signal, channel, run, spawn_under};

const MOST: u32 = 5;

fn main() {
    // What the supervisor says is enough: the panics are part of the plan.
    std::panic::set_hook(Box::new(|_| {}));
    run(|| {
        let flaky = supervise(|attempt| assert!(attempt >= 3, "the database is not there yet"));
        let hopeless = supervise(|_| panic!("the disk is full"));
        assert_eq!((flaky, hopeless), (Some(3), None));
    });
}

/// The attempt that went well; `None`: none of them.
fn supervise(job: fn(u32)) -> Option<u32> {
    let (signals, ends): (Sender<Signal>, Receiver<Signal>) = channel();
    for attempt in 1..=MOST {
        spawn_under(signals.clone(), move || job(attempt));
        match ends.recv().expect("we have a sender ourselves") {
            Signal::Panic(id, panic) => println!("attempt {attempt}: actor {id}: {panic}"),
            _ => {
                println!("attempt {attempt}: it went well");
                return Some(attempt);
            }
        }
    }
    println!("given up after {MOST}");
    None
}
