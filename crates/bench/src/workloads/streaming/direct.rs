//! No channel: the producer calls the consumer, which is a C function behind a `Box<dyn Fn>`.

use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use super::event::{Event, Seen};
use crate::problem::Problem;

extern "C" fn consume(event: &Event, seen: &Cell<Seen>) {
    let mut now = seen.get();
    now.add_event(event);
    seen.set(now);
}

/// Calls the consumer `count` times.
///
/// # Errors
/// None.
pub fn callback(count: u64) -> Result<(Duration, Seen), Problem> {
    let seen = Cell::new(Seen::default());
    let sink: Box<dyn Fn(&Event) + '_> = black_box(Box::new(|event| consume(event, &seen)));
    let began = Instant::now();
    for n in 0..count {
        let event = Event::new(n);
        sink(&event);
    }
    let elapsed = began.elapsed();
    drop(sink);
    Ok((elapsed, seen.get()))
}
