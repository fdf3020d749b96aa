//! What the streams of a client's method did, those that are gone among them.
//!
//! A stream has its own books and writes nothing anywhere else; who asks for the sum goes round. A stream that goes enters its books into
//! the sum of those before, in its destructor, under the lock of the list in which it stands: so it is counted once, here or there.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::thread;

use thalweg_queue::no_preempt::lock;

use crate::code::{Code, Failure};
use crate::instance::Instance;
use crate::slab::Slab;
use crate::stream::core::{self, StreamCore};
use crate::stream::counts::Counts;

/// Classes of ages.
pub(super) const AGES: usize = 32;

/// What a method's streams did since its client was opened: those that are open, and those that are gone.
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
    /// Streams.
    pub streams: u64,
    /// Records. `undelivered` are those of streams that were closed, or ended and are gone: once writers are gone, `published` is the sum of the others
    /// and of `occupancy`.
    pub counts: Counts,
    /// Records that lie in open streams now.
    pub occupancy: u64,
    /// The most places that one stream had taken, in records: a segment that was begun counts as a whole.
    pub high_water: u64,
    /// Records of the control lane.
    pub control: u64,
    /// How often a writer woke a reader.
    pub wakes: u64,
    /// How often a reader asked to be woken.
    pub parks: u64,
    /// How often a writer found no room and waited.
    pub waits: u64,
    /// Streams that ended neither regularly nor by who reads them: by a panic, a deadline, a service that was lost.
    pub faults: u64,
    /// How long segments lay from their beginning until their first record was taken: `age[i]` of them from 2^i nanoseconds on, the last with all
    /// that is longer.
    pub age: [u64; AGES],
}

impl Stats {
    /// And those of another stream.
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

/// Of one method of a client.
#[derive(Debug, Default)]
pub(crate) struct MethodStats(Mutex<Streams>);

#[derive(Debug, Default)]
struct Streams {
    closed: Stats,
    open: Slab<Weak<StreamCore>>,
}

impl MethodStats {
    /// A stream stands in them from now on. Where; `None`: there is no memory for it, and they have it only once it is gone.
    pub(super) fn register(&self, stream: Weak<StreamCore>) -> Option<usize> {
        lock(&self.0).open.insert(stream).ok()
    }

    /// The stream at this place goes, and leaves this.
    pub(super) fn unregister(&self, key: Option<usize>, last: &Stats) {
        let mut entries = lock(&self.0);
        if let Some(key) = key {
            entries.open.remove(key);
        }
        entries.closed.add(last);
    }

    /// The sum.
    pub(crate) fn sum(&self) -> Stats {
        loop {
            let (mut sum, open) = {
                let entries = lock(&self.0);
                let open: Vec<_> = entries.open.iter().map(Weak::upgrade).collect();
                (entries.closed, open)
            };
            // One of them goes just now, or is about to be there: its destructor, or its maker, is on its way here.
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

/// Of all methods of a client that ever had a stream.
#[derive(Debug, Default)]
pub(crate) struct StatsByMethod(Mutex<Vec<Option<Arc<MethodStats>>>>);

impl StatsByMethod {
    /// Of this method.
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
    /// What all streams of this client's method did.
    pub fn stats(&self) -> Stats {
        self.method_stats.sum()
    }

    /// Of this one alone. What lies in it will be read by nobody, unless it `is_open`.
    pub(super) fn own_stats(&self, is_open: bool) -> Stats {
        let queue = core::lock(&self.queue);
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

impl Instance {
    /// What the streams of a method did.
    ///
    /// # Errors
    /// `argument`: there is no such method.
    pub fn stream_stats(&self, method: u32) -> Result<Stats, Failure> {
        let method = self.library_method(method)?;
        if self.package.methods.get(method as usize).is_none() {
            return Err(Code::Argument.because(format!("there is no method {method}")));
        }
        Ok(self.method_stats.of_method(method).sum())
    }
}
