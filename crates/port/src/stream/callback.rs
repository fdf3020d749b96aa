//! Direct: the records of a stream go to a callback, on the threads that write them.
//!
//! 1. The callback stands in the queue, under its lock. Who takes it out has the turn: it takes batch after batch and calls, without the
//!    lock, and puts the callback back where it finds nothing more. Who finds it gone leaves what it wrote to the one who has it,
//!    and who has it looks again under the lock before it puts it back. So one calls at a time, and nothing stays behind.
//! 2. Writers learn of it by one word, [`StreamCore::tell`]. Who saw an older word finds the gate armed, and an actor takes what it wrote.
//! 3. What no writer comes with is given by an actor of its own: what lay there before, and the ending. So the one who ends a
//!    stream never runs a host's code.
//! 4. It is over with the ending, with a close, or when the callback says so. The callback is then dropped, once and without the lock, by who has
//!    the turn, and where nobody has by who closes. Only then [`StreamCore::join`] comes back.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::thread::{self, ThreadId};

use thalweg_runtime::{ActorId, WakeReason, wait};

use crate::code::{Code, Failure, would_park};
use crate::stream::callback_slot::{AfterCallback, CallbackSlot};
use crate::stream::core::{StreamCore, lock};
use crate::stream::counts::Reason;
use crate::stream::receiving::OpenBatch;
use crate::stream::waking::{CALLBACK, MANY_READERS};

/// What a callback is given.
#[derive(Debug)]
pub enum CallbackEvent<'a> {
    /// Records, in place until the callback returns.
    Records(&'a OpenBatch),
    /// The last call: how the stream ended, `closed` regularly, and what was lost behind its last record.
    Ended {
        /// How.
        why: &'a Failure,
        /// The service's own error, with the code `error`: a message with the layout of the function's error.
        error: Option<&'a [u8]>,
        /// Records that were lost behind the last one.
        lost: u64,
        /// Why they were; `None` where none were.
        reason: Option<Reason>,
    },
}

/// Called for each batch, one call at a time. `Break` closes the stream. Dropped once, after its last call.
pub type Callback = Box<dyn FnMut(CallbackEvent<'_>) -> ControlFlow<()> + Send>;

/// Who runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runner {
    Actor(ActorId),
    Thread(ThreadId),
}

impl Runner {
    fn current() -> Self {
        wait::current().map_or_else(|| Self::Thread(thread::current().id()), Self::Actor)
    }
}

/// A stream's callback: rule 1. A part of its queue.
#[derive(Default)]
pub(super) struct CallbackState {
    slot: CallbackSlot<Callback, Runner>,
    join_waiters: Vec<Waker>,
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
    /// Whether a callback takes what comes.
    pub(super) fn is_set(&self) -> bool {
        self.slot.is_set()
    }

    fn take(&mut self) -> Option<Callback> {
        self.slot.take(Runner::current)
    }
}

/// A stream whose callback an actor calls: rule 3. Where the runtime takes no more, who would have spawned that actor does.
struct DeliverOnDrop(Arc<StreamCore>);

impl Drop for DeliverOnDrop {
    fn drop(&mut self) {
        self.0.arm_for_missed_wake();
        self.0.deliver();
    }
}

/// Woken by a writer that had not heard of the callback: rule 2.
struct MissedWake(Weak<StreamCore>);

impl Wake for MissedWake {
    fn wake(self: Arc<Self>) {
        if let Some(stream) = self.0.upgrade() {
            stream.deliver_in_actor();
        }
    }
}

/// What a host's code throws ends nothing but its own stream.
fn call(callback: &mut Callback, event: CallbackEvent<'_>) -> ControlFlow<()> {
    catch_unwind(AssertUnwindSafe(|| callback(event))).unwrap_or_else(|payload| {
        drop_catching_panic(payload);
        ControlFlow::Break(())
    })
}

/// What is dropped is a host's, and may panic.
fn drop_catching_panic<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        std::mem::forget(payload);
    }
}

/// An ending behind which nothing was lost.
fn ended_with(why: &Failure) -> CallbackEvent<'_> {
    CallbackEvent::Ended {
        why,
        error: None,
        lost: 0,
        reason: None,
    }
}

impl StreamCore {
    /// From now on records go to a callback and to no reader, on the threads that write them. `callback` makes it where this is not
    /// refused. The one before is dropped, after its running call.
    ///
    /// # Errors
    /// `argument`: a batch is open, another thread reads; `stale`: the stream is closed.
    pub fn subscribe(self: &Arc<Self>, callback: impl FnOnce() -> Callback) -> Result<(), Failure> {
        if self.busy.swap(true, Ordering::Acquire) {
            return Err(Code::Argument.because("another thread is reading this stream"));
        }
        let result = self.subscribe_alone(callback);
        self.busy.store(false, Ordering::Release);
        let former = result?;
        former.into_iter().for_each(drop_catching_panic);
        self.arm_for_missed_wake();
        self.deliver_in_actor();
        Ok(())
    }

    /// The one before, where it is not away.
    fn subscribe_alone(
        self: &Arc<Self>,
        callback: impl FnOnce() -> Callback,
    ) -> Result<Option<Callback>, Failure> {
        self.cancel_wake_request();
        let mut queue = lock(&self.queue);
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

    /// A writer that told nobody, since it had not heard of the callback, is seen from here on.
    fn arm_for_missed_wake(self: &Arc<Self>) {
        let missed_wake = MissedWake(Arc::downgrade(self));
        self.gate.arm_heavy(Waker::from(Arc::new(missed_wake)));
    }

    /// Rule 3.
    pub(super) fn deliver_in_actor(&self) {
        let stream = lock(&self.queue).callback.stream.upgrade();
        if let Some(stream) = stream {
            let runtime = stream.call.instance.runtime.clone();
            let deliver_on_drop = DeliverOnDrop(stream);
            drop(runtime.spawn_queued(move || drop(deliver_on_drop)));
        }
    }

    /// Gives what is there to the callback, unless somebody does already: rule 1.
    #[cold]
    pub(super) fn deliver(&self) {
        let mut queue = lock(&self.queue);
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
            // Before the look: what was committed before the ending is seen after it.
            let outcome = self.outcome.get();
            if let Some(batch) = queue.take(u32::MAX) {
                let batch = self.convert_batch(batch, queue);
                let flow = match &batch {
                    Ok(batch) => call(&mut callback, CallbackEvent::Records(batch)),
                    // It was closed meanwhile.
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
                    waiters.into_iter().for_each(Waker::wake);
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

    /// Rule 4, by who has taken the callback out.
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
                    let join_waiters = std::mem::take(&mut queue.callback.join_waiters);
                    drop(queue);
                    return join_waiters.into_iter().for_each(Waker::wake);
                }
                // It came after the ending was told to the one before.
                AfterCallback::Replaced => {
                    drop(queue);
                    return self.deliver_in_actor();
                }
                AfterCallback::Discard(callback) => old_callback = callback,
            }
        }
    }

    /// The stream is closed: nobody is called any more.
    pub(super) fn close_callback(&self) {
        let callback = lock(&self.queue).callback.take();
        if let Some(callback) = callback {
            self.finish(callback);
        }
    }

    /// Waits until the callback is over: its last call has returned, and it was dropped. At once where there is none.
    ///
    /// # Errors
    /// `timed_out` at the deadline ([`clock`](thalweg_queue::clock); 0: at once); `interrupted` by a signal; `would_park`: in the callback itself, and where
    /// an actor must not wait.
    pub fn join(&self, deadline: u64) -> Result<(), Failure> {
        let mut woke = WakeReason::Woken;
        loop {
            {
                let mut queue = lock(&self.queue);
                let callback = &mut queue.callback;
                if !callback.is_set() {
                    return Ok(());
                }
                if callback.slot.is_running_on(Runner::current()) {
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
                let waker = wait::waker();
                if !callback
                    .join_waiters
                    .iter()
                    .any(|known| known.will_wake(&waker))
                {
                    callback.join_waiters.push(waker);
                }
            }
            woke = wait::park((deadline != u64::MAX).then_some(deadline));
        }
    }

    /// As [`close`](Self::close), and waits for the callback's running call; not in the callback itself, nor where waiting is not allowed.
    pub fn close_and_wait(&self) {
        self.close();
        while let Err(failure) = self.join(u64::MAX) {
            if failure.code != Code::Interrupted {
                break;
            }
        }
    }
}
