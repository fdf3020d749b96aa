//! Reading a stream: acquiring and releasing batches.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use thalweg_queue::{ParkResult, Parker};
use thalweg_runtime::{WakeReason, wait};
use thalweg_wire::Decode;

use crate::code::{Code, Failure};
use crate::stream::core::{StreamCore, lock};
use crate::stream::counts::Reason;
use crate::stream::segment::Segment;
use crate::stream::views::Views;
use crate::stream::waking::{BeforeSleep, callback_attached};

/// A batch that was acquired and not yet released.
#[derive(Clone, Debug)]
pub struct OpenBatch {
    pub(crate) segment: Arc<Segment>,
    pub(super) from: u32,
    /// Number of records.
    pub count: u32,
    /// End of the segment's tails when the batch was acquired.
    pub(super) end: u32,
    /// Sequence number of the first record.
    pub first_sequence: u64,
    /// Number of records that are missing directly before it.
    pub lost_before: u64,
    /// Why they are missing; `None` if none are.
    pub reason: Option<Reason>,
    /// It is a record of the control lane, which has its own sequence numbers.
    pub control: bool,
    /// The memory is kept, so released records stay unchanged.
    pub(super) kept: bool,
}

impl OpenBatch {
    /// The first byte of the memory. Offsets are relative to it. Valid until the batch is released.
    pub fn base(&self) -> *const u8 {
        self.segment.base()
    }

    /// Offset of the first record.
    pub fn first(&self) -> u32 {
        self.from * self.segment.stride()
    }

    /// Bytes from one record to the next.
    pub fn stride(&self) -> u32 {
        self.segment.stride()
    }

    /// Number of readable bytes from the base.
    pub fn size(&self) -> u32 {
        self.end
    }

    /// `count` records after the first `skip`.
    #[inline]
    pub(super) fn read<T: Decode>(&self, skip: u32, count: u32) -> Views<'_, T> {
        assert!(skip <= self.count && count <= self.count - skip);
        assert!(self.segment.stride() == T::SIZE.max(1), "rule 13");
        let first = self.from + skip;
        // SAFETY: `Queue::take` made the batch from the segment's mark, or made a longer batch of
        // which this is the rest.
        let (slots, tails, tails_at) = unsafe { self.segment.read(first, count, self.end) };
        Views::new(slots, first * self.segment.stride(), tails, tails_at)
    }
}

impl StreamCore {
    /// Acquires a batch of at most `max` records. Never waits.
    ///
    /// # Errors
    /// `would_park`: no record is available. `argument`: a batch is open, another thread is
    /// reading, or a callback receives the records. With `true`: the outcome of the stream, which
    /// is `closed` for a regular end.
    pub fn try_acquire(&self, max: u32) -> Result<OpenBatch, (Failure, bool)> {
        let mut queue = lock(&self.queue);
        if queue.callback.is_set() {
            return Err((callback_attached(), false));
        }
        if queue.open.is_some() {
            let why = "the previous batch is still open: release it first";
            return Err((Code::Argument.because(why), false));
        }
        if max == 0 {
            return Err((Code::Argument.because("a batch of 0 records"), false));
        }
        if self.closed.load(Ordering::Acquire) {
            return Err((Code::Stale.because("the stream is closed"), false));
        }
        // Loaded before `take`, so that all records that were committed before the outcome are
        // found.
        let outcome = self.outcome.get();
        match queue.take(max) {
            Some(batch) => self.convert_batch(batch, queue).map_err(|why| (why, true)),
            None => match outcome {
                Some(outcome) => Err((self.outcome_as_read(outcome).why.clone(), true)),
                None => Err((Code::WouldPark.because("nothing is available yet"), false)),
            },
        }
    }

    /// Like [`try_acquire`](Self::try_acquire), but waits until `deadline`
    /// ([`clock`](thalweg_queue::clock); 0: do not wait).
    ///
    /// # Errors
    /// The errors of [`try_acquire`](Self::try_acquire), and `timed_out` and `interrupted`.
    /// `would_park` also where an actor must not wait, as in [`native`](thalweg_runtime::native).
    pub fn acquire(&self, max: u32, deadline: u64) -> Result<OpenBatch, (Failure, bool)> {
        if self.is_reading.swap(true, Ordering::Acquire) {
            let why = "another thread is reading this stream";
            return Err((Code::Argument.because(why), false));
        }
        let result = self.acquire_exclusive(max, deadline);
        self.is_reading.store(false, Ordering::Release);
        result
    }

    /// [`acquire`](Self::acquire) for a caller that is the only reader.
    pub(super) fn acquire_exclusive(
        &self,
        max: u32,
        deadline: u64,
    ) -> Result<OpenBatch, (Failure, bool)> {
        let is_empty = |result: &Result<_, (Failure, bool)>| matches!(result, Err((f, _)) if f.code == Code::WouldPark);
        loop {
            let result = self.try_acquire(max);
            if !is_empty(&result) || deadline == 0 || !wait::can_park() {
                return result;
            }
            let before_sleep = match wait::is_actor() {
                true => BeforeSleep::Sleep,
                false => self.before_sleep(deadline),
            };
            let linger_until = match before_sleep {
                BeforeSleep::Readable => continue,
                BeforeSleep::Linger(until) => Some(until),
                BeforeSleep::Sleep => None,
            };
            let woke = if let Some(until) = linger_until {
                match Parker::current().park(Some(until.min(deadline))) {
                    ParkResult::Interrupted => WakeReason::Interrupted,
                    ParkResult::TimedOut if deadline <= until => WakeReason::TimedOut,
                    _ => continue,
                }
            } else {
                self.cancel_wake_request();
                self.arm_gate(&mut lock(&self.queue), wait::waker());
                let result = self.try_acquire(max);
                if !is_empty(&result) {
                    self.gate.disarm();
                    return result;
                }
                wait::park(Some(deadline))
            };
            if woke != WakeReason::Woken {
                self.gate.disarm();
                let failure = match woke {
                    WakeReason::TimedOut => {
                        Code::TimedOut.because("nothing arrived before the deadline")
                    }
                    WakeReason::Interrupted => Code::Interrupted.because("a signal arrived"),
                    WakeReason::Woken | WakeReason::Stopping => {
                        Code::ShutDown.because("the runtime stops")
                    }
                };
                let last_look = self.try_acquire(max);
                return if is_empty(&last_look) {
                    Err((failure, false))
                } else {
                    last_look
                };
            }
        }
    }

    /// Releases the first `count` records of the open batch. Releasing the last one closes the
    /// batch.
    ///
    /// # Errors
    /// `argument`: no batch is open, or it has fewer records.
    pub fn release(&self, count: u32) -> Result<(), Failure> {
        let mut queue = lock(&self.queue);
        if self.segment_of_call(&mut queue).is_some() {
            // The batch of one record ends with the call.
            return match count {
                0 | 1 => Ok(()),
                _ => Err(Code::Argument.because("the open batch has 1 record")),
            };
        }
        let open_count = queue.open_batch()?.count;
        if count > open_count {
            let why = format!("the open batch has {open_count} records, not {count}");
            return Err(Code::Argument.because(why));
        }
        if !queue.release_records(count) {
            return Ok(());
        }
        let waiters = queue.free_read_segments();
        drop(queue);
        waiters.wake();
        Ok(())
    }
}
