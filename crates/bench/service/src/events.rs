//! What stands in event number `n`.

use thalweg::port::StreamWriter;

use crate::lab::{Event, EventView};

/// Numbers of an event's fixed part, which is 448 bytes.
pub const WORDS: usize = 56;

/// Kinds of events.
const KINDS: u64 = 7;

/// The fixed part of event number `n`: its number, its kind, and what follows from both.
#[must_use]
#[inline]
pub fn words(n: u64) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, i) in words.iter_mut().zip(0..) {
        *word = n + i;
    }
    words[1] = n % KINDS;
    words
}

/// Event number `n` as a stream takes it, with empty tails.
#[must_use]
#[inline]
pub fn event(n: u64) -> EventView<'static> {
    EventView {
        words: words(n),
        rest0: n,
        rest1: n,
        rest2: n,
        detail: "",
        payload: (&[]).into(),
    }
}

/// Writes until the reader has enough or is gone.
pub(crate) fn write(writer: &StreamWriter<Event>, count: u64, batch: u32) {
    let mut batch = writer.batch(batch);
    for n in 0..count {
        if batch.send(&event(n)).is_err() {
            return;
        }
    }
}
