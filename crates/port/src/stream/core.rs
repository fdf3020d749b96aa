//! The state that a stream's writers and reader share, and the end of a stream.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::Waker;

use thalweg_queue::{AtomicWaker, EventFd, barrier};
use thalweg_wire::evolve::Conversion;

use crate::code::{Code, Failure};
use crate::end_stream::EndStream;
use crate::handles::{HandleObject, Kind};
use crate::package::{Overflow, StreamOptions};
use crate::stream::callback::Callback;
use crate::stream::counts::{Counts, Reason};
use crate::stream::lease::Lease;
use crate::stream::outcome::StreamOutcome;
use crate::stream::owner::StreamOwner;
use crate::stream::pool;
use crate::stream::queue::Queue;
use crate::stream::stats::MethodStats;
use crate::stream::waking::{CALLBACK, FENCED, UNFENCED};

/// Maximum number of records in a segment, and tail bytes for each: a path and a line of text.
const SLOTS: u32 = 256;
const TAIL_BYTES: u32 = 192;

/// A stream of any record type. See the module documentation for the rules.
pub struct StreamCore {
    pub(super) owner: Arc<dyn StreamOwner>,
    pub(super) stride: u32,
    pub(super) options: StreamOptions,
    /// Records per segment, and segments in the stream.
    pub(super) slots: u32,
    pub(super) max_segments: usize,
    pub(super) gate: AtomicWaker,
    /// How writers notify readers: see [`StreamCore::wake_reader`].
    pub(super) wake_mode: AtomicU8,
    pub(super) writers: AtomicU32,
    /// Number of times a writer woke the reader.
    pub(super) wakes: AtomicU64,
    /// Statistics of the method, and the stream's key in them. `None` for an additional reader; the
    /// inner `None` if there was no memory to register the stream.
    pub(super) method_stats: Arc<MethodStats>,
    stats_key: Option<Option<usize>>,
    /// For an additional reader: the stream that the writers write to.
    pub(super) source: Option<Weak<StreamCore>>,
    /// Additional readers. Changed under the queue's lock.
    tees: Mutex<Arc<[Arc<StreamCore>]>>,
    /// The number of the next writer.
    pub(super) next_writer: AtomicU64,
    /// The stream has an outcome, or the reader is gone. Writers check it for each record.
    pub(super) has_ended: AtomicBool,
    pub(super) outcome: OnceLock<StreamOutcome>,
    /// The outcome with its error in the reader's version. Unset if both versions are equal.
    pub(super) outcome_for_reader: OnceLock<StreamOutcome>,
    pub(super) closed: AtomicBool,
    /// A thread is reading.
    pub(super) is_reading: AtomicBool,
    pub(super) queue: Mutex<Queue>,
    /// The lease of the callback.
    pub(super) lease: Lease<Callback>,
    /// The stream's own eventfd, created on demand.
    pub(super) event: OnceLock<Arc<EventFd>>,
    /// Conversion of the records for a reader with another version.
    pub(super) conversion: OnceLock<Arc<Conversion<'static>>>,
}

impl std::fmt::Debug for StreamCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("options", &self.options)
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}

/// Tail bytes in a segment. A record that fits is never above the record limit, so a writer checks
/// the limit only if it needs another segment.
fn tail_capacity(slots: u32, stride: u32, options: &StreamOptions) -> u32 {
    (slots * TAIL_BYTES).min(options.max_record_size.saturating_sub(stride) & !7)
}

pub(super) fn lock(mutex: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    // No service code runs under this lock.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StreamCore {
    pub(crate) fn new(
        owner: Arc<dyn StreamOwner>,
        size: u32,
        align: u32,
        options: StreamOptions,
    ) -> Arc<Self> {
        let stride = size.next_multiple_of(align).max(1);
        Self::build(owner, stride, options, None)
    }

    /// `source` is the stream that an additional reader reads.
    pub(super) fn build(
        owner: Arc<dyn StreamOwner>,
        stride: u32,
        options: StreamOptions,
        source: Option<Weak<Self>>,
    ) -> Arc<Self> {
        // Records are dropped by whole segments, and an open batch keeps one, so segments are small
        // compared to the capacity.
        let (slots, max_segments) = match options.overflow {
            Overflow::Latest => (1, 1),
            Overflow::Conflate(_) => (1, options.capacity),
            _ => {
                let slots = (options.capacity / 32).clamp(2, SLOTS);
                (slots, options.capacity.div_ceil(slots))
            }
        };
        let method_stats = owner.method_stats();
        Arc::new_cyclic(|stream| Self {
            stats_key: source
                .is_none()
                .then(|| method_stats.register(stream.clone())),
            method_stats,
            tees: Mutex::new(Arc::new([])),
            owner,
            stride,
            options,
            slots,
            max_segments: max_segments as usize,
            gate: AtomicWaker::new(),
            wake_mode: AtomicU8::new(if barrier::is_asymmetric() {
                UNFENCED
            } else {
                FENCED
            }),
            writers: AtomicU32::new(1),
            wakes: AtomicU64::new(0),
            next_writer: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
            outcome: OnceLock::new(),
            outcome_for_reader: OnceLock::new(),
            closed: AtomicBool::new(false),
            is_reading: AtomicBool::new(false),
            queue: Mutex::new(Queue::new(
                slots,
                tail_capacity(slots, stride, &options),
                max_segments as usize,
                source.is_some(),
            )),
            lease: Lease::default(),
            source,
            event: OnceLock::new(),
            conversion: OnceLock::new(),
        })
    }

    /// Tail bytes in a segment.
    pub(super) fn tails(&self) -> u32 {
        tail_capacity(self.slots, self.stride, &self.options)
    }

    #[inline]
    pub(crate) fn check_open(&self) -> Result<(), Failure> {
        if self.has_ended.load(Ordering::Acquire) {
            return self.end_reason();
        }
        Ok(())
    }

    #[cold]
    fn end_reason(&self) -> Result<(), Failure> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Code::Closed.because("the reader has closed the stream"));
        }
        match self.outcome.get() {
            Some(outcome) => Err(outcome.why.clone()),
            None => Ok(()),
        }
    }

    /// Counts of the records so far, without control records.
    pub fn counts(&self) -> Counts {
        let mut queue = lock(&self.queue);
        self.settle(&mut queue);
        queue.counts()
    }

    /// Number of records that are missing after the last one, and why. Known once the last record
    /// was delivered.
    pub fn lost_at_end(&self) -> (u64, Option<Reason>) {
        let gap = lock(&self.queue).gap_at_end();
        (gap.lost, gap.reason)
    }

    /// Rule 5.
    pub(crate) fn end(&self, why: Failure) {
        self.end_with(StreamOutcome::from(why));
    }

    /// Like [`end`](Self::end), also with the service's own error.
    pub(super) fn end_with(&self, outcome: StreamOutcome) {
        let tees = self.tees();
        if self.outcome.set(outcome.clone()).is_ok() || !tees.is_empty() {
            self.wake_all_at_end();
        }
        tees.iter().for_each(|tee| tee.end_with(outcome.clone()));
    }

    pub(super) fn tees(&self) -> Arc<[Arc<Self>]> {
        Arc::clone(&self.tees.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The caller holds the queue's lock.
    pub(super) fn set_tees(&self, tees: Arc<[Arc<Self>]>) {
        let mut place = self.tees.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *place, tees);
        drop(place);
        drop(before);
    }

    pub(super) fn wake_all_at_end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        let (waiters, lingering_reader) = {
            let mut queue = lock(&self.queue);
            let lingering_reader = queue.lingering_reader.take();
            queue.stats.wakes += u64::from(lingering_reader.is_some());
            (queue.waiters.take(), lingering_reader)
        };
        waiters
            .into_iter()
            .chain(lingering_reader)
            .for_each(Waker::wake);
        if self.wake_mode.load(Ordering::Relaxed) & CALLBACK == 0 {
            self.count_wake(self.gate.signal());
        } else if !self.closed.load(Ordering::Acquire) {
            self.deliver_in_actor();
        }
        self.owner.stream_ended();
    }

    /// Closes the stream of a reader that never read the last `unseen` records of its open batch.
    pub(super) fn close_unread(&self, unseen: u64) {
        lock(&self.queue).unseen = unseen;
        self.close();
    }

    /// Closes the reading end. Writers notice it and stop. An open batch becomes invalid. A
    /// callback gets no further call.
    pub fn close(&self) {
        if self.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        let open = lock(&self.queue).open.take();
        drop(open);
        // Whatever the outcome was, writers and the reader now see that the stream is closed.
        let _ = self.outcome.set(
            Code::Cancelled
                .because("the reader has closed the stream")
                .into(),
        );
        self.leave_tee();
        self.close_callback();
    }
}

impl EndStream for StreamCore {
    fn end(&self, why: Failure) {
        self.end(why);
    }
}

// SAFETY: streams have no other type.
unsafe impl HandleObject for StreamCore {
    fn has_kind(kind: Kind) -> bool {
        kind == Kind::Stream
    }

    fn close_handle(self: Arc<Self>, _: Kind, _: u32) {
        self.close();
    }
}

impl Drop for StreamCore {
    fn drop(&mut self) {
        if let Some(stats_key) = self.stats_key {
            self.method_stats
                .unregister(stats_key, &self.own_stats(false));
        }
        let queue = self.queue.get_mut();
        pool::put(
            queue
                .unwrap_or_else(PoisonError::into_inner)
                .take_standard(),
        );
    }
}
