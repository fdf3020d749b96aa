//! Callbacks: the writing threads pass the records of a stream to a callback.
//!
//! 1. The callback is stored in the queue, under its lock. The thread that takes it out is the
//!    runner. It takes batch after batch, calls the callback without the lock, and puts the
//!    callback back when no record is left. A writer that finds no callback leaves its records to
//!    the runner, and the runner checks again under the lock before it puts the callback back. So
//!    one thread at a time calls, and no record is left behind.
//! 2. Writers learn of the callback from one word, [`StreamCore::wake_reader`]. A writer that read
//!    an older value of the word finds the gate armed, and an actor delivers its records.
//! 3. A separate actor delivers everything that does not come with a write: the records from before
//!    the subscription, and the outcome. The thread that ends a stream therefore never runs code of
//!    a host.
//! 4. The callback is finished by the outcome, by a close, or when it returns `Break`. It is then
//!    dropped once, without the lock, by the runner, or, without a runner, by the closing thread.
//!    [`StreamCore::join`] returns after that.
//! 5. The only writer of a stream may hold a lease of the callback and call it without the lock: see
//!    `lease` and `direct`. Every function here that needs the callback revokes the lease first.

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

use thalweg_queue::WakerList;
use thalweg_runtime::{WakeReason, wait};

use crate::code::{Code, Failure, would_park};
use crate::stream::callback_slot::{AfterCallback, CallbackSlot};
use crate::stream::core::{StreamCore, lock};
use crate::stream::counts::Reason;
use crate::stream::lease::{Lease, Runner};
use crate::stream::receiving::OpenBatch;
use crate::stream::segment::Segment;
use crate::stream::waking::{CALLBACK, MANY_READERS};

/// The argument of a callback.
#[derive(Debug)]
pub enum CallbackEvent<'a> {
    /// Records, which are valid until the callback returns.
    Records(&'a OpenBatch),
    /// The last call: the outcome of the stream, which is `closed` for a regular end, and the gap
    /// after the last record.
    Ended {
        /// The outcome.
        why: &'a Failure,
        /// With the code `error`: the service's own error, as a message with the layout of the
        /// function's error.
        error: Option<&'a [u8]>,
        /// Number of records that are missing after the last one.
        lost: u64,
        /// Why they are missing; `None` if none are.
        reason: Option<Reason>,
    },
}

/// Called for each batch, one call at a time. `Break` closes the stream. Dropped once, after its
/// last call.
pub type Callback = Box<dyn FnMut(CallbackEvent<'_>) -> ControlFlow<()> + Send>;

/// The thread or actor that runs: the address of the actor's task, or of a variable of the thread.
#[inline]
pub(super) fn current_runner() -> Runner {
    thread_local! {
        static OF_THREAD: u64 = const { 0 };
    }
    match wait::current_address() {
        0 => OF_THREAD.with(|of_thread| std::ptr::from_ref(of_thread).addr() as u64),
        actor => actor,
    }
}

/// A stream's callback (rule 1). It is part of the queue.
#[derive(Default)]
pub(super) struct CallbackState {
    slot: CallbackSlot<Callback>,
    /// Sequence number of the first record of the lease that is not in the counts (rule 4 of
    /// `lease`).
    pub(super) settled: u64,
    /// The segment that the holder of the lease writes into.
    lent_segment: Weak<Segment>,
    join_waiters: WakerList,
    stream: Weak<StreamCore>,
}

impl std::fmt::Debug for CallbackState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Direct")
            .field("is_there", &self.is_set())
            .finish_non_exhaustive()
    }
}

impl CallbackState {
    /// Whether a callback receives the records.
    pub(super) fn is_set(&self) -> bool {
        self.slot.is_set()
    }

    fn take(&mut self) -> Option<Callback> {
        self.slot.take(current_runner)
    }

    /// See [`CallbackSlot::lend`].
    pub(super) fn lend(
        &mut self,
        lease: &Lease<Callback>,
        segment: &Arc<Segment>,
        sequence: u64,
    ) -> bool {
        let lent = self.slot.lend(lease, sequence);
        if lent {
            (self.settled, self.lent_segment) = (sequence, Arc::downgrade(segment));
        }
        lent
    }

    /// The segment of the record with which the callback is being called, if its lease was revoked
    /// during the call.
    pub(super) fn segment_of_call(&self) -> Option<Arc<Segment>> {
        self.slot
            .is_returning()
            .then(|| self.lent_segment.upgrade())
            .flatten()
    }

    /// See [`CallbackSlot::revoke`].
    pub(super) fn revoke(&mut self, lease: &Lease<Callback>) -> bool {
        self.slot.revoke(lease)
    }

    /// See [`CallbackSlot::take_back`].
    pub(super) fn take_back(&mut self, lease: &Lease<Callback>) {
        self.slot.take_back(lease);
    }
}

/// Delivers in an actor (rule 3). If the runtime refuses the actor, the spawning thread delivers
/// when it drops this.
struct DeliverOnDrop(Arc<StreamCore>);

impl Drop for DeliverOnDrop {
    fn drop(&mut self) {
        self.0.arm_for_missed_wake();
        self.0.deliver();
    }
}

/// Woken by a writer that did not see the callback (rule 2).
struct MissedWake(Weak<StreamCore>);

impl Wake for MissedWake {
    fn wake(self: Arc<Self>) {
        if let Some(stream) = self.0.upgrade() {
            stream.deliver_in_actor();
        }
    }
}

/// A panic in a host's callback closes only its own stream.
#[inline(always)]
pub(super) fn call(callback: &mut Callback, event: CallbackEvent<'_>) -> ControlFlow<()> {
    catch_unwind(AssertUnwindSafe(|| callback(event))).unwrap_or_else(break_after_panic)
}

#[cold]
#[inline(never)]
fn break_after_panic(payload: Box<dyn Any + Send>) -> ControlFlow<()> {
    drop_catching_panic(payload);
    ControlFlow::Break(())
}

/// Drops a value of the host, whose destructor may panic.
fn drop_catching_panic<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        std::mem::forget(payload);
    }
}

/// An outcome without a gap after the last record.
fn ended_with(why: &Failure) -> CallbackEvent<'_> {
    CallbackEvent::Ended {
        why,
        error: None,
        lost: 0,
        reason: None,
    }
}

impl StreamCore {
    /// Passes the records to a callback from now on, on the threads that write them, instead of to
    /// a reader. `callback` creates it unless this is refused. The previous callback is dropped
    /// after its running call.
    ///
    /// # Errors
    /// `argument`: a batch is open, or another thread is reading. `stale`: the stream is closed.
    pub fn subscribe(self: &Arc<Self>, callback: impl FnOnce() -> Callback) -> Result<(), Failure> {
        if self.is_reading.swap(true, Ordering::Acquire) {
            return Err(Code::Argument.because("another thread is reading this stream"));
        }
        let result = self.subscribe_alone(callback);
        self.is_reading.store(false, Ordering::Release);
        let former = result?;
        former.into_iter().for_each(drop_catching_panic);
        self.arm_for_missed_wake();
        self.deliver_in_actor();
        Ok(())
    }

    /// Returns the previous callback unless it is running.
    fn subscribe_alone(
        self: &Arc<Self>,
        callback: impl FnOnce() -> Callback,
    ) -> Result<Option<Callback>, Failure> {
        self.cancel_wake_request();
        let mut queue = lock(&self.queue);
        self.revoke_lease(&mut queue);
        if self.closed.load(Ordering::Acquire) {
            return Err(Code::Stale.because("the stream is closed"));
        }
        if !queue.callback.is_set() && queue.open.is_some() {
            let why = "the previous batch is still open: release it first";
            return Err(Code::Argument.because(why));
        }
        queue.callback.stream = Arc::downgrade(self);
        let many = self.wake_mode.load(Ordering::Relaxed) & MANY_READERS;
        self.wake_mode.store(CALLBACK | many, Ordering::Relaxed);
        Ok(queue.callback.slot.replace(callback()))
    }

    /// From here on, a commit of a writer that did not see the callback is noticed.
    fn arm_for_missed_wake(self: &Arc<Self>) {
        let missed_wake = MissedWake(Arc::downgrade(self));
        self.gate.arm_heavy(Waker::from(Arc::new(missed_wake)));
    }

    /// Rule 3.
    pub(super) fn deliver_in_actor(&self) {
        let stream = lock(&self.queue).callback.stream.upgrade();
        if let Some(stream) = stream {
            let runtime = stream.owner.runtime().clone();
            let deliver_on_drop = DeliverOnDrop(stream);
            drop(runtime.spawn_queued(move || drop(deliver_on_drop)));
        }
    }

    /// Passes the available records to the callback, unless another thread is doing so (rule 1).
    #[cold]
    pub(super) fn deliver(&self) {
        let mut queue = lock(&self.queue);
        self.revoke_lease(&mut queue);
        let Some(mut callback) = queue.callback.take() else {
            return;
        };
        loop {
            if self.closed.load(Ordering::Acquire) {
                break;
            }
            if let Some(next) = queue.callback.slot.take_replacement() {
                drop(queue);
                drop_catching_panic(std::mem::replace(&mut callback, next));
                queue = lock(&self.queue);
                continue;
            }
            // Loaded before `take`, so that all records that were committed before the outcome are
            // found.
            let outcome = self.outcome.get();
            if let Some(batch) = queue.take(u32::MAX) {
                let batch = self.convert_batch(batch, queue);
                let flow = match &batch {
                    Ok(batch) => call(&mut callback, CallbackEvent::Records(batch)),
                    // The stream was closed in the meantime.
                    Err(why) if why.code == Code::Stale => ControlFlow::Break(()),
                    Err(why) => call(&mut callback, ended_with(why)),
                };
                drop(batch);
                if flow.is_break() {
                    self.close();
                }
                queue = lock(&self.queue);
                queue.release_records(u32::MAX);
                let waiters = queue.free_read_segments();
                if !waiters.is_empty() {
                    drop(queue);
                    waiters.wake();
                    queue = lock(&self.queue);
                }
            } else if let Some(outcome) = outcome {
                let gap = queue.gap_at_end();
                drop(queue);
                let outcome = self.outcome_as_read(outcome);
                let ended = CallbackEvent::Ended {
                    why: &outcome.why,
                    error: outcome.error.as_deref(),
                    lost: gap.lost,
                    reason: gap.reason,
                };
                let _ = call(&mut callback, ended);
                queue = lock(&self.queue);
                if !queue.callback.slot.has_replacement() {
                    break;
                }
            } else {
                queue.callback.slot.put_back(callback);
                return;
            }
        }
        drop(queue);
        self.finish(callback);
    }

    /// Rule 4, for the thread that took the callback out.
    fn finish(&self, callback: Callback) {
        let mut old_callback = callback;
        loop {
            drop_catching_panic(old_callback);
            let mut queue = lock(&self.queue);
            match queue
                .callback
                .slot
                .finish(self.closed.load(Ordering::Acquire))
            {
                AfterCallback::Dropped => {
                    let join_waiters = queue.callback.join_waiters.take();
                    drop(queue);
                    return join_waiters.wake();
                }
                // It was set after the previous callback had received the outcome.
                AfterCallback::Replaced => {
                    drop(queue);
                    return self.deliver_in_actor();
                }
                AfterCallback::Discard(callback) => old_callback = callback,
            }
        }
    }

    /// After a close there are no further calls.
    pub(super) fn close_callback(&self) {
        let callback = {
            let mut queue = lock(&self.queue);
            self.revoke_lease(&mut queue);
            queue.callback.take()
        };
        if let Some(callback) = callback {
            self.finish(callback);
        }
    }

    /// Waits until the callback is finished: its last call has returned, and it was dropped.
    /// Returns at once if there is no callback.
    ///
    /// # Errors
    /// `timed_out` at the deadline ([`clock`](thalweg_queue::clock); 0: do not wait), `interrupted`
    /// by a signal. `would_park` inside the callback, and where an actor must not wait.
    pub fn join(&self, deadline: u64) -> Result<(), Failure> {
        let mut woke = WakeReason::Woken;
        loop {
            {
                let mut queue = lock(&self.queue);
                // Only then is it known which thread calls.
                self.revoke_lease(&mut queue);
                let callback = &mut queue.callback;
                if !callback.is_set() {
                    return Ok(());
                }
                if callback.slot.is_running_on(current_runner()) {
                    return Err(
                        Code::WouldPark.because("a callback cannot wait for itself to finish")
                    );
                }
                if deadline == 0 || woke == WakeReason::TimedOut {
                    return Err(Code::TimedOut.because("the callback has not finished yet"));
                }
                if woke == WakeReason::Interrupted {
                    return Err(Code::Interrupted.because("a signal arrived"));
                }
                if woke == WakeReason::Stopping {
                    return Err(Code::ShutDown.because("the runtime stops"));
                }
                if !wait::can_park() {
                    return Err(would_park());
                }
                callback.join_waiters.insert(wait::waker());
            }
            woke = wait::park((deadline != u64::MAX).then_some(deadline));
        }
    }

    /// Like [`close`](Self::close), but waits for the callback's running call. It does not wait
    /// inside the callback, nor where waiting is not allowed.
    pub fn close_and_wait(&self) {
        self.close();
        while let Err(failure) = self.join(u64::MAX) {
            if failure.code != Code::Interrupted {
                break;
            }
        }
    }
}
