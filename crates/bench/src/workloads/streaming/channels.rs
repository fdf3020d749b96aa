//! The channels: `std::sync::mpsc` and crossbeam's bounded one.

use std::sync::Barrier;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use thalweg_peers::crates::crossbeam_channel;

use super::event::{Event, Seen};
use crate::problem::Problem;

/// How long the consumer of the unbounded channel waits for an event.
const PATIENCE: Duration = Duration::from_millis(100);

/// Moves `count` events from another thread to this one. Returns the time from when both threads
/// were ready, and the events received.
fn moved<S: Send>(
    count: u64,
    sender: S,
    send: impl Fn(&S, Event) -> bool + Send,
    receive: impl Fn() -> Option<Event>,
) -> Result<(Duration, Seen), Problem> {
    let ready = Barrier::new(2);
    let mut seen = Seen::default();
    let elapsed = thread::scope(|scope| {
        let ready = &ready;
        scope.spawn(move || {
            ready.wait();
            for n in 0..count {
                if !send(&sender, Event::new(n)) {
                    return;
                }
            }
        });
        ready.wait();
        let began = Instant::now();
        while let Some(event) = receive() {
            seen.add_event(&event);
        }
        began.elapsed()
    });
    Ok((elapsed, seen))
}

/// The unbounded channel of the standard library.
///
/// # Errors
/// None.
pub fn std_mpsc(count: u64) -> Result<(Duration, Seen), Problem> {
    let (sender, receiver) = mpsc::channel();
    moved(
        count,
        sender,
        |sender, event| sender.send(event).is_ok(),
        move || receiver.recv_timeout(PATIENCE).ok(),
    )
}

/// A bounded channel of crossbeam's.
///
/// # Errors
/// None.
pub fn crossbeam(count: u64, capacity: usize) -> Result<(Duration, Seen), Problem> {
    let (sender, receiver) = crossbeam_channel::bounded(capacity);
    moved(
        count,
        sender,
        |sender, event| sender.send(event).is_ok(),
        move || receiver.recv().ok(),
    )
}
