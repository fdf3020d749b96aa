//! The contents of event number `n`, and when it is written.

use std::time::{Duration, Instant};

use thalweg::port::{Failure, StreamWriter};
use thalweg::queue::clock;
use thalweg::runtime;

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

/// Bytes of the text where the tails are not empty, at most.
pub const DETAIL: u32 = 24;

/// The tails of `size` bytes together: a text, and bytes.
#[must_use]
pub fn tails(size: u32) -> (String, Vec<u8>) {
    let text = size.min(DETAIL);
    let detail = "d".repeat(text as usize);
    (detail, vec![b'p'; (size - text) as usize])
}

/// Below this rate a writer sleeps between two events; otherwise it polls the clock until the next
/// event is due.
const SLEEPS_BELOW: u64 = 1_000;

/// When the events of a writer are due, and the time recorded in them.
///
/// A writer that polls the clock records the due time of the event: a delay because the previous
/// event waited is part of the latency. A writer that sleeps records the time at which it woke up,
/// because the measurement there is how long the reader takes to wake up.
#[derive(Debug)]
pub struct Pace {
    period: Duration,
    due: Instant,
    sleeps: bool,
}

impl Pace {
    /// So many a second, from now on; `None` for 0: as fast as can be.
    #[must_use]
    pub fn new(per_s: u64) -> Option<Self> {
        let period = Duration::from_nanos(1_000_000_000_u64.checked_div(per_s)?);
        Some(Self {
            period,
            due: Instant::now(),
            sleeps: per_s < SLEEPS_BELOW,
        })
    }

    /// Waits until the next event is due and returns the time to record, in ns of the monotonic
    /// clock. `sleep` is the caller's way to sleep.
    pub fn next(&mut self, sleep: impl FnOnce(Instant)) -> u64 {
        self.due += self.period;
        if self.sleeps {
            sleep(self.due);
            return clock::now();
        }
        while Instant::now() < self.due {
            std::hint::spin_loop();
        }
        clock::at(self.due)
    }
}

/// What `feed` is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feed {
    pub(crate) count: u64,
    pub(crate) batch: u32,
    pub(crate) writers: u32,
    pub(crate) tails: u32,
    pub(crate) per_s: u64,
}

/// Writes the events of writer number `own`: those whose number modulo the number of writers is
/// `own`. Stops early when the reader is gone.
pub(crate) fn feed(writer: StreamWriter<Event>, asked: Feed, own: u32) -> Result<(), Failure> {
    let (detail, payload) = tails(asked.tails);
    let mut pace = Pace::new(asked.per_s);
    let mut batch = writer.batch(asked.batch);
    let mut n = u64::from(own);
    while n < asked.count {
        let at = match &mut pace {
            Some(pace) => pace.next(runtime::sleep_until),
            None => n,
        };
        let whole = EventView {
            rest0: at,
            detail: &detail,
            payload: (&payload).into(),
            ..event(n)
        };
        batch.send(&whole)?;
        n += u64::from(asked.writers);
    }
    drop(batch);
    writer.finish()
}

/// Writes until the reader has enough or is gone.
pub(crate) fn write(writer: StreamWriter<Event>, count: u64, batch: u32) -> Result<(), Failure> {
    let mut batch = writer.batch(batch);
    for n in 0..count {
        batch.send(&event(n))?;
    }
    drop(batch);
    writer.finish()
}
