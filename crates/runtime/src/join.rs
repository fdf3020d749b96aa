//! The handle of a spawned actor: its value, or the reason why it has none.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::ptr;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use thalweg_queue::{ParkResult, Parker, clock};

use crate::exit::Pid;
use crate::id::ActorId;
use crate::reason::JoinError;
use crate::remote_queue::RemoteQueue;
use crate::sections;
use crate::task::{JoinWaker, Joiner, Task};
use crate::wake_reason::WakeReason;
use crate::{wait, worker};

/// A join timed out. The handle can be joined again.
#[derive(Debug)]
pub struct TimedOut<T>(pub JoinHandle<T>);

/// Waits for a spawned actor and returns its value. Dropping the handle detaches the actor. The
/// handle is also a `Future`.
///
/// ```
/// let sum = thalweg_runtime::run(|| {
///     let half = thalweg_runtime::spawn(|| (1..=50).sum::<u32>());
///     let other: u32 = (51..=100).sum();
///     half.join().map(|half| half + other)
/// });
/// assert_eq!(sum.unwrap(), 5050);
/// ```
pub struct JoinHandle<T> {
    task: Task,
    /// A future's waker is, or was, in the joiner's slot.
    polled: bool,
    taken: bool,
    output: PhantomData<fn() -> T>,
}

// SAFETY: a handle moves one `T` from the actor's thread to its own; `Task` is `Send`.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: `&JoinHandle` only gives access to whether it is finished.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    /// Precondition: the task has this output type and no other handle.
    pub(crate) fn new(task: Task) -> Self {
        Self {
            task,
            polled: false,
            taken: false,
            output: PhantomData,
        }
    }

    /// The id of the actor.
    pub fn id(&self) -> ActorId {
        self.task.header().id
    }

    /// Whether the actor has ended.
    pub fn is_finished(&self) -> bool {
        self.task.header().state.is_complete()
    }

    /// The address of the actor, for signals and monitors.
    pub fn pid(&self) -> Pid {
        Pid::new(self.task.control())
    }

    /// Waits until the actor ends. A calling actor parks; a thread blocks.
    ///
    /// # Errors
    /// The actor has no value.
    pub fn join(mut self) -> Result<T, JoinError> {
        if self.wait(None) {
            self.take()
        } else {
            Err(JoinError::Stopped)
        }
    }

    /// Like [`join`](Self::join), for at most `timeout`.
    ///
    /// # Errors
    /// The timeout passed; the handle is returned.
    pub fn join_timeout(self, timeout: Duration) -> Result<Result<T, JoinError>, TimedOut<T>> {
        self.join_until(clock::deadline(timeout))
    }

    /// Like [`join`](Self::join), until `deadline`.
    ///
    /// # Errors
    /// The deadline passed; the handle is returned.
    pub fn join_deadline(self, deadline: Instant) -> Result<Result<T, JoinError>, TimedOut<T>> {
        self.join_until(clock::at(deadline))
    }

    fn join_until(mut self, deadline: u64) -> Result<Result<T, JoinError>, TimedOut<T>> {
        if self.wait(Some(deadline)) {
            Ok(self.take())
        } else {
            Err(TimedOut(self))
        }
    }

    /// Waits until the actor has ended. `false`: the deadline passed, or the caller's runtime
    /// stops.
    fn wait(&mut self, deadline: Option<u64>) -> bool {
        // SAFETY: this is the only handle, and `wait_for` returns before it does.
        self.is_finished() || !self.reclaim_slot() || unsafe { wait_for(self.task, deadline) }
    }

    pub(crate) fn task(&self) -> Task {
        self.task
    }

    /// Takes the joiner's slot back from an earlier poll. `false`: the actor has ended.
    pub(crate) fn reclaim_slot(&mut self) -> bool {
        if !self.polled {
            return true;
        }
        self.polled = false;
        // SAFETY: this is the handle, and it joined when it was polled.
        unsafe { self.task.unjoin() }
    }

    /// Precondition: the task is complete.
    pub(crate) fn take(&mut self) -> Result<T, JoinError> {
        assert!(!self.taken, "a JoinHandle was polled after completion");
        self.taken = true;
        // SAFETY: `COMPLETE` was observed, the handle was made for `T`, and the output was not
        // taken before.
        unsafe { self.task.take() }
    }
}

/// Waits until the task has ended. `false`: the deadline passed, or the caller's runtime stops. It is not
/// compiled for each type of handle.
///
/// # Safety
/// The caller is the task's only handle, and the joiner's slot belongs to it.
#[inline(never)]
unsafe fn wait_for(task: Task, deadline: Option<u64>) -> bool {
    sections::may_park();
    let ended = match wait::actor() {
        // SAFETY: the caller's contract.
        Some((worker, me)) => unsafe {
            wait_as_actor(task, me, worker.remote_queue, || {
                worker.park_task(me, deadline)
            })
        },
        // SAFETY: the caller's contract.
        None => unsafe { wait_as_thread(task, deadline) },
    };
    if !ended {
        worker::raise_if_due();
    }
    ended
}

/// `me` is the calling actor, `queue` is that of its worker, and `park` parks it until it is woken.
///
/// # Safety
/// That of [`wait_for`].
#[inline(always)]
pub(crate) unsafe fn wait_as_actor(
    task: Task,
    me: Task,
    queue: *const RemoteQueue,
    park: impl Fn() -> WakeReason,
) -> bool {
    let state = &task.header().state;
    // SAFETY: the slot is the caller's, and every return path gives the slot back. We return only after
    // `RELEASED`, or after the slot was taken back.
    if !unsafe { task.join(Joiner::Waker(JoinWaker::Actor(me)), queue) } {
        return true;
    }
    loop {
        let gives_up = matches!(park(), WakeReason::TimedOut | WakeReason::Stopping);
        if state.is_released() {
            return true;
        }
        // SAFETY: the caller is the handle, and it joined above.
        if state.is_complete() || (gives_up && !unsafe { task.unjoin() }) {
            state.wait_for_release();
            return true;
        }
        if gives_up {
            return false;
        }
    }
}

/// # Safety
/// That of [`wait_for`].
#[cold]
unsafe fn wait_as_thread(task: Task, deadline: Option<u64>) -> bool {
    let parker = Parker::current();
    // SAFETY: as for an actor.
    if !unsafe { task.join(Joiner::Waker(JoinWaker::Waker(parker.waker())), ptr::null()) } {
        return true;
    }
    while !task.header().state.is_complete() {
        // SAFETY: it joined above.
        if parker.park(deadline) == ParkResult::TimedOut && unsafe { task.unjoin() } {
            return false;
        }
    }
    true
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.is_finished() && self.reclaim_slot() {
            self.polled = true;
            let joiner = Joiner::Waker(JoinWaker::Waker(context.waker().clone()));
            // SAFETY: the slot is ours after `reclaim_slot`.
            if unsafe { self.task.join(joiner, ptr::null()) } {
                return Poll::Pending;
            }
        }
        Poll::Ready(self.take())
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if self.taken {
            self.task.drop_reference();
        } else {
            // SAFETY: this is the handle, and the output was not taken.
            unsafe { self.task.drop_handle() };
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("finished", &self.is_finished())
            .finish()
    }
}
