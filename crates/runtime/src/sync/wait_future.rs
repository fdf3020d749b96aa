//! One wait at a primitive: a future, which an actor or a thread drives by parking.
//!
//! 1. A wait ends in one of three ways: it has what it waited for, or it leaves the line, or it is dropped, which leaves the line too. Who
//!    leaves with a gift that it has not used passes it on ([`Primitive::left`]).
//! 2. [`wait::park`] is called with the node in the line and may panic (in a `NoPark` section); then the drop cleans up. It does
//!    not unwind an actor that is to end: it says so, and the wait leaves the line first.
//! 3. A wake-up says nothing: a wait looks at its gift. So a wake-up for something else, or one too many, does no harm.

use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use thalweg_queue::{ParkResult, Parker, clock};

use super::error::WaitError;
use super::wait_list::{Grant, WaitList, WaitListGuard, WaitQueue, Waiter, WakeList};
use crate::exit;
use crate::wait::{self, WakeReason};

/// What the line's lock is asked for.
pub(super) enum AcquireResult<T> {
    /// It is there.
    Done(T),
    /// Behind all others.
    PushBack,
    /// It was the first before.
    PushFront,
}

/// What is waited for: one word or state, and a line.
pub(super) trait Primitive {
    /// What is known beside the line, under its lock.
    type State;
    /// What a wait knows of itself.
    type Request;
    type Output;

    fn wait_list(&self) -> &WaitList<Self::State>;

    /// Under the line's lock, for one who does not stand in it: takes what it waits for, or sends it into the line.
    fn acquire_or_queue(
        &self,
        queue: &mut WaitQueue<Self::State>,
        request: &mut Self::Request,
        wake_list: &mut WakeList,
    ) -> AcquireResult<Self::Output>;

    /// One who waited was given this. `None`: it has to ask again.
    fn accept_grant(&self, grant: Grant, request: &mut Self::Request) -> Option<Self::Output>;

    /// One who waited has left, with a gift that it will not use or without one.
    fn on_leave(
        &self,
        queue: WaitListGuard<'_, Self::State>,
        grant: Option<Grant>,
        request: &Self::Request,
    );
}

/// See the head of the module.
pub(super) struct WaitFuture<'a, P: Primitive> {
    primitive: &'a P,
    request: P::Request,
    /// In the line, or was taken out with a gift that has not been looked at.
    is_queued: bool,
    waiter: Waiter,
}

// SAFETY: `line`'s rules 2 and 3 say who touches the node; all else may be sent.
unsafe impl<P: Primitive + Sync> Send for WaitFuture<'_, P> where P::Request: Send {}

impl<'a, P: Primitive> WaitFuture<'a, P> {
    /// `wants`: see [`Queue::first_wants`].
    pub(super) fn new(primitive: &'a P, request: P::Request, requested: usize) -> Self {
        Self {
            primitive,
            request,
            is_queued: false,
            waiter: Waiter::new(requested),
        }
    }

    /// Has what it waited for, or stands in the line and will have `waker` woken.
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
            // SAFETY: it has entered, and has not looked at a gift.
            if unsafe { queue.update_waker(&this.waiter, waker, &mut spare) } {
                return Poll::Pending;
            }
            drop(queue);
            spare.get_or_insert_with(|| waker.clone());
        }
        let waker = waker.clone();
        let mut wake_list = WakeList::default();
        let mut queue = this.primitive.wait_list().lock();
        let at_front =
            match this
                .primitive
                .acquire_or_queue(&mut queue, &mut this.request, &mut wake_list)
            {
                AcquireResult::Done(output) => {
                    drop(queue);
                    wake_list.wake();
                    return Poll::Ready(output);
                }
                AcquireResult::PushBack => false,
                AcquireResult::PushFront => true,
            };
        // SAFETY: it is in no line, and pinned; its drop leaves.
        unsafe { queue.push(&this.waiter, waker, at_front) };
        this.is_queued = true;
        Poll::Pending
    }

    /// Leaves the line. What it had been given is the answer; a mere wake-up is passed on.
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

    /// Leaves the line, and passes on what it had been given.
    fn leave(self: Pin<&mut Self>) {
        // SAFETY: nothing is moved out of it.
        unsafe { self.get_unchecked_mut() }.leave_list();
    }

    fn leave_list(&mut self) {
        if let Some((queue, grant, _waker)) = self.remove() {
            self.primitive.on_leave(queue, grant, &self.request);
        }
    }

    /// `None`: it was in no line.
    fn remove(&mut self) -> Option<Removed<'a, P::State>> {
        if !self.is_queued {
            return None;
        }
        self.is_queued = false;
        let mut queue = self.primitive.wait_list().lock();
        // SAFETY: it has entered, and has not looked at a gift.
        let (grant, waker) = unsafe { queue.leave(&self.waiter) };
        Some((queue, grant, waker))
    }
}

/// The line, locked; what was given; and a waker to drop when it is not locked any more.
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

/// Waits until `deadline` ([`clock`]; `None`: for ever). The end of its runtime comes to an actor as an error first; a signal that ends it unwinds it.
pub(super) fn block_until<P: Primitive>(
    future: Pin<&mut WaitFuture<'_, P>>,
    deadline: Option<u64>,
) -> Result<P::Output, WaitError> {
    wait::begin_fallible_wait();
    let ended = drive(future, deadline);
    if ended.is_err() {
        exit::raise_if_due();
    }
    ended
}

/// Waits for as long as it takes. An actor that is to end is unwound.
pub(super) fn block<P: Primitive>(mut future: Pin<&mut WaitFuture<'_, P>>) -> P::Output {
    drive(future.as_mut(), None).unwrap_or_else(|_| {
        wait::unwind_if_stopping();
        block_thread(future)
    })
}

/// At an error it has left the line.
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
            // It may have been chosen meanwhile.
            WakeReason::TimedOut => return future.leave_with_grant().ok_or(WaitError::TimedOut),
            WakeReason::Stopping => {
                future.leave();
                return Err(WaitError::Stopping);
            }
        }
    }
}

/// From when on an actor that keeps its worker waiting says so.
const WARN_AFTER: Duration = Duration::from_secs(1);

/// An actor that cannot be put aside, and must have what it waits for: its worker's thread sleeps. Who could end the wait may be an actor of that very
/// worker, which nobody can know; so it is not left unsaid.
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
            // Where nobody reads it nobody misses it.
            let _ = writeln!(
                std::io::stderr(),
                "thalweg: actor {who} waits in a destructor, where it cannot be put aside: its worker waits with it, for ever if \
                 what it waits for is to be done by an actor of that worker"
            );
        }
    }
}
