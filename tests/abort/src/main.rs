//! With `panic = "abort"` no actor could be killed, cancelled or restarted. Each way to open a
//! runtime therefore returns a typed error before anything starts. Synchronisation between threads
//! still works.
//!
//! Run it with `cargo run --profile abort -p thalweg-abort`, because cargo always builds tests with
//! unwinding.

use std::thread;
use std::time::Duration;

use thalweg_runtime::sync::{Mutex, Notify};
use thalweg_runtime::{Config, Runtime, StartError, block_on, channel, init, sleep_async};

fn main() {
    if cfg!(panic = "unwind") {
        panic!("this is for --profile abort");
    }
    let opened = [
        ("init", init(Config::with_workers(1)).map(drop)),
        ("start", Runtime::start(Config::with_workers(2)).map(drop)),
        ("global", Runtime::global().map(drop)),
    ];
    for (how, opened) in opened {
        match opened {
            Err(error @ StartError::Abort) => {
                assert!(error.to_string().contains("panic = \"unwind\""), "{error}");
            }
            other => panic!("{how}: {other:?}"),
        }
    }
    // The abort error takes precedence over an invalid setting.
    assert!(matches!(
        init(Config::with_workers(0)),
        Err(StartError::Abort)
    ));

    let (sender, numbers) = channel();
    let sum = Mutex::new(0);
    let done = Notify::new();
    thread::scope(|scope| {
        let (sum, done) = (&sum, &done);
        scope.spawn(move || {
            for number in &numbers {
                *sum.lock() += number;
            }
            done.notify_one();
        });
        for number in 1..=10 {
            sender.send(number).expect("it receives");
        }
        drop(sender);
        block_on(done.notified());
        block_on(sleep_async(Duration::from_micros(1)));
    });
    assert_eq!(sum.into_inner(), 55);
}
