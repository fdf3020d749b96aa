//! Calls that a future waits for: from tasks of any executor, and from actors by [`block_on`](crate::block_on).

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use thalweg_queue::{Overflow, SendError, oneshot};

use super::lane::Sealed;
use super::reference::{ActorRef, Message};
use super::turn::Refused;
use super::{Actor, CallError, Handler};
use crate::shim::Ordering;

impl<A: Actor> ActorRef<A> {
    /// As [`call`](Self::call), for a task of any executor. It has no deadline of its own: the executor's timeout drops it, and a reply that
    /// comes later is dropped. The message is sent when the future is first polled and there is room.
    ///
    /// # Errors
    /// There is no reply; never [`CallError::TimedOut`].
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
    /// let runtime = Runtime::start(Config::exact(1))?;
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
            return Err(CallError::Full);
        }
        let (reply, answer) = oneshot::channel();
        let mut contents = Some(Message {
            message,
            reply: Some(reply),
        });
        loop {
            let put = self.body.put(self.priority, || {
                Sealed::traced(contents.take().expect("it is put in once"))
            });
            match put {
                Ok(()) => break,
                Err(Refused::Closed) => return Err(CallError::Ended),
                Err(Refused::Full) if !self.waits_for_room() => return Err(CallError::Full),
                Err(Refused::Full) => {
                    Room::of(self).await;
                }
            }
        }
        answer.await.map_err(|_| CallError::Ended)
    }

    /// As [`cast`](Self::cast), for a task and for [`select!`](crate::select): it waits for room where the mailbox's policy is to wait, and has no
    /// deadline of its own. Dropped before it is ready, it has sent nothing.
    ///
    /// # Errors
    /// As [`cast`](Self::cast); never [`SendError::TimedOut`].
    pub async fn cast_async<M: Send + 'static>(&self, message: M) -> Result<(), SendError<M>>
    where
        A: Handler<M>,
    {
        let mut contents = Some(Message {
            message,
            reply: None,
        });
        loop {
            let put = self.body.put(self.priority, || {
                Sealed::new(contents.take().expect("it is put in once"))
            });
            let Err(refused) = put else {
                return Ok(());
            };
            let back = |contents: Option<Message<M, A::Reply>>| {
                contents.expect("it was not put in").message
            };
            match refused {
                Refused::Closed => return Err(SendError::Closed(back(contents))),
                Refused::Full if self.waits_for_room() && !self.body.is_caller() => {
                    Room::of(self).await;
                }
                Refused::Full if self.body.mailbox.overflow == Overflow::DropNewest => {
                    self.body.dropped.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                Refused::Full => return Err(SendError::Full(back(contents))),
            }
        }
    }

    fn waits_for_room(&self) -> bool {
        matches!(
            self.body.mailbox.overflow,
            Overflow::Block | Overflow::BlockFor(_)
        )
    }
}

/// Room in a mailbox. Dropped, it leaves the list of those who wait for it.
struct Room<'a, A: Actor> {
    actor: &'a ActorRef<A>,
    waits: Option<Waker>,
}

impl<'a, A: Actor> Room<'a, A> {
    fn of(actor: &'a ActorRef<A>) -> Self {
        Self { actor, waits: None }
    }
}

impl<A: Actor> Future for Room<'_, A> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { actor, .. } = &*self;
        let room = actor.body.poll_for_room(actor.priority, context.waker());
        self.waits = room.is_pending().then(|| context.waker().clone());
        room
    }
}

impl<A: Actor> Drop for Room<'_, A> {
    fn drop(&mut self) {
        if let Some(waker) = &self.waits {
            self.actor.body.leave_room(waker);
        }
    }
}
