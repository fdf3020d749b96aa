//! The events: what channels and callbacks carry, what a consumer reads of them, and its check that
//! all arrived.

use std::ffi::CString;
use std::thread::sleep;
use std::time::{Duration, Instant};

use thalweg::queue::clock;
use thalweg_lab::events::quote;
use thalweg_lab::gate::{SEQUENCE_BITS, number};
use thalweg_lab::lab::{
    Control, EventKind, EventView, Ohlcvc, OpenInterest, Pulse, Quote, Raw, Tick, Trade,
};
use thalweg_lab::ticks;

use crate::latency::Latencies;
use crate::problem::Problem;

/// The tag, and one part for each kind side by side. Only the part of the tag is not zero.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Tagged {
    kind: EventKind,
    ohlcvc: Ohlcvc,
    open_interest: OpenInterest,
    quote: Quote,
    trade: Trade,
    control: Control,
    raw: Raw,
}

/// An event as a channel carries it: 488 bytes, and two tails on the heap.
#[derive(Clone, Debug)]
pub struct Event {
    tagged: Tagged,
    /// A text, mostly none.
    detail: Option<CString>,
    /// Bytes, mostly none.
    payload: Option<Vec<u8>>,
}

const _: () = assert!(size_of::<Tagged>() == 448);
const _: () = assert!(size_of::<Event>() == 488);
const _: () = assert!(<thalweg_lab::lab::Event as thalweg::wire::Decode>::SIZE == 488);

/// The fields of an event that a consumer reads.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Its number: the mark of the run, its producer, its index.
    number: u64,
    /// When it was due, in ns of the monotonic clock.
    at: u64,
    /// Its other fields that are read.
    digest: u64,
}

impl Look {
    #[inline]
    fn new(number: u64, at: u64, [first, last]: [u64; 2], tails: usize) -> Self {
        let digest = first.rotate_left(8) ^ last.rotate_left(16);
        Self {
            number,
            at,
            digest: digest.wrapping_add(tails as u64),
        }
    }

    #[inline]
    fn of_quote(kind: EventKind, quote: &Quote, tails: usize) -> Self {
        let last = quote.bid.to_bits() ^ u64::from(quote.ask_size.unsigned_abs());
        Self::new(quote.number, quote.received_at, [kind as u64, last], tails)
    }
}

impl From<&EventView<'_>> for Look {
    #[inline]
    fn from(event: &EventView<'_>) -> Self {
        let tails = event.detail.len() + event.payload.len();
        Self::of_quote(event.kind, &event.quote, tails)
    }
}

impl From<&Tick> for Look {
    #[inline]
    fn from(tick: &Tick) -> Self {
        Self::new(tick.number, tick.at, [tick.bid, tick.volume], 0)
    }
}

impl From<&Pulse> for Look {
    #[inline]
    fn from(pulse: &Pulse) -> Self {
        Self::new(pulse.number, 0, [pulse.kind, 0], 0)
    }
}

/// An event as a channel carries it.
pub trait Item: Clone + Send + Sync + 'static {
    /// Number `n`, due `at`, with these tails.
    fn make(n: u64, at: u64, tails: &(String, Vec<u8>)) -> Self;
    /// The fields that a consumer reads.
    fn look(&self) -> Look;
}

impl Item for Pulse {
    #[inline]
    fn make(n: u64, _: u64, _: &(String, Vec<u8>)) -> Self {
        ticks::pulse(n)
    }

    #[inline]
    fn look(&self) -> Look {
        self.into()
    }
}

impl Item for Tick {
    #[inline]
    fn make(n: u64, at: u64, _: &(String, Vec<u8>)) -> Self {
        Self {
            at,
            ..ticks::tick(n)
        }
    }

    #[inline]
    fn look(&self) -> Look {
        self.into()
    }
}

impl Item for Event {
    #[inline]
    fn make(n: u64, at: u64, (detail, payload): &(String, Vec<u8>)) -> Self {
        Self {
            tagged: Tagged {
                kind: EventKind::Quote,
                ohlcvc: Ohlcvc::default(),
                open_interest: OpenInterest::default(),
                quote: quote(n, at),
                trade: Trade::default(),
                control: Control::default(),
                raw: Raw::default(),
            },
            // All bytes of the text are the same letter, none of them 0.
            detail: (!detail.is_empty())
                .then(|| CString::new(detail.as_str()).ok())
                .flatten(),
            payload: (!payload.is_empty()).then(|| payload.clone()),
        }
    }

    #[inline]
    fn look(&self) -> Look {
        let detail = self.detail.as_ref().map_or(0, |d| d.as_bytes().len());
        let tails = detail + self.payload.as_ref().map_or(0, Vec::len);
        Look::of_quote(self.tagged.kind, &self.tagged.quote, tails)
    }
}

/// The work of a consumer for each event, in addition to reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// No work.
    None,
    /// A microsecond's work.
    Busy,
    /// No work, but a sleep of 5 ms after each 10,000 events.
    Bursty,
    /// No work, but it reads the clock for each event.
    Timed,
}

/// A consumer. It receives each event of each producer.
#[derive(Debug)]
pub struct Consumer {
    work: Work,
    mark: u64,
    /// The next index of each producer.
    next: Vec<u64>,
    taken: u64,
    wrong: u64,
    sum: u64,
    latencies: Latencies,
}

impl Consumer {
    /// A consumer of a run with this mark.
    #[must_use]
    pub fn new(work: Work, producers: u64, mark: u64) -> Self {
        Self {
            work,
            mark,
            next: vec![0; producers as usize],
            taken: 0,
            wrong: 0,
            sum: 0,
            latencies: Latencies::new(),
        }
    }

    /// Number of events received.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The latencies measured.
    #[must_use]
    pub fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// Receives one event.
    #[inline]
    pub fn take(&mut self, of: Look) {
        if self.work == Work::Timed {
            self.latencies.record(clock::now().saturating_sub(of.at));
        }
        let own = of.number.wrapping_sub(self.mark);
        match self.next.get_mut((own >> SEQUENCE_BITS) as usize) {
            Some(next) => {
                self.wrong += u64::from(own & ((1 << SEQUENCE_BITS) - 1) != *next);
                *next += 1;
            }
            None => self.wrong += 1,
        }
        self.sum = self.sum.wrapping_add(of.digest);
        self.taken += 1;
        match self.work {
            Work::None | Work::Timed => {}
            Work::Busy => {
                let began = Instant::now();
                while began.elapsed() < Duration::from_micros(1) {
                    std::hint::spin_loop();
                }
            }
            Work::Bursty => {
                if self.taken.is_multiple_of(10_000) {
                    sleep(Duration::from_millis(5));
                }
            }
        }
    }

    /// Checks that it received all `count` events, each producer's share in order, with the
    /// contents that `expected` gives for their numbers.
    ///
    /// # Errors
    /// An event is missing, duplicated, out of its producer's order, has wrong contents, or was
    /// written before the run began.
    pub fn check(
        &self,
        count: u64,
        expected: impl Fn(u64) -> Look,
        subject: &str,
    ) -> Result<(), Problem> {
        let share = count / self.next.len() as u64;
        let mut sum = 0u64;
        for own in 0..self.next.len() as u64 {
            let numbers = (0..share).map(|index| number(self.mark, own, index));
            sum = numbers.fold(sum, |sum, n| sum.wrapping_add(expected(n).digest));
        }
        let whole = self.next.iter().all(|next| *next == share) && self.sum == sum;
        if whole && self.wrong == 0 && self.taken == count && count > 0 {
            return Ok(());
        }
        Err(Problem::Check(format!(
            "{subject}: {} of {count} events, {} out of order or written before the start, with sum {}, which should be {sum}",
            self.taken, self.wrong, self.sum
        )))
    }
}

/// The fields that a consumer must read of event number `n`, of 488 bytes and `tails` more.
#[must_use]
pub fn of_event(n: u64, tails: u32) -> Look {
    Look::of_quote(EventKind::Quote, &quote(n, n), tails as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: u64 = 1 << 61;

    fn fed(producers: u64, numbers: &[(u64, u64)]) -> Result<(), Problem> {
        let mut consumer = Consumer::new(Work::None, producers, MARK);
        for (own, index) in numbers {
            consumer.take(of_event(number(MARK, *own, *index), 0));
        }
        consumer.check(4, |n| of_event(n, 0), "it")
    }

    #[test]
    fn event_that_is_lost_doubled_or_swapped_fails_the_check() {
        assert!(fed(1, &[(0, 0), (0, 1), (0, 2), (0, 3)]).is_ok());
        for wrong in [
            &[0, 1, 2][..],
            &[1, 2, 3],
            &[0, 1, 1, 2, 3],
            &[0, 1, 1, 3],
            &[1, 0, 2, 3],
            &[],
        ] {
            let numbers: Vec<_> = wrong.iter().map(|index| (0, *index)).collect();
            assert!(fed(1, &numbers).is_err(), "{wrong:?}");
        }
        let two = fed(2, &[(1, 0), (0, 0), (0, 1), (1, 1)]);
        assert!(two.is_ok(), "each producer has its order");
        assert!(fed(2, &[(1, 1), (0, 0), (0, 1), (1, 0)]).is_err());
        assert!(fed(2, &[(2, 0), (0, 0), (0, 1), (1, 1)]).is_err());
    }

    #[test]
    fn event_without_the_mark_or_with_other_contents_fails_the_check() {
        let mut early = Consumer::new(Work::None, 1, MARK);
        early.take(of_event(0, 0));
        assert!(early.check(1, |n| of_event(n, 0), "it").is_err());
        let mut tailed = Consumer::new(Work::None, 1, MARK);
        tailed.take(of_event(MARK, 40));
        assert!(tailed.check(1, |n| of_event(n, 0), "it").is_err());
        assert!(tailed.check(1, |n| of_event(n, 40), "it").is_ok());
    }

    #[test]
    fn channel_and_stream_carry_the_same_event() {
        let tails = thalweg_lab::events::tails(40);
        let event = Event::make(7, 1, &tails);
        let view = thalweg_lab::events::event(7, 1, &tails.0, &tails.1);
        assert_eq!(event.look().digest, Look::from(&view).digest);
        assert_eq!(event.look().digest, of_event(7, 40).digest);
        assert_eq!((event.look().number, event.look().at), (7, 1));
    }
}
