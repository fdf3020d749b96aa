//! Calls that a future waits for: from tasks of any executor, and from actors by [`block_on`](crate::block_on).

use std::future::poll_fn;

use thalweg_queue::{Overflow, oneshot};

use super::lane::Sealed;
use super::reference::{ActorRef, Message};
use super::turn::Refused;
use super::{Actor, CallError, Handler};

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
        let waits = matches!(
            self.body.mailbox.overflow,
            Overflow::Block | Overflow::BlockFor(_)
        );
        let (reply, answer) = oneshot::channel();
        let mut contents = Some(Message {
            message,
            reply: Some(reply),
        });
        loop {
            let put = self.body.put(self.priority, || {
                Sealed::new(contents.take().expect("it is put in once"))
            });
            match put {
                Ok(()) => break,
                Err(Refused::Closed) => return Err(CallError::Ended),
                Err(Refused::Full) if !waits => return Err(CallError::Full),
                Err(Refused::Full) => {
                    poll_fn(|context| self.body.poll_for_room(self.priority, context.waker()))
                        .await;
                }
            }
        }
        answer.await.map_err(|_| CallError::Ended)
    }
}
