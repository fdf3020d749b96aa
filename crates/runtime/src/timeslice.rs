//! Measures how long a task has run while other tasks waited. It is updated at the preemption
//! points of the task.
//!
//! A clock reading costs 20 to 30 ns, and a preemption point must cost 1 ns. Therefore only some
//! points read the clock: the interval is adjusted so that the clock is read about once per eighth
//! of a slice, and at least at every [`MAX_INTERVAL`]th point. The alternative, a ticker thread
//! that sets a flag, would run ten thousand times a second while any task waits; on one processor
//! that is two thread switches per slice.

use std::cell::Cell;
use std::time::Duration;

use thalweg_queue::clock;

/// A 64th of a clock reading is half a nanosecond.
const MAX_INTERVAL: u32 = 64;
/// The maximum number of points before the first clock reading of a slice. A task that ends earlier
/// never reads the clock.
const FIRST_INTERVAL: u32 = 8;
/// A task that took less time is not worth a wake-up of another worker, which costs 5 to 50 us.
const SHORT_NS: u64 = 20_000;

#[derive(Debug)]
pub(crate) struct TimeSlice {
    /// The number of points before the next clock reading.
    points_left: Cell<u32>,
    /// The number of points between two clock readings.
    interval: Cell<u32>,
    /// The number of points before the first clock reading of a slice.
    first_interval: Cell<u32>,
    /// The time of the last reading in this slice. 0 if there was none.
    last_check: Cell<u64>,
    /// The time at which other tasks were first seen to wait in this slice. 0 if none were seen.
    contended_since: Cell<u64>,
}

impl TimeSlice {
    pub(crate) fn new() -> Self {
        Self {
            points_left: Cell::new(0),
            interval: Cell::new(FIRST_INTERVAL),
            first_interval: Cell::new(FIRST_INTERVAL),
            last_check: Cell::new(0),
            contended_since: Cell::new(0),
        }
    }

    /// Begins a slice: a task gets the worker.
    #[inline(always)]
    pub(crate) fn begin(&self) {
        self.points_left.set(self.first_interval.get());
        self.last_check.set(0);
        self.contended_since.set(0);
    }

    /// Counts one point. Returns whether to read the clock.
    #[inline(always)]
    pub(crate) fn is_due(&self) -> bool {
        let points_left = self.points_left.get();
        self.points_left.set(points_left.wrapping_sub(1));
        points_left <= 1
    }

    /// Makes the next point read the clock.
    pub(crate) fn check_next(&self) {
        self.points_left.set(1);
    }

    /// Reads the clock. Returns whether other tasks have waited for a whole slice.
    pub(crate) fn is_over(&self, others_wait: bool, slice: Duration) -> bool {
        let now = clock::now();
        let slice = slice.as_nanos() as u64;
        let last = self.last_check.replace(now);
        let points = self.interval.get();
        if last != 0 {
            let took = now.saturating_sub(last);
            if took > slice / 8 {
                self.interval.set((points / 2).max(1));
            } else if took < slice / 16 {
                self.interval.set((points * 2).min(MAX_INTERVAL));
            }
        }
        let points = self.interval.get();
        self.points_left.set(points);
        self.first_interval.set(points.min(FIRST_INTERVAL));
        self.has_ended_at(now, others_wait, slice)
    }

    /// Like [`is_over`](Self::is_over), for points that always read the clock. Does not adjust the
    /// interval.
    pub(crate) fn has_ended(&self, others_wait: bool, slice: Duration) -> bool {
        self.has_ended_at(clock::now(), others_wait, slice.as_nanos() as u64)
    }

    fn has_ended_at(&self, now: u64, others_wait: bool, slice: u64) -> bool {
        if !others_wait {
            self.contended_since.set(0);
            return false;
        }
        if self.contended_since.get() == 0 {
            self.contended_since.set(now);
        }
        now.saturating_sub(self.contended_since.get()) >= slice
    }

    /// Whether other tasks have waited for less than [`SHORT_NS`]. `false` also if they were not seen.
    pub(crate) fn is_short(&self) -> bool {
        let since = self.contended_since.get();
        since != 0 && clock::now().saturating_sub(since) < SHORT_NS
    }

    /// Returns the rest of the slice. That is the whole slice while no other task waits.
    pub(crate) fn remaining(&self, others_wait: bool, slice: Duration) -> Duration {
        let since = self.contended_since.get();
        if !others_wait || since == 0 {
            return slice;
        }
        slice.saturating_sub(Duration::from_nanos(clock::now().saturating_sub(since)))
    }
}
