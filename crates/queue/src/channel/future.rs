//! Sending and receiving in tasks of any executor.
//!
//! A future has at most one entry in the wait list. When it is dropped, it removes the entry, or
//! passes a wake-up that it already received to the next waiter. Nothing is lost, because a value
//! is removed from the channel only when the future completes.
//!
//! A future borrows its handle. A shared borrow of a handle that is not `Sync` is not `Send`, so
//! such a future stays on its thread. A future with an exclusive borrow can move. Each future is a
//! separate waiter: several futures of one handle take turns, like futures of several handles.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::{Pop, Push, Receiver, Sender};
use crate::error::{RecvError, SendError, TryRecvError, TrySendError};
use crate::spin::Looked;
use crate::wait_list::{Ticket, WaitList, WaiterKind};

/// The future's entry in the wait list, if it has one.
#[derive(Debug, Default)]
struct Registration(Option<Ticket>);

impl Registration {
    fn arm(&mut self, waiters: &WaitList, waker: &Waker, transferred: u64) {
        if let Some(ticket) = self.0
            && waiters.rearm(ticket, waker)
        {
            return;
        }
        self.0 = Some(waiters.arm(WaiterKind::Task, waker.clone(), transferred));
    }

    /// Called when the future has completed. Returns whether the entry had been woken, for this
    /// value or for another.
    fn finish(&mut self, waiters: &WaitList) -> bool {
        let ticket = self.0.take();
        ticket.is_some_and(|ticket| !waiters.disarm(WaiterKind::Task, ticket))
    }

    /// Called when the future is dropped.
    #[inline(always)]
    fn cancel(&self, waiters: &WaitList) {
        if let Some(ticket) = self.0 {
            waiters.disarm_or_pass_on(WaiterKind::Task, ticket);
        }
    }
}

/// Most futures complete when they are first polled: this part is inlined.
#[inline(always)]
fn poll_recv<P: Pop>(
    receiver: &Receiver<P>,
    registration: &mut Registration,
    context: &Context<'_>,
) -> Poll<Result<P::Item, RecvError>> {
    if registration.0.is_none()
        && let Some(value) = receiver.pop.pop_fast()
    {
        return Poll::Ready(Ok(value));
    }
    poll_recv_slow(receiver, registration, context)
}

#[cold]
#[inline(never)]
fn poll_recv_slow<P: Pop>(
    receiver: &Receiver<P>,
    registration: &mut Registration,
    context: &Context<'_>,
) -> Poll<Result<P::Item, RecvError>> {
    let waiters = &receiver.pop.core().recv_waiters;
    let mut may_look = registration.0.is_none();
    let mut armed = false;
    loop {
        let result = match receiver.try_recv() {
            Ok(value) => Some(Ok(value)),
            Err(TryRecvError::Closed) => Some(Err(RecvError)),
            Err(TryRecvError::Empty) => None,
        };
        if let Some(result) = result {
            if registration.finish(waiters) {
                receiver.wake_others(0);
            }
            return Poll::Ready(result);
        }
        if armed {
            return Poll::Pending;
        }
        if mem::take(&mut may_look) {
            match receiver.look() {
                Looked::Found => continue,
                Looked::Missed => {}
                Looked::Often => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
        armed = true;
        registration.arm(waiters, context.waker(), receiver.pop.transferred());
        receiver.announce();
    }
}

/// The future of [`Receiver::recv_async`] and [`Receiver::recv_async_mut`]. `R` is the kind of
/// borrow.
#[must_use = "a future does nothing until it is awaited"]
pub struct RecvFuture<'a, P: Pop, R = &'a mut Receiver<P>>
where
    R: Deref<Target = Receiver<P>> + Unpin,
{
    receiver: R,
    registration: Registration,
    borrows: PhantomData<fn() -> &'a P>,
}

impl<P: Pop, R: Deref<Target = Receiver<P>> + Unpin> RecvFuture<'_, P, R> {
    pub(super) fn new(receiver: R) -> Self {
        Self {
            receiver,
            registration: Registration::default(),
            borrows: PhantomData,
        }
    }
}

impl<P: Pop, R: Deref<Target = Receiver<P>> + Unpin> Future for RecvFuture<'_, P, R> {
    type Output = Result<P::Item, RecvError>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            receiver,
            registration,
            ..
        } = &mut *self;
        poll_recv(receiver, registration, context)
    }
}

impl<P: Pop, R: Deref<Target = Receiver<P>> + Unpin> Drop for RecvFuture<'_, P, R> {
    #[inline(always)]
    fn drop(&mut self) {
        self.registration
            .cancel(&self.receiver.pop.core().recv_waiters);
    }
}

/// The stream of [`Receiver::stream`] and [`Receiver::stream_mut`]. `R` is the kind of borrow.
#[must_use = "a stream does nothing until it is polled"]
pub struct RecvStream<'a, P: Pop, R = &'a mut Receiver<P>>
where
    R: Deref<Target = Receiver<P>> + Unpin,
{
    receiver: R,
    registration: Registration,
    borrows: PhantomData<fn() -> &'a P>,
}

impl<P: Pop, R: Deref<Target = Receiver<P>> + Unpin> RecvStream<'_, P, R> {
    pub(super) fn new(receiver: R) -> Self {
        Self {
            receiver,
            registration: Registration::default(),
            borrows: PhantomData,
        }
    }
}

impl<P: Pop, R: Deref<Target = Receiver<P>> + Unpin> futures_core::Stream for RecvStream<'_, P, R> {
    type Item = P::Item;

    #[inline(always)]
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<P::Item>> {
        let Self {
            receiver,
            registration,
            ..
        } = &mut *self;
        poll_recv(receiver, registration, context).map(Result::ok)
    }
}

impl<P: Pop, R: Deref<Target = Receiver<P>> + Unpin> Drop for RecvStream<'_, P, R> {
    #[inline(always)]
    fn drop(&mut self) {
        self.registration
            .cancel(&self.receiver.pop.core().recv_waiters);
    }
}

/// The future of [`Sender::send_async`] and [`Sender::send_async_mut`]. `S` is the kind of borrow.
#[must_use = "a future does nothing until it is awaited"]
pub struct SendFuture<'a, P: Push, S = &'a mut Sender<P>>
where
    S: Deref<Target = Sender<P>> + Unpin,
{
    sender: S,
    value: Option<P::Item>,
    registration: Registration,
    /// In a rendezvous: the number of the offer.
    offer: Option<u64>,
    borrows: PhantomData<fn() -> &'a P>,
}

// The value is moved out of the future and never pinned.
impl<P: Push, S: Deref<Target = Sender<P>> + Unpin> Unpin for SendFuture<'_, P, S> {}

impl<P: Push, S: Deref<Target = Sender<P>> + Unpin> SendFuture<'_, P, S> {
    pub(super) fn new(sender: S, value: P::Item) -> Self {
        Self {
            sender,
            value: Some(value),
            registration: Registration::default(),
            offer: None,
            borrows: PhantomData,
        }
    }
}

impl<P: Push, S: Deref<Target = Sender<P>> + Unpin> Future for SendFuture<'_, P, S> {
    type Output = Result<(), SendError<P::Item>>;

    /// # Panics
    /// If it is polled again after it has completed.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.registration.0.is_none()
            && this.sender.push.exchange().is_none()
            && let Some(value) = this.value.take()
        {
            match this.sender.push.push_fast(value) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(back) => this.value = Some(back),
            }
        }
        this.poll_slow(context)
    }
}

impl<P: Push, S: Deref<Target = Sender<P>> + Unpin> SendFuture<'_, P, S> {
    #[cold]
    #[inline(never)]
    fn poll_slow(&mut self, context: &Context<'_>) -> Poll<Result<(), SendError<P::Item>>> {
        let Self {
            sender,
            value,
            registration,
            offer,
            ..
        } = self;
        if let Some(exchange) = sender.push.exchange() {
            return sender.poll_hand_over(exchange, value, offer, context.waker());
        }
        let waiters = &sender.push.core().send_waiters;
        let mut may_look = registration.0.is_none();
        let mut armed = false;
        loop {
            let sending = value
                .take()
                .expect("the future was polled after it completed");
            let result = match sender.try_send(sending) {
                Ok(()) => Some(Ok(())),
                Err(TrySendError::Closed(back)) => Some(Err(SendError::Closed(back))),
                Err(TrySendError::Full(back)) => {
                    *value = Some(back);
                    None
                }
            };
            if let Some(result) = result {
                if registration.finish(waiters) {
                    sender.wake_others(0);
                }
                return Poll::Ready(result);
            }
            if armed {
                return Poll::Pending;
            }
            if mem::take(&mut may_look) {
                match sender.look() {
                    Looked::Found => continue,
                    Looked::Missed => {}
                    Looked::Often => {
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                }
            }
            armed = true;
            registration.arm(waiters, context.waker(), sender.push.transferred());
        }
    }
}

impl<P: Push, S: Deref<Target = Sender<P>> + Unpin> Drop for SendFuture<'_, P, S> {
    #[inline(always)]
    fn drop(&mut self) {
        self.registration
            .cancel(&self.sender.push.core().send_waiters);
        if let Some(offer) = self.offer.take() {
            self.sender.cancel_hand_over(offer);
        }
    }
}

macro_rules! opaque {
    ($($name:ident: $bound:ident of $handle:ident),*) => {$(
        impl<P: $bound, H: Deref<Target = $handle<P>> + Unpin> fmt::Debug for $name<'_, P, H> {
            fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str(stringify!($name))
            }
        }
    )*};
}

opaque!(RecvFuture: Pop of Receiver, RecvStream: Pop of Receiver, SendFuture: Push of Sender);
