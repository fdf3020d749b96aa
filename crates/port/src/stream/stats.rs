//! Statistics of the streams of a client's method, including closed streams.
//!
//! A stream updates only its own counters. A thread that requests the sum reads all open streams.
//! The destructor of a stream adds its counters to the sum of closed streams, under the lock of the
//! list that contains the open ones, so each stream is counted exactly once.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::thread;

use thalweg_queue::no_preempt::lock;

use crate::code::Code;
use crate::slab::Slab;
use crate::stream::core::{self, StreamCore};
use crate::stream::counts::Counts;

/// Number of age classes.
pub(super) const AGES: usize = 32;

/// Statistics of a method's streams since its client was opened, for open and closed streams.
///
/// ```
/// use thalweg_port::{Failure, StreamReader};
///
/// fn lost(reader: &StreamReader<u64>) -> u64 {
///     let stats = reader.stats();
///     stats.counts.dropped() + stats.counts.conflated()
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of streams.
    pub streams: u64,
    /// Counts of records. `undelivered` counts the records of streams that were closed, or that
    /// ended and were dropped. After the writers are gone, `published` is the sum of the others and
    /// of `occupancy`.
    pub counts: Counts,
    /// Records that are in open streams now.
    pub occupancy: u64,
    /// Maximum used capacity of one stream in records. A segment that was begun counts completely.
    pub high_water: u64,
    /// Number of control records.
    pub control: u64,
    /// Number of times a writer woke a reader.
    pub wakes: u64,
    /// Number of times a reader asked to be woken.
    pub parks: u64,
    /// Number of times a writer waited because the stream was full.
    pub waits: u64,
    /// Streams that ended because of a panic, a deadline or a lost service, and not regularly or by
    /// their reader.
    pub faults: u64,
    /// Time from the beginning of a segment until its first record was taken: `age[i]` counts
    /// segments from 2^i nanoseconds on, and the last class includes all longer times.
    pub age: [u64; AGES],
}

impl Stats {
    /// Adds the statistics of another stream.
    fn add(&mut self, other: &Self) {
        self.streams += other.streams;
        self.counts.add(&other.counts);
        self.occupancy += other.occupancy;
        self.high_water = self.high_water.max(other.high_water);
        self.control += other.control;
        self.wakes += other.wakes;
        self.parks += other.parks;
        self.waits += other.waits;
        self.faults += other.faults;
        for (sum, other) in self.age.iter_mut().zip(other.age) {
            *sum += other;
        }
    }
}

/// The class of an age in nanoseconds.
pub(super) fn age_class(age: u64) -> usize {
    ((age | 1).ilog2() as usize).min(AGES - 1)
}

/// Statistics of one method of a client.
#[derive(Debug, Default)]
pub(crate) struct MethodStats(Mutex<Streams>);

#[derive(Debug, Default)]
struct Streams {
    closed: Stats,
    open: Slab<Weak<StreamCore>>,
}

impl MethodStats {
    /// Registers a stream and returns its key. `None` if there is no memory; the stream is then
    /// counted only after it is closed.
    pub(super) fn register(&self, stream: Weak<StreamCore>) -> Option<usize> {
        lock(&self.0).open.insert(stream).ok()
    }

    /// Removes the stream with this key and adds its final statistics.
    pub(super) fn unregister(&self, key: Option<usize>, last: &Stats) {
        let mut entries = lock(&self.0);
        if let Some(key) = key {
            entries.open.remove(key);
        }
        entries.closed.add(last);
    }

    /// The sum over all streams.
    pub(crate) fn sum(&self) -> Stats {
        loop {
            let (mut sum, open) = {
                let entries = lock(&self.0);
                let open: Vec<_> = entries.open.iter().map(Weak::upgrade).collect();
                (entries.closed, open)
            };
            // A stream is being dropped or created at this moment: its destructor or its
            // constructor is about to take this lock.
            if open.iter().any(Option::is_none) {
                drop(open);
                thread::yield_now();
                continue;
            }
            let open: Vec<Arc<StreamCore>> = open.into_iter().flatten().collect();
            for stream in &open {
                sum.add(&stream.own_stats(true));
            }
            return sum;
        }
    }
}

/// Statistics of all methods of a client that have had a stream.
#[derive(Debug, Default)]
pub(crate) struct StatsByMethod(Mutex<Vec<Option<Arc<MethodStats>>>>);

impl StatsByMethod {
    /// Statistics of one method.
    pub(crate) fn of_method(&self, method: u32) -> Arc<MethodStats> {
        let mut all = lock(&self.0);
        let key = method as usize;
        if all.len() <= key {
            all.resize_with(key + 1, || None);
        }
        Arc::clone(all[key].get_or_insert_default())
    }
}

impl StreamCore {
    /// Statistics of all streams of this client's method.
    pub fn stats(&self) -> Stats {
        self.method_stats.sum()
    }

    /// Statistics of this stream alone. Records in it count as `occupancy` if it `is_open`, and
    /// otherwise as `undelivered`.
    pub(super) fn own_stats(&self, is_open: bool) -> Stats {
        let mut queue = core::lock(&self.queue);
        self.settle(&mut queue);
        let mut stats = Stats {
            streams: 1,
            counts: queue.counts(),
            wakes: queue.stats.wakes + self.wakes.load(Ordering::Relaxed),
            ..queue.stats
        };
        if is_open && !self.closed.load(Ordering::Acquire) {
            stats.occupancy = std::mem::take(&mut stats.counts.undelivered);
        }
        let is_fault = |code| !matches!(code, Code::Closed | Code::Cancelled);
        let outcome = self.outcome.get();
        stats.faults = outcome
            .is_some_and(|outcome| is_fault(outcome.why.code))
            .into();
        stats
    }
}
