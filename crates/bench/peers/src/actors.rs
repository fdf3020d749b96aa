//! `ractor`, `kameo`, and an actor written by hand: the lab's actor workloads with actor libraries
//! on tokio.
//!
//! | module | subject | description |
//! | --- | --- | --- |
//! | [`ractor`] | `ractor` | its mailbox is unbounded |
//! | [`kameo`] | `kameo` | its mailbox is bounded by default: 64 messages |
//! | [`by_hand`] | `tokio_current_thread`, `tokio_multi_thread` | a task, a channel, and a `oneshot` for each reply |
//!
//! Each is a [`Counter`], and the workloads are compiled for each separately. The libraries are
//! built without their spans and traces, which cost them more than a message.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub mod by_hand;
pub mod kameo;
pub mod ractor;

/// The message of a call to an actor that has not been stopped.
const LIVES: &str = "an actor that nobody stopped answers";

/// The state of the actor: the count of received numbers, and the count of those out of order.
#[derive(Debug, Default)]
pub struct Count {
    came: u64,
    wrong: u64,
}

impl Count {
    /// Adds a number; the numbers are expected from 0 on.
    pub fn add(&mut self, number: u64) {
        self.wrong += u64::from(number != self.came);
        self.came += 1;
    }

    /// The count of received numbers, and of those out of order.
    #[must_use]
    pub fn both(&self) -> (u64, u64) {
        (self.came, self.wrong)
    }
}

/// An actor that counts the casts it receives.
pub trait Counter: Sized + Send + Sync + 'static {
    /// Starts an actor whose mailbox has the capacity `room`, or is unbounded if it is `None`. When
    /// the actor has ended, it increments `ended`.
    fn start(room: Option<usize>, ended: &Arc<AtomicU64>) -> impl Future<Output = Self> + Send;

    /// Calls the actor and returns the number after `number`. `within` limits the wait.
    fn next(&self, number: u64, within: Option<Duration>) -> impl Future<Output = u64> + Send;

    /// Casts a number; waits while a bounded mailbox is full.
    fn add(&self, number: u64) -> impl Future<Output = ()> + Send;

    /// Calls the actor: see [`Count::both`].
    fn both(&self) -> impl Future<Output = (u64, u64)> + Send;

    /// Stops the actor, and waits until it has ended.
    fn end(self) -> impl Future<Output = ()> + Send;
}

/// Makes `rounds` calls, one after another; returns the sum of the replies.
pub async fn calls<C: Counter>(rounds: u64, within: Option<Duration>) -> u64 {
    let counter = C::start(None, &Arc::default()).await;
    let mut sum = 0;
    for number in 0..rounds {
        sum += counter.next(number, within).await;
    }
    counter.end().await;
    sum
}

/// Casts the numbers below `messages`; returns [`Count::both`] after the last was handled.
pub async fn casts<C: Counter>(messages: u64, room: Option<usize>) -> (u64, u64) {
    let counter = C::start(room, &Arc::default()).await;
    for number in 0..messages {
        counter.add(number).await;
    }
    let both = counter.both().await;
    counter.end().await;
    both
}

/// Starts and ends `actors`, one after another; returns the number that ended.
pub async fn started_and_ended<C: Counter>(actors: u64) -> u64 {
    let ended = Arc::default();
    for _ in 0..actors {
        C::start(None, &ended).await.end().await;
    }
    ended.load(Ordering::Acquire)
}

/// Adds `actors` to `all`; each has answered a call.
pub async fn idle<C: Counter>(all: &mut Vec<C>, actors: u64, room: Option<usize>) {
    let ended = Arc::default();
    for number in 0..actors {
        let counter = C::start(room, &ended).await;
        assert_eq!(counter.next(number, None).await, number + 1, "{LIVES}");
        all.push(counter);
    }
}
