//! Reading a stream: batches, and giving them back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use thalweg_queue::{ParkResult, Parker};
use thalweg_runtime::{WakeReason, wait};
use thalweg_wire::Decode;

use crate::code::{Code, Failure};
use crate::stream::core::{StreamCore, lock};
use crate::stream::counts::Reason;
use crate::stream::segment::Segment;
use crate::stream::views::Views;
use crate::stream::waking::has_callback;

/// A batch that was acquired and not yet released.
#[derive(Clone, Debug)]
pub struct OpenBatch {
    pub(crate) segment: Arc<Segment>,
    pub(super) from: u32,
    /// Records in it.
    pub count: u32,
    /// Where the tails of the segment ended when it was acquired.
    pub(super) end: u32,
    /// Number of its first record.
    pub first_sequence: u64,
    /// Records lost right before it.
    pub lost_before: u64,
    /// Why; `None` where none were.
    pub reason: Option<Reason>,
    /// A record of the control lane, whose number counts these alone.
    pub control: bool,
    /// Somebody has kept its memory: what is given back stays as it is.
    pub(super) kept: bool,
}

impl OpenBatch {
    /// The first byte of the memory; offsets count from here. Valid until the batch is released.
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

    /// Bytes from the base that may be read.
    pub fn size(&self) -> u32 {
        self.end
    }

    /// `count` records after the first `skip`.
    #[inline]
    pub(super) fn read<T: Decode>(&self, skip: u32, count: u32) -> Views<'_, T> {
        assert!(skip <= self.count && count <= self.count - skip);
        let first = self.from + skip;
        // SAFETY: `Queue::take` made the batch, or a longer one of which it is the rest, from the segment's mark.
        let (slots, tails, tails_at) = unsafe { self.segment.read(first, count, self.end) };
        Views::new(slots, first * self.segment.stride(), tails, tails_at)
    }
}

impl StreamCore {
    /// A batch of at most `max` records, if there is one.
    ///
    /// # Errors
    /// `would_park`; with `true`, how the stream ended: `closed` regularly. `argument`: a batch is open, another thread reads, a callback takes what comes.
    pub fn try_acquire(&self, max: u32) -> Result<OpenBatch, (Failure, bool)> {
        let mut queue = lock(&self.queue);
        if queue.callback.is_set() {
            return Err((has_callback(), false));
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
        // Before the look: what was committed before the ending is seen after it.
        let outcome = self.outcome.get();
        match queue.take(max) {
            Some(batch) => self.convert_batch(batch, queue).map_err(|why| (why, true)),
            None => match outcome {
                Some(outcome) => Err((self.outcome_as_read(outcome).why.clone(), true)),
                None => Err((Code::WouldPark.because("nothing is available yet"), false)),
            },
        }
    }

    /// As [`try_acquire`](Self::try_acquire), and waits until `deadline` ([`clock`](thalweg_queue::clock); 0: not at all).
    ///
    /// # Errors
    /// As there, and `timed_out`, `interrupted`. `would_park` also where an actor must not wait, as in [`native`](thalweg_runtime::native).
    pub fn acquire(&self, max: u32, deadline: u64) -> Result<OpenBatch, (Failure, bool)> {
        if self.busy.swap(true, Ordering::Acquire) {
            let why = "another thread is reading this stream";
            return Err((Code::Argument.because(why), false));
        }
        let result = self.acquire_exclusive(max, deadline);
        self.busy.store(false, Ordering::Release);
        result
    }

    /// The same for who is known to be the only one.
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
            let linger_until = if wait::is_actor() {
                None
            } else if self.spin_for_records(deadline) {
                continue;
            } else {
                self.start_linger(wait::waker())
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

    /// Gives back the first `count` records of the open batch; with the last of them it is closed.
    ///
    /// # Errors
    /// `argument`: no batch is open, or it has fewer.
    pub fn release(&self, count: u32) -> Result<(), Failure> {
        let mut queue = lock(&self.queue);
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
        waiters.into_iter().for_each(Waker::wake);
        Ok(())
    }
}
