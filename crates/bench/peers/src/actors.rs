//! `ractor`, `kameo`, and an actor written by hand: what the lab's actors do, done by libraries of actors on tokio.
//!
//! | module | subject | what it is |
//! | --- | --- | --- |
//! | [`ractor`] | `ractor` | its mailbox has no bound |
//! | [`kameo`] | `kameo` | its mailbox has a bound unless asked otherwise: 64 messages |
//! | [`by_hand`] | `tokio_current_thread`, `tokio_multi_thread` | a task, a channel, and a `oneshot` for each reply |
//!
//! Each is a [`Counter`]: the workloads are compiled for each alone. The libraries are built without their spans and traces, which cost them
//! more than a message does.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub mod by_hand;
pub mod kameo;
pub mod ractor;

/// What a call says that cannot fail.
const LIVES: &str = "an actor that nobody stopped answers";

/// What its actor knows: how many numbers came, and how many of them out of order.
#[derive(Debug, Default)]
pub struct Count {
    came: u64,
    wrong: u64,
}

impl Count {
    /// Another number: they are due from 0 on.
    pub fn add(&mut self, number: u64) {
        self.wrong += u64::from(number != self.came);
        self.came += 1;
    }

    /// How many came, and how many of them out of order.
    #[must_use]
    pub fn both(&self) -> (u64, u64) {
        (self.came, self.wrong)
    }
}

/// An actor that counts what is cast to it.
pub trait Counter: Sized + Send + Sync + 'static {
    /// A new one, whose mailbox has room for so many messages, or for any number. When it has ended it counts itself in `ended`.
    fn start(room: Option<usize>, ended: &Arc<AtomicU64>) -> impl Future<Output = Self> + Send;

    /// Calls it: the number after `number`. With `within` it waits no longer than that.
    fn next(&self, number: u64, within: Option<Duration>) -> impl Future<Output = u64> + Send;

    /// Casts a number; waits for room where the mailbox has a bound.
    fn add(&self, number: u64) -> impl Future<Output = ()> + Send;

    /// Calls it: see [`Count::both`].
    fn both(&self) -> impl Future<Output = (u64, u64)> + Send;

    /// Stops it, and waits until it has ended.
    fn end(self) -> impl Future<Output = ()> + Send;
}

/// `rounds` calls, one after another; the sum of the replies.
pub async fn calls<C: Counter>(rounds: u64, within: Option<Duration>) -> u64 {
    let counter = C::start(None, &Arc::default()).await;
    let mut sum = 0;
    for number in 0..rounds {
        sum += counter.next(number, within).await;
    }
    counter.end().await;
    sum
}

/// Casts the numbers below `messages`; see [`Count::both`], when the last was handled.
pub async fn casts<C: Counter>(messages: u64, room: Option<usize>) -> (u64, u64) {
    let counter = C::start(room, &Arc::default()).await;
    for number in 0..messages {
        counter.add(number).await;
    }
    let both = counter.both().await;
    counter.end().await;
    both
}

/// Starts and ends `actors`, one after another; how many ended.
pub async fn started_and_ended<C: Counter>(actors: u64) -> u64 {
    let ended = Arc::default();
    for _ in 0..actors {
        C::start(None, &ended).await.end().await;
    }
    ended.load(Ordering::Acquire)
}

/// Adds `actors` to `all`, each of which has answered a call.
pub async fn idle<C: Counter>(all: &mut Vec<C>, actors: u64, room: Option<usize>) {
    let ended = Arc::default();
    for number in 0..actors {
        let counter = C::start(room, &ended).await;
        assert_eq!(counter.next(number, None).await, number + 1, "{LIVES}");
        all.push(counter);
    }
}
