//! One wait on a primitive, as a future. An actor or a thread drives it by parking.
//!
//! 1. A wait ends in one of three ways: it gets what it waits for; it gives up and leaves the list;
//!    or it is dropped, which also leaves the list. A wait that leaves with an unused grant passes
//!    it on ([`Primitive::on_leave`]).
//! 2. [`wait::park`] is called while the node is in the list, and may panic (in a `NoPark`
//!    section); then `drop` cleans up. It does not unwind an actor that must end: it returns
//!    [`WakeReason::Stopping`], and the wait leaves the list first.
//! 3. A wake-up carries no information: the wait checks its grant. So spurious wake-ups are
//!    harmless.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use thalweg_queue::{ParkResult, Parker, WakerList, clock};

use super::error::WaitError;
use super::wait_list::{Grant, WaitList, WaitListGuard, WaitQueue, Waiter};
use crate::log::{self, Level};
use crate::wake_reason::WakeReason;
use crate::{wait, worker};

/// The result of [`Primitive::acquire_or_queue`].
pub(super) enum AcquireResult<T> {
    /// Acquired.
    Done(T),
    /// Push the waiter at the back.
    PushBack,
    /// Push the waiter at the front: it was the first before.
    PushFront,
}

/// A primitive that can be waited for: its own state, and a wait list.
pub(super) trait Primitive {
    /// State that is protected by the list's lock.
    type State;
    /// The parameters of one wait.
    type Request;
    type Output;

    fn wait_list(&self) -> &WaitList<Self::State>;

    /// Called under the list's lock for a waiter that is not in the list: acquires, or decides
    /// where the waiter is pushed.
    fn acquire_or_queue(
        &self,
        queue: &mut WaitQueue<Self::State>,
        request: &mut Self::Request,
        wakers: &mut WakerList,
    ) -> AcquireResult<Self::Output>;

    /// The waiter was removed with this grant. `None`: it has to acquire again.
    fn accept_grant(&self, grant: Grant, request: &mut Self::Request) -> Option<Self::Output>;

    /// The waiter has left the list. `grant` is the grant that it does not use, if it had one.
    fn on_leave(
        &self,
        queue: WaitListGuard<'_, Self::State>,
        grant: Option<Grant>,
        request: &Self::Request,
    );
}

/// A wait on a primitive; the rules are in the module documentation.
pub(super) struct WaitFuture<'a, P: Primitive> {
    primitive: &'a P,
    request: P::Request,
    /// The node is in the list, or was removed with a grant that has not been read yet.
    is_queued: bool,
    waiter: Waiter,
}

// SAFETY: rules 2 and 3 of `wait_list` define who may touch the node; the other fields are `Send`.
unsafe impl<P: Primitive + Sync> Send for WaitFuture<'_, P> where P::Request: Send {}

impl<'a, P: Primitive> WaitFuture<'a, P> {
    /// `requested`: see [`WaitQueue::first_requested`].
    pub(super) fn new(primitive: &'a P, request: P::Request, requested: usize) -> Self {
        Self {
            primitive,
            request,
            is_queued: false,
            waiter: Waiter::new(requested),
        }
    }

    /// Returns the output, or registers `waker` in the list.
    pub(super) fn poll_waker(self: Pin<&mut Self>, waker: &Waker) -> Poll<P::Output> {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        let mut spare = None;
        while this.is_queued {
            if let Some(grant) = this.waiter.take_grant() {
                this.is_queued = false;
                if let Some(output) = this.primitive.accept_grant(grant, &mut this.request) {
                    return Poll::Ready(output);
                }
                break;
            }
            let mut queue = this.primitive.wait_list().lock();
            // SAFETY: it was pushed, and has not taken a grant.
            if unsafe { queue.update_waker(&this.waiter, waker, &mut spare) } {
                return Poll::Pending;
            }
            drop(queue);
            spare.get_or_insert_with(|| waker.clone());
        }
        let waker = waker.clone();
        let mut wakers = WakerList::new();
        let mut queue = this.primitive.wait_list().lock();
        let at_front =
            match this
                .primitive
                .acquire_or_queue(&mut queue, &mut this.request, &mut wakers)
            {
                AcquireResult::Done(output) => {
                    drop(queue);
                    wakers.wake();
                    return Poll::Ready(output);
                }
                AcquireResult::PushBack => false,
                AcquireResult::PushFront => true,
            };
        // SAFETY: it is in no list, and pinned; its `drop` leaves the list.
        unsafe { queue.push(&this.waiter, waker, at_front) };
        this.is_queued = true;
        Poll::Pending
    }

    /// Leaves the list. Returns the output if a grant has come; a grant that is only a wake-up is
    /// passed on.
    fn leave_with_grant(self: Pin<&mut Self>) -> Option<P::Output> {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        let (queue, grant, _waker) = this.remove()?;
        let output = grant.and_then(|grant| this.primitive.accept_grant(grant, &mut this.request));
        if output.is_none() {
            this.primitive.on_leave(queue, grant, &this.request);
        }
        output
    }

    /// Leaves the list, and passes on an unused grant.
    fn leave(self: Pin<&mut Self>) {
        // SAFETY: nothing is moved out of it.
        unsafe { self.get_unchecked_mut() }.leave_list();
    }

    fn leave_list(&mut self) {
        if let Some((queue, grant, _waker)) = self.remove() {
            self.primitive.on_leave(queue, grant, &self.request);
        }
    }

    /// `None`: it was in no list.
    fn remove(&mut self) -> Option<Removed<'a, P::State>> {
        if !self.is_queued {
            return None;
        }
        self.is_queued = false;
        let mut queue = self.primitive.wait_list().lock();
        // SAFETY: it was pushed, and has not taken a grant.
        let (grant, waker) = unsafe { queue.leave(&self.waiter) };
        Some((queue, grant, waker))
    }
}

/// The locked list, the grant, and a waker to drop after the list is unlocked.
type Removed<'a, S> = (WaitListGuard<'a, S>, Option<Grant>, Option<Waker>);

impl<P: Primitive> Drop for WaitFuture<'_, P> {
    fn drop(&mut self) {
        self.leave_list();
    }
}

impl<P: Primitive> Future for WaitFuture<'_, P> {
    type Output = P::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<P::Output> {
        self.poll_waker(context.waker())
    }
}

/// Waits until `deadline` ([`clock`]; `None`: no deadline). If its runtime stops, an actor first
/// gets an error; an exit signal unwinds it.
pub(super) fn block_until<P: Primitive>(
    future: Pin<&mut WaitFuture<'_, P>>,
    deadline: Option<u64>,
) -> Result<P::Output, WaitError> {
    wait::begin_fallible_wait();
    let ended = drive(future, deadline);
    if ended.is_err() {
        worker::raise_if_due();
    }
    ended
}

/// Waits without a deadline. Unwinds an actor that must end.
pub(super) fn block<P: Primitive>(mut future: Pin<&mut WaitFuture<'_, P>>) -> P::Output {
    drive(future.as_mut(), None).unwrap_or_else(|_| {
        wait::unwind_if_stopping();
        block_thread(future)
    })
}

/// Parks until the wait ends. On an error, it has left the list.
pub(super) fn drive<P: Primitive>(
    mut future: Pin<&mut WaitFuture<'_, P>>,
    deadline: Option<u64>,
) -> Result<P::Output, WaitError> {
    let waker = wait::waker();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll_waker(&waker) {
            return Ok(output);
        }
        match wait::park(deadline) {
            WakeReason::Woken | WakeReason::Interrupted => {}
            // A grant may have come meanwhile.
            WakeReason::TimedOut => return future.leave_with_grant().ok_or(WaitError::TimedOut),
            WakeReason::Stopping => {
                future.leave();
                return Err(WaitError::Stopping);
            }
        }
    }
}

/// After this time, an actor that blocks its worker reports it.
const WARN_AFTER: Duration = Duration::from_secs(1);

/// Blocks the thread of an actor that cannot park and must acquire. The wait may depend on an actor
/// of the same worker, which cannot be detected; therefore it is reported.
#[cold]
fn block_thread<P: Primitive>(mut future: Pin<&mut WaitFuture<'_, P>>) -> P::Output {
    let parker = Parker::new();
    let waker = parker.waker();
    let mut warn_at = Some(clock::deadline(WARN_AFTER));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll_waker(&waker) {
            return output;
        }
        if parker.park(warn_at) == ParkResult::TimedOut && warn_at.take().is_some() {
            let who = wait::current().map_or(0, |id| id.number());
            log::report(
                Level::Warning,
                "actor",
                format_args!(
                    "actor {who} waits in a destructor, where it cannot park: it blocks its worker. If the wait \
                     depends on an actor of the same worker, this is a deadlock."
                ),
            );
        }
    }
}
