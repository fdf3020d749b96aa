//! An actor as in tokio's own tutorial: a task that owns the state and reads a channel.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, spawn};
use tokio::time::timeout;

use super::{Count, Counter, LIVES};

enum Message {
    Add(u64),
    Next(u64, oneshot::Sender<u64>),
    Both(oneshot::Sender<(u64, u64)>),
}

enum Sender {
    Bounded(mpsc::Sender<Message>),
    Unbounded(mpsc::UnboundedSender<Message>),
}

/// See the module.
pub struct ByHand {
    sender: Sender,
    task: JoinHandle<()>,
}

impl Count {
    fn handle(&mut self, message: Message) {
        // The caller may have stopped waiting.
        match message {
            Message::Add(number) => self.add(number),
            Message::Next(number, reply) => drop(reply.send(number + 1)),
            Message::Both(reply) => drop(reply.send(self.both())),
        }
    }
}

impl ByHand {
    async fn send(&self, message: Message) {
        let sent = match &self.sender {
            Sender::Bounded(sender) => sender.send(message).await.is_ok(),
            Sender::Unbounded(sender) => sender.send(message).is_ok(),
        };
        assert!(sent, "{LIVES}");
    }
}

impl Counter for ByHand {
    async fn start(room: Option<usize>, ended: &Arc<AtomicU64>) -> Self {
        let ended = Arc::clone(ended);
        let mut count = Count::default();
        match room {
            Some(room) => {
                let (sender, mut receiver) = mpsc::channel(room);
                let task = spawn(async move {
                    while let Some(message) = receiver.recv().await {
                        count.handle(message);
                    }
                    ended.fetch_add(1, Ordering::Release);
                });
                Self {
                    sender: Sender::Bounded(sender),
                    task,
                }
            }
            None => {
                let (sender, mut receiver) = mpsc::unbounded_channel();
                let task = spawn(async move {
                    while let Some(message) = receiver.recv().await {
                        count.handle(message);
                    }
                    ended.fetch_add(1, Ordering::Release);
                });
                Self {
                    sender: Sender::Unbounded(sender),
                    task,
                }
            }
        }
    }

    async fn next(&self, number: u64, within: Option<Duration>) -> u64 {
        let (reply, answer) = oneshot::channel();
        self.send(Message::Next(number, reply)).await;
        match within {
            Some(within) => timeout(within, answer).await.expect(LIVES),
            None => answer.await,
        }
        .expect(LIVES)
    }

    async fn add(&self, number: u64) {
        self.send(Message::Add(number)).await;
    }

    async fn both(&self) -> (u64, u64) {
        let (reply, answer) = oneshot::channel();
        self.send(Message::Both(reply)).await;
        answer.await.expect(LIVES)
    }

    async fn end(self) {
        drop(self.sender);
        self.task.await.expect(LIVES);
    }
}
