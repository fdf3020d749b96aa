//! `tokio_current_thread`, `tokio_multi_thread`: workloads in addition to the twelve of
//! [`tokio_runtime`](super::tokio_runtime).

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Poll, Waker};

use tokio::task::{JoinSet, spawn};

/// The message for joining a task that is not expected to panic.
const ENDS: &str = "a task that nobody told to panic ends well";

/// A tree of tasks with ten children each, down to `leaves`, numbered from `first`; returns the sum
/// of the numbers.
pub fn skynet(first: u64, leaves: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if leaves == 1 {
            return first;
        }
        let part = leaves / 10;
        let children: Vec<_> = (0..10)
            .map(|child| spawn(skynet(first + child * part, part)))
            .collect();
        let mut sum = 0;
        for child in children {
            sum += child.await.expect(ENDS);
        }
        sum
    })
}

/// Spawns all tasks, then awaits all; returns the number that finished normally.
pub async fn all_joined(tasks: u64) -> u64 {
    let spawned: Vec<_> = (0..tasks).map(|_| spawn(async {})).collect();
    let mut well = 0;
    for task in spawned {
        well += u64::from(task.await.is_ok());
    }
    well
}

/// The same, but each is collected as it finishes. Returns the number that finished normally.
pub async fn all_in_a_set(tasks: u64) -> u64 {
    let mut set = JoinSet::new();
    for _ in 0..tasks {
        set.spawn(async {});
    }
    let mut well = 0;
    while let Some(ended) = set.join_next().await {
        well += u64::from(ended.is_ok());
    }
    well
}

/// Waits for `mine`, then calls `pass`, `rounds` times. The task that passes the turn to this one
/// wakes the waker that `register` received.
pub async fn take_turns(
    rounds: u64,
    register: impl Fn(Waker) + Send,
    mine: impl Fn() -> bool + Send,
    pass: impl Fn() + Send,
) {
    poll_fn(|context| {
        register(context.waker().clone());
        Poll::Ready(())
    })
    .await;
    for _ in 0..rounds {
        poll_fn(|_| {
            if mine() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        pass();
    }
}

/// Runs two tasks until both finish.
pub async fn both(
    one: impl Future<Output = ()> + Send + 'static,
    other: impl Future<Output = ()> + Send + 'static,
) {
    let (one, other) = (spawn(one), spawn(other));
    one.await.expect(ENDS);
    other.await.expect(ENDS);
}
