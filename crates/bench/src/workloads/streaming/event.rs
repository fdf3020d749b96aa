//! The event: 448 bytes and two tails on the heap, 488 bytes together.

use std::ffi::CString;

use thalweg_lab::events::{WORDS, words};
use thalweg_lab::lab::EventView;

use crate::problem::Problem;

/// The fixed part.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Fixed {
    /// The first is the event's number, the second its kind.
    pub words: [u64; WORDS],
}

/// An event as a channel carries it.
#[derive(Clone, Debug)]
pub struct Event {
    /// The part of fixed size.
    pub fixed: Fixed,
    /// A text, mostly none.
    pub detail: Option<CString>,
    /// Bytes, mostly none.
    pub payload: Option<Vec<u8>>,
}

const _: () = assert!(size_of::<Fixed>() == 448);
const _: () = assert!(size_of::<Event>() == 488);
const _: () = assert!(<thalweg_lab::lab::Event as thalweg::wire::Decode>::SIZE == 488);

impl Event {
    /// Event number `n`, with empty tails.
    #[must_use]
    #[inline]
    pub fn new(n: u64) -> Self {
        Self {
            fixed: Fixed { words: words(n) },
            detail: None,
            payload: None,
        }
    }
}

/// A consumer's record of the events it reads: for each event its number, its kind, its last number
/// and the length of its tails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    events: u64,
    sum: u64,
    out_of_order: u64,
}

impl Seen {
    /// Adds one event.
    #[inline]
    pub fn add(&mut self, number: u64, kind: u64, last: u64, tails: usize) {
        self.out_of_order += u64::from(number != self.events);
        self.events += 1;
        self.sum = self
            .sum
            .wrapping_add(number ^ kind.rotate_left(8) ^ last.rotate_left(16))
            .wrapping_add(tails as u64);
    }

    /// Adds one event as a channel carries it.
    #[inline]
    pub fn add_event(&mut self, event: &Event) {
        let words = &event.fixed.words;
        let tails = event.detail.as_ref().map_or(0, |d| d.as_bytes().len())
            + event.payload.as_ref().map_or(0, Vec::len);
        self.add(words[0], words[1], words[WORDS - 1], tails);
    }

    /// Adds one event as a stream of ours delivers it.
    #[inline]
    pub fn add_view(&mut self, event: &EventView<'_>) {
        let tails = event.detail.len() + event.payload.len();
        let words = &event.words;
        self.add(words[0], words[1], words[WORDS - 1], tails);
    }

    /// The record expected after the first `count` events.
    #[must_use]
    pub fn expected(count: u64) -> Self {
        let mut seen = Self::default();
        for n in 0..count {
            let words = words(n);
            seen.add(words[0], words[1], words[WORDS - 1], 0);
        }
        seen
    }

    /// # Errors
    /// An event is missing, duplicated or out of order, or has a wrong field.
    pub fn check(&self, expected: &Self, subject: &str) -> Result<(), Problem> {
        if self == expected {
            return Ok(());
        }
        Err(Problem::Check(format!(
            "{subject}: {self:?}, which should be {expected:?}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_is_lost_doubled_swapped_or_changed_is_seen() {
        let read = |numbers: &[u64]| {
            let mut seen = Seen::default();
            for n in numbers {
                seen.add_event(&Event::new(*n));
            }
            seen
        };
        let expected = Seen::expected(3);
        assert_eq!(read(&[0, 1, 2]), expected);
        for wrong in [&[0, 1][..], &[0, 2], &[0, 1, 1], &[1, 0, 2], &[0, 1, 2, 3]] {
            assert!(read(wrong).check(&expected, "it").is_err(), "{wrong:?}");
        }
        let mut changed = Event::new(2);
        changed.payload = Some(vec![1]);
        let mut seen = read(&[0, 1]);
        seen.add_event(&changed);
        assert!(seen.check(&expected, "it").is_err());
    }
}
