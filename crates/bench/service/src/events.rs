//! The contents of event number `n`, and when it is written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg::port::{Failure, StreamWriter};
use thalweg::queue::clock;
use thalweg::runtime;
use thalweg::wire::Record;

use crate::gate::{Gate, number};
use crate::lab::{
    Contract, Control, Event, EventKind, EventView, Ohlcvc, OpenInterest, Quote, Raw, Trade,
};

/// The part that is not zero of event number `n`, received `at`.
#[must_use]
#[inline]
pub fn quote(n: u64, at: u64) -> Quote {
    let small = (n & 0xffff) as i32;
    let bid = f64::from(small);
    Quote {
        contract: Contract {
            symbol: 0x4d52_4554,
            expiration: 20_261_218,
            security: 2,
            strike: 150.0,
            is_call: 1,
            exchange: 5,
            id: 77,
        },
        number: n,
        received_at: at,
        bid,
        ask: bid + 0.25,
        ms_of_day: small,
        date: 20_261_124,
        bid_size: 10,
        bid_exchange: 3,
        bid_condition: 50,
        ask_size: small ^ 7,
        ask_exchange: 4,
        ask_condition: 50,
    }
}

/// Event number `n` as a stream takes it, with these tails.
#[must_use]
#[inline]
pub fn event<'a>(n: u64, at: u64, detail: &'a str, payload: &'a [u8]) -> EventView<'a> {
    EventView {
        kind: EventKind::Quote,
        ohlcvc: Ohlcvc::default(),
        open_interest: OpenInterest::default(),
        quote: quote(n, at),
        trade: Trade::default(),
        control: Control::default(),
        raw: Raw::default(),
        rest: [0; 3],
        detail,
        payload: payload.into(),
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

/// Waits at the gate, if there is one, and returns the mark.
pub(crate) fn pass(gate: Option<Arc<Gate>>) -> u64 {
    gate.map_or(0, |gate| gate.pass(runtime::yield_now))
}

/// Writes the share of writer number `own`. Stops early when the reader is gone.
pub(crate) fn feed(
    writer: StreamWriter<Event>,
    asked: Feed,
    own: u32,
    gate: Option<Arc<Gate>>,
) -> Result<(), Failure> {
    let (detail, payload) = tails(asked.tails);
    let mark = pass(gate);
    let mut pace = Pace::new(asked.per_s);
    let mut batch = writer.batch(asked.batch);
    let first = number(mark, u64::from(own), 0);
    for n in first..first + asked.count / u64::from(asked.writers) {
        let at = match &mut pace {
            Some(pace) => pace.next(runtime::sleep_until),
            None => n,
        };
        batch.send(&event(n, at, &detail, &payload))?;
    }
    drop(batch);
    writer.finish()
}

/// Writes events field by field in the stream's memory. Stops early when the reader is gone.
pub(crate) fn write_reserved(
    mut writer: StreamWriter<Event>,
    count: u64,
    gate: Option<Arc<Gate>>,
) -> Result<(), Failure> {
    let mark = pass(gate);
    for n in mark..mark + count {
        if let Some(mut event) = writer.reserve(0)? {
            event.set(Event::FIELDS.kind, &EventKind::Quote);
            event.set(Event::FIELDS.quote, &quote(n, n));
            event.commit()?;
        }
    }
    writer.finish()
}
