//! Sending and receiving for tasks of any executor.
//!
//! A future holds at most one place among the waiters. Dropped, it gives the place back, or the wake-up that it had already
//! to the next: nothing is lost, since a value is taken out only when the future is ready.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::{Pop, Push, Receiver, Sender};
use crate::error::{RecvError, SendError, TryRecvError, TrySendError};
use crate::waiters::{Ticket, Waiters, Who};

/// A place among the waiters, or none.
#[derive(Debug, Default)]
struct Place(Option<Ticket>);

impl Place {
    fn take(&mut self, waiters: &Waiters, waker: &Waker, moved: u64) {
        if let Some(ticket) = self.0
            && waiters.rearm(ticket, waker)
        {
            return;
        }
        self.0 = Some(waiters.arm(Who::Task, waker.clone(), moved));
    }

    /// The future got what it waited for. `true`: it had a wake-up, for that or for something else.
    fn done(&mut self, waiters: &Waiters) -> bool {
        let ticket = self.0.take();
        ticket.is_some_and(|ticket| !waiters.disarm(Who::Task, ticket))
    }

    fn leave(&mut self, waiters: &Waiters) {
        if let Some(ticket) = self.0.take() {
            waiters.leave(Who::Task, ticket);
        }
    }
}

fn poll_recv<P: Pop>(
    receiver: &Receiver<P>,
    place: &mut Place,
    context: &Context<'_>,
) -> Poll<Result<P::Item, RecvError>> {
    let waiters = &receiver.pop.core().items.0;
    for armed in [false, true] {
        if armed {
            place.take(waiters, context.waker(), receiver.pop.moved());
        }
        let result = match receiver.try_recv() {
            Ok(value) => Ok(value),
            Err(TryRecvError::Closed) => Err(RecvError),
            Err(TryRecvError::Empty) => continue,
        };
        if place.done(waiters) {
            receiver.pass_on(0);
        }
        return Poll::Ready(result);
    }
    Poll::Pending
}

/// [`Receiver::recv_async`].
#[must_use = "a future does nothing until it is awaited"]
pub struct RecvFuture<'a, P: Pop> {
    receiver: &'a mut Receiver<P>,
    place: Place,
}

impl<'a, P: Pop> RecvFuture<'a, P> {
    pub(super) fn new(receiver: &'a mut Receiver<P>) -> Self {
        let place = Place::default();
        Self { receiver, place }
    }
}

impl<P: Pop> Future for RecvFuture<'_, P> {
    type Output = Result<P::Item, RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { receiver, place } = &mut *self;
        poll_recv(receiver, place, context)
    }
}

impl<P: Pop> Drop for RecvFuture<'_, P> {
    fn drop(&mut self) {
        self.place.leave(&self.receiver.pop.core().items.0);
    }
}

/// [`Receiver::stream`].
#[must_use = "a stream does nothing until it is polled"]
pub struct RecvStream<'a, P: Pop> {
    receiver: &'a mut Receiver<P>,
    place: Place,
}

impl<'a, P: Pop> RecvStream<'a, P> {
    pub(super) fn new(receiver: &'a mut Receiver<P>) -> Self {
        let place = Place::default();
        Self { receiver, place }
    }
}

impl<P: Pop> futures_core::Stream for RecvStream<'_, P> {
    type Item = P::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<P::Item>> {
        let Self { receiver, place } = &mut *self;
        poll_recv(receiver, place, context).map(Result::ok)
    }
}

impl<P: Pop> Drop for RecvStream<'_, P> {
    fn drop(&mut self) {
        self.place.leave(&self.receiver.pop.core().items.0);
    }
}

/// [`Sender::send_async`].
#[must_use = "a future does nothing until it is awaited"]
pub struct SendFuture<'a, P: Push> {
    sender: &'a mut Sender<P>,
    value: Option<P::Item>,
    place: Place,
}

// The value is moved out by value, never pinned.
impl<P: Push> Unpin for SendFuture<'_, P> {}

impl<'a, P: Push> SendFuture<'a, P> {
    pub(super) fn new(sender: &'a mut Sender<P>, value: P::Item) -> Self {
        Self {
            sender,
            value: Some(value),
            place: Place::default(),
        }
    }
}

impl<P: Push> Future for SendFuture<'_, P> {
    type Output = Result<(), SendError<P::Item>>;

    /// # Panics
    /// When it is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            sender,
            value,
            place,
        } = &mut *self;
        let waiters = &sender.push.core().room.0;
        for armed in [false, true] {
            if armed {
                place.take(waiters, context.waker(), sender.push.moved());
            }
            let sending = value
                .take()
                .expect("the future is not polled after its end");
            let result = match sender.try_send(sending) {
                Ok(()) => Ok(()),
                Err(TrySendError::Closed(back)) => Err(SendError::Closed(back)),
                Err(TrySendError::Full(back)) => {
                    *value = Some(back);
                    continue;
                }
            };
            if place.done(waiters) {
                sender.pass_on(0);
            }
            return Poll::Ready(result);
        }
        Poll::Pending
    }
}

impl<P: Push> Drop for SendFuture<'_, P> {
    fn drop(&mut self) {
        self.place.leave(&self.sender.push.core().room.0);
    }
}

macro_rules! opaque {
    ($($name:ident: $bound:ident),*) => {$(
        impl<P: $bound> fmt::Debug for $name<'_, P> {
            fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str(stringify!($name))
            }
        }
    )*};
}

opaque!(RecvFuture: Pop, RecvStream: Pop, SendFuture: Push);
