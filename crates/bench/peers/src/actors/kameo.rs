//! `kameo`: typed messages, boxed; the mailbox is tokio's channel.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kameo::actor::{Actor, ActorRef, Spawn, WeakActorRef};
use kameo::error::ActorStopReason;
use kameo::mailbox;
use kameo::message::{Context, Message};

use super::{Count, Counter, LIVES};

struct Counting {
    count: Count,
    ended: Arc<AtomicU64>,
}

struct Add(u64);
struct Next(u64);
struct Both;

impl Actor for Counting {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(counting: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(counting)
    }

    async fn on_stop(
        &mut self,
        _: WeakActorRef<Self>,
        _: ActorStopReason,
    ) -> Result<(), Infallible> {
        self.ended.fetch_add(1, Ordering::Release);
        Ok(())
    }
}

impl Message<Add> for Counting {
    type Reply = ();
    async fn handle(&mut self, Add(number): Add, _: &mut Context<Self, ()>) {
        self.count.add(number);
    }
}

impl Message<Next> for Counting {
    type Reply = u64;
    async fn handle(&mut self, Next(number): Next, _: &mut Context<Self, u64>) -> u64 {
        number + 1
    }
}

impl Message<Both> for Counting {
    type Reply = (u64, u64);
    async fn handle(&mut self, _: Both, _: &mut Context<Self, (u64, u64)>) -> (u64, u64) {
        self.count.both()
    }
}

/// See the module.
pub struct Kameo(ActorRef<Counting>);

impl Counter for Kameo {
    async fn start(room: Option<usize>, ended: &Arc<AtomicU64>) -> Self {
        let counting = Counting {
            count: Count::default(),
            ended: Arc::clone(ended),
        };
        let mailbox = match room {
            Some(room) => mailbox::bounded(room),
            None => mailbox::unbounded(),
        };
        Self(Counting::spawn_with_mailbox(counting, mailbox))
    }

    async fn next(&self, number: u64, within: Option<Duration>) -> u64 {
        let ask = self.0.ask(Next(number));
        match within {
            Some(within) => ask.reply_timeout(within).send().await,
            None => ask.send().await,
        }
        .expect(LIVES)
    }

    async fn add(&self, number: u64) {
        self.0.tell(Add(number)).send().await.expect(LIVES);
    }

    async fn both(&self) -> (u64, u64) {
        self.0.ask(Both).send().await.expect(LIVES)
    }

    async fn end(self) {
        self.0.stop_gracefully().await.expect(LIVES);
        // kameo's `wait_for_shutdown` waits only until the mailbox is closed.
        let ended = self.0.wait_for_shutdown_result().await;
        assert!(ended.is_ok(), "{LIVES}");
    }
}
