//! `ractor`: a supervised actor with four ports, whose messages are boxed as `Any`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ractor::rpc::CallResult;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use tokio::task::JoinHandle;

use super::{Count, Counter, LIVES};

enum Message {
    Add(u64),
    Next(u64, RpcReplyPort<u64>),
    Both(RpcReplyPort<(u64, u64)>),
}

struct Counting(Arc<AtomicU64>);

impl Actor for Counting {
    type Msg = Message;
    type State = Count;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Message>, (): ()) -> Result<Count, ActorProcessingErr> {
        Ok(Count::default())
    }

    async fn handle(
        &self,
        _: ActorRef<Message>,
        message: Message,
        count: &mut Count,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Add(number) => count.add(number),
            Message::Next(number, reply) => reply.send(number + 1)?,
            Message::Both(reply) => reply.send(count.both())?,
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<Message>,
        _: &mut Count,
    ) -> Result<(), ActorProcessingErr> {
        self.0.fetch_add(1, Ordering::Release);
        Ok(())
    }
}

/// See the module. It has no bounded mailbox.
pub struct Ractor {
    actor: ActorRef<Message>,
    task: JoinHandle<()>,
}

fn replied<T>(result: CallResult<T>) -> T {
    match result {
        CallResult::Success(reply) => reply,
        CallResult::Timeout | CallResult::SenderError => panic!("{LIVES}"),
    }
}

impl Counter for Ractor {
    async fn start(room: Option<usize>, ended: &Arc<AtomicU64>) -> Self {
        assert_eq!(room, None, "ractor's mailboxes have no bound");
        let (actor, task) = Actor::spawn(None, Counting(Arc::clone(ended)), ())
            .await
            .expect(LIVES);
        Self { actor, task }
    }

    async fn next(&self, number: u64, within: Option<Duration>) -> u64 {
        let reply = self
            .actor
            .call(|reply| Message::Next(number, reply), within);
        replied(reply.await.expect(LIVES))
    }

    async fn add(&self, number: u64) {
        self.actor.cast(Message::Add(number)).expect(LIVES);
    }

    async fn both(&self) -> (u64, u64) {
        replied(self.actor.call(Message::Both, None).await.expect(LIVES))
    }

    async fn end(self) {
        self.actor.stop(None);
        self.task.await.expect(LIVES);
    }
}
