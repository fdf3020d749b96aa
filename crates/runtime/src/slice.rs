//! How long what runs on a worker has been running while others waited, seen from the points at which it may be asked to yield.
//!
//! A look at the clock costs 20 to 30 ns and a point must cost 1, so only some points look: as many as come in an eighth of a slice, by the
//! last looks, and never fewer than one in [`MOST_POINTS`]. A ticker that sets a flag costs a thread that runs ten thousand times a second as long
//! as anybody waits: on one processor that is two switches for each slice.

use std::cell::Cell;
use std::time::Duration;

use thalweg_queue::clock;

/// A 64th of a look is half a nanosecond.
const MOST_POINTS: u32 = 64;
/// A turn's first look comes after so many points at most: those that end before have not looked at all.
const FIRST_POINTS: u32 = 8;

#[derive(Debug)]
pub(crate) struct Slice {
    /// Points left before the next look.
    left: Cell<u32>,
    /// From one look to the next.
    points: Cell<u32>,
    /// The last look in this turn; 0: none yet.
    looked: Cell<u64>,
    /// When others were first seen to wait in this turn; 0: not yet.
    since: Cell<u64>,
}

impl Slice {
    pub(crate) fn new() -> Self {
        Self {
            left: Cell::new(0),
            points: Cell::new(FIRST_POINTS),
            looked: Cell::new(0),
            since: Cell::new(0),
        }
    }

    /// A turn begins.
    #[inline(always)]
    pub(crate) fn begin(&self) {
        self.left.set(self.points.get().min(FIRST_POINTS));
        self.looked.set(0);
        self.since.set(0);
    }

    /// One more point: whether it is time to look.
    #[inline(always)]
    pub(crate) fn is_due(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.wrapping_sub(1));
        left <= 1
    }

    /// Not now: the next point looks.
    pub(crate) fn put_off(&self) {
        self.left.set(1);
    }

    /// Looks at the clock: whether others have waited for a slice.
    pub(crate) fn is_over(&self, others_wait: bool, slice: Duration) -> bool {
        let now = clock::now();
        let slice = slice.as_nanos() as u64;
        let last = self.looked.replace(now);
        let points = self.points.get();
        if last != 0 {
            let took = now.saturating_sub(last);
            if took > slice / 8 {
                self.points.set((points / 2).max(1));
            } else if took < slice / 16 {
                self.points.set((points * 2).min(MOST_POINTS));
            }
        }
        self.left.set(self.points.get());
        self.has_ended_at(now, others_wait, slice)
    }

    /// The same for a point that is always looked at, and from which nothing is learnt.
    pub(crate) fn has_ended(&self, others_wait: bool, slice: Duration) -> bool {
        self.has_ended_at(clock::now(), others_wait, slice.as_nanos() as u64)
    }

    fn has_ended_at(&self, now: u64, others_wait: bool, slice: u64) -> bool {
        if !others_wait {
            self.since.set(0);
            return false;
        }
        if self.since.get() == 0 {
            self.since.set(now);
        }
        now.saturating_sub(self.since.get()) >= slice
    }

    /// What is left; all of it while nobody waits.
    pub(crate) fn remaining(&self, others_wait: bool, slice: Duration) -> Duration {
        let since = self.since.get();
        if !others_wait || since == 0 {
            return slice;
        }
        slice.saturating_sub(Duration::from_nanos(clock::now().saturating_sub(since)))
    }
}
