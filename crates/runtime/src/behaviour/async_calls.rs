//! Calls and casts as futures, for tasks of any executor and for actors that use
//! [`block_on`](crate::block_on).

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use thalweg_queue::{Overflow, SendError, oneshot};

use super::body::PushError;
use super::envelope_queue::BoxedEnvelope;
use super::reference::{ActorRef, Message};
use super::{Actor, CallError, Handler};
use crate::shim::Ordering;

impl<A: Actor> ActorRef<A> {
    /// As [`call`](Self::call), for a task of any executor. The call has no deadline of its own:
    /// use the executor's timeout. If the future is dropped, a later reply is discarded. The
    /// message is sent when the future is first polled and the mailbox has capacity.
    ///
    /// # Errors
    /// As [`call`](Self::call), but never [`CallError::TimedOut`].
    ///
    /// ```
    /// use thalweg_runtime::{Actor, Config, Context, Handler, Runtime, block_on};
    ///
    /// struct Doubler;
    /// impl Actor for Doubler {}
    /// impl Handler<u32> for Doubler {
    ///     type Reply = u32;
    ///     fn handle(&mut self, number: u32, _: &Context<'_, Self>) -> u32 {
    ///         number * 2
    ///     }
    /// }
    ///
    /// let runtime = Runtime::start(Config::with_workers(1))?;
    /// let doubler = runtime.handle().start(Doubler);
    /// // In a task: doubler.call_async(21).await
    /// assert_eq!(block_on(doubler.call_async(21)), Ok(42));
    /// # Ok::<(), thalweg_runtime::StartError>(())
    /// ```
    pub async fn call_async<M: Send + 'static>(&self, message: M) -> Result<A::Reply, CallError>
    where
        A: Handler<M>,
    {
        if self.body.is_caller() {
            return Err(CallError::CallingSelf);
        }
        let (reply, answer) = oneshot::channel();
        let mut contents = Some(Message {
            message,
            reply_to: reply,
        });
        loop {
            let pushed = self.body.push(self.priority, || {
                BoxedEnvelope::traced(contents.take().expect("the message is pushed once"))
            });
            match pushed {
                Ok(_) => break,
                Err(PushError::Closed) => return Err(CallError::Ended),
                Err(PushError::Full) if !self.blocks_when_full() => return Err(CallError::Full),
                Err(PushError::Full) => {
                    CapacityWait::of(self).await;
                }
            }
        }
        answer.await.map_err(|_| CallError::Ended)
    }

    /// As [`cast`](Self::cast), for a task and for [`select!`](crate::select). If the overflow
    /// policy is to wait, it waits for capacity without a deadline. A future that is dropped before
    /// it is ready has sent nothing.
    ///
    /// # Errors
    /// As [`cast`](Self::cast); never [`SendError::TimedOut`].
    pub async fn cast_async<M: Send + 'static>(&self, message: M) -> Result<(), SendError<M>>
    where
        A: Handler<M>,
    {
        let mut contents = Some(Message {
            message,
            reply_to: (),
        });
        loop {
            let pushed = self.body.push(self.priority, || {
                BoxedEnvelope::new(contents.take().expect("the message is pushed once"))
            });
            let Err(refused) = pushed else {
                return Ok(());
            };
            let back = |contents: Option<Message<M, ()>>| {
                contents.expect("the message was not pushed").message
            };
            match refused {
                PushError::Closed => return Err(SendError::Closed(back(contents))),
                PushError::Full if self.blocks_when_full() && !self.body.is_caller() => {
                    CapacityWait::of(self).await;
                }
                PushError::Full if self.body.mailbox.overflow == Overflow::DropNewest => {
                    self.body.dropped.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                PushError::Full => return Err(SendError::Full(back(contents))),
            }
        }
    }

    fn blocks_when_full(&self) -> bool {
        matches!(
            self.body.mailbox.overflow,
            Overflow::Block | Overflow::BlockFor(_)
        )
    }
}

/// Waits for capacity in a mailbox. Dropping it removes its waker from the wait list.
struct CapacityWait<'a, A: Actor> {
    actor: &'a ActorRef<A>,
    waker: Option<Waker>,
}

impl<'a, A: Actor> CapacityWait<'a, A> {
    fn of(actor: &'a ActorRef<A>) -> Self {
        Self { actor, waker: None }
    }
}

impl<A: Actor> Future for CapacityWait<'_, A> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { actor, .. } = &*self;
        let capacity = actor.body.poll_capacity(actor.priority, context.waker());
        self.waker = capacity.is_pending().then(|| context.waker().clone());
        capacity
    }
}

impl<A: Actor> Drop for CapacityWait<'_, A> {
    fn drop(&mut self) {
        if let Some(waker) = &self.waker {
            self.actor.body.cancel_wait(waker);
        }
    }
}
