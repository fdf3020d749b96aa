//! The consumer of events: its work per event, and its check that all events arrived.

use std::thread::sleep;
use std::time::{Duration, Instant};

use thalweg::queue::clock;
use thalweg_lab::events::{WORDS, words};
use thalweg_lab::lab::{EventView, Pulse, Tick};
use thalweg_lab::ticks;

use super::event::Event;
use crate::latency::Latencies;
use crate::problem::Problem;

/// The fields of an event that a consumer reads.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Its number, from which the others follow.
    pub number: u64,
    /// Its second number.
    pub kind: u64,
    /// Its last one.
    pub last: u64,
    /// Bytes of both tails.
    pub tails: usize,
    /// When it was due, in ns of the monotonic clock.
    pub at: u64,
}

impl From<&EventView<'_>> for Look {
    #[inline]
    fn from(event: &EventView<'_>) -> Self {
        Self {
            number: event.words[0],
            kind: event.words[1],
            last: event.words[WORDS - 1],
            tails: event.detail.len() + event.payload.len(),
            at: event.rest0,
        }
    }
}

impl From<&Tick> for Look {
    #[inline]
    fn from(tick: &Tick) -> Self {
        Self {
            number: tick.number,
            kind: tick.bid,
            last: tick.volume,
            tails: 0,
            at: tick.at,
        }
    }
}

impl From<&Pulse> for Look {
    #[inline]
    fn from(pulse: &Pulse) -> Self {
        Self {
            number: pulse.number,
            kind: pulse.kind,
            last: 0,
            tails: 0,
            at: 0,
        }
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

/// An event of 488 bytes, its tails on the heap, and when it was due.
#[derive(Clone, Debug)]
pub struct Stamped {
    event: Event,
    at: u64,
}

impl Item for Stamped {
    #[inline]
    fn make(n: u64, at: u64, (detail, payload): &(String, Vec<u8>)) -> Self {
        let mut event = Event::new(n);
        if !detail.is_empty() {
            // All its bytes are the same letter, none of them 0.
            event.detail = std::ffi::CString::new(detail.as_str()).ok();
        }
        if !payload.is_empty() {
            event.payload = Some(payload.clone());
        }
        Self { event, at }
    }

    #[inline]
    fn look(&self) -> Look {
        let words = &self.event.fixed.words;
        let detail = self.event.detail.as_ref().map_or(0, |d| d.as_bytes().len());
        Look {
            number: words[0],
            kind: words[1],
            last: words[WORDS - 1],
            tails: detail + self.event.payload.as_ref().map_or(0, Vec::len),
            at: self.at,
        }
    }
}

/// The work of a consumer for each event, in addition to reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appetite {
    /// No work.
    Free,
    /// A microsecond's work.
    Busy,
    /// No work, but a sleep of 5 ms after each 10,000 events.
    Bursty,
}

impl Appetite {
    /// Its name as a value of the parameter.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Free => "none",
            Self::Busy => "1 us",
            Self::Bursty => "5 ms each 10,000",
        }
    }
}

/// A consumer.
#[derive(Debug)]
pub struct Eater {
    appetite: Appetite,
    /// The next number of each producer; `None` before its first.
    next: Vec<Option<u64>>,
    first: u64,
    eaten: u64,
    wrong: u64,
    sum: u64,
    latencies: Option<Latencies>,
}

impl Eater {
    /// A consumer of the events of `producers` producers.
    #[must_use]
    pub fn new(appetite: Appetite, producers: u64) -> Self {
        Self {
            appetite,
            next: vec![None; producers as usize],
            first: u64::MAX,
            eaten: 0,
            wrong: 0,
            sum: 0,
            latencies: None,
        }
    }

    /// A consumer that reads the clock for each event.
    #[must_use]
    pub fn timing() -> Self {
        Self {
            latencies: Some(Latencies::new()),
            ..Self::new(Appetite::Free, 1)
        }
    }

    /// Number of events received.
    #[must_use]
    pub fn eaten(&self) -> u64 {
        self.eaten
    }

    /// The latencies measured.
    #[must_use]
    pub fn latencies(self) -> Latencies {
        self.latencies.unwrap_or_default()
    }

    /// Receives one event.
    #[inline]
    pub fn eat(&mut self, of: Look) {
        if let Some(latencies) = &mut self.latencies {
            latencies.record(clock::now().saturating_sub(of.at));
        }
        let producers = self.next.len() as u64;
        let next = &mut self.next[(of.number % producers) as usize];
        self.wrong += u64::from(next.is_some_and(|next| next != of.number));
        *next = Some(of.number + producers);
        self.first = self.first.min(of.number);
        self.sum = self.sum.wrapping_add(mixed(of));
        self.eaten += 1;
        match self.appetite {
            Appetite::Free => {}
            Appetite::Busy => {
                let began = Instant::now();
                while began.elapsed() < Duration::from_micros(1) {
                    std::hint::spin_loop();
                }
            }
            Appetite::Bursty => {
                if self.eaten.is_multiple_of(10_000) {
                    sleep(Duration::from_millis(5));
                }
            }
        }
    }

    /// Checks that the consumer received all events up to number `count - 1`. They start at number
    /// 0, or at the first event received where `late` is set.
    ///
    /// # Errors
    /// An event is missing, duplicated, out of its producer's order, or has wrong contents.
    pub fn check(
        &self,
        count: u64,
        late: bool,
        expected: impl Fn(u64) -> Look,
        subject: &str,
    ) -> Result<(), Problem> {
        let first = if late { self.first } else { 0 };
        let sum = (first..count).fold(0_u64, |sum, n| sum.wrapping_add(mixed(expected(n))));
        let whole = self.eaten == count.saturating_sub(first) && self.sum == sum;
        if whole && self.wrong == 0 && self.eaten > 0 {
            return Ok(());
        }
        Err(Problem::Check(format!(
            "{subject}: {} of {count} events from {first} on, {} out of order, with sum {}, which should be {sum}",
            self.eaten, self.wrong, self.sum
        )))
    }
}

/// Combines the fields that were read into one number.
#[inline]
fn mixed(of: Look) -> u64 {
    (of.number ^ of.kind.rotate_left(8) ^ of.last.rotate_left(16)).wrapping_add(of.tails as u64)
}

/// The fields that a consumer must read of event number `n`, of 488 bytes and `tails` more.
#[must_use]
pub fn of_event(n: u64, tails: u32) -> Look {
    let words = words(n);
    Look {
        number: n,
        kind: words[1],
        last: words[WORDS - 1],
        tails: tails as usize,
        at: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(producers: u64, numbers: &[u64]) -> Eater {
        let mut eater = Eater::new(Appetite::Free, producers);
        for n in numbers {
            eater.eat(of_event(*n, 0));
        }
        eater
    }

    #[test]
    fn an_event_that_is_lost_doubled_or_swapped_is_seen() {
        let check = |producers, numbers: &[u64], late| {
            let expected = |n| of_event(n, 0);
            fed(producers, numbers)
                .check(4, late, expected, "it")
                .is_ok()
        };
        assert!(check(1, &[0, 1, 2, 3], false));
        assert!(check(1, &[2, 3], true), "it came late");
        for wrong in [
            &[0, 1, 2][..],
            &[1, 2, 3],
            &[0, 1, 1, 2, 3],
            &[1, 0, 2, 3],
            &[],
        ] {
            assert!(!check(1, wrong, false), "{wrong:?}");
        }
        assert!(!check(1, &[2], true));
        assert!(
            check(2, &[1, 0, 2, 3], false),
            "each producer has its order"
        );
        assert!(!check(2, &[2, 0, 1, 3], false));
    }

    #[test]
    fn tails_count() {
        let tails = thalweg_lab::events::tails(40);
        let stamped = Stamped::make(7, 1, &tails);
        assert_eq!(stamped.look().tails, 40);
        assert_eq!(mixed(stamped.look()), mixed(of_event(7, 40)));
        assert_ne!(mixed(stamped.look()), mixed(of_event(7, 0)));
    }
}
