//! The channels' futures on tokio, whose tasks move between threads and are dropped while they
//! wait.

use std::time::Duration;

use thalweg_queue::{RecvError, SendError, mpmc as many, oneshot, spsc as one};
use tokio::runtime::{Builder, Runtime};
use tokio::{select, task, time};

use crate::threads::{scaled, watch};

/// A single-threaded and a multi-threaded runtime.
fn runtimes() -> [Runtime; 2] {
    [
        Builder::new_current_thread().enable_time().build().unwrap(),
        Builder::new_multi_thread()
            .worker_threads(3)
            .enable_time()
            .build()
            .unwrap(),
    ]
}

flavours! { each: spsc, mpsc, lane, mpmc;
    fn two_tasks_exchange_every_value(chan) {
        for runtime in runtimes() {
            for capacity in [1, 16, 1_024] {
                let count = scaled(20_000, 10) as u64;
                let (mut sender, mut receiver) = chan::channel::<u64>(capacity).unwrap();
                runtime.block_on(async {
                    let sends = task::spawn(async move {
                        for i in 0..count {
                            sender.send_async_mut(i).await.unwrap();
                        }
                    });
                    for i in 0..count {
                        assert_eq!(receiver.recv_async_mut().await, Ok(i));
                    }
                    assert_eq!(receiver.recv_async_mut().await, Err(RecvError));
                    sends.await.unwrap();
                });
            }
        }
    }

    fn task_and_thread_exchange_every_value(chan) {
        for runtime in runtimes() {
            let count = scaled(10_000, 10) as u64;
            let (sender, mut receiver) = chan::channel::<u64>(4).unwrap();
            let thread = std::thread::spawn(move || (0..count).for_each(|i| sender.send(i).unwrap()));
            runtime.block_on(async {
                for i in 0..count {
                    assert_eq!(receiver.recv_async_mut().await, Ok(i));
                }
            });
            thread.join().unwrap();
        }
    }

    /// `select!` drops the losing branch. Its value is neither lost nor sent twice.
    fn select_dropping_the_loser_loses_nothing(chan) {
        for runtime in runtimes() {
            let count = scaled(3_000, 10) as u64;
            let (mut to_b, mut from_a) = chan::channel::<u64>(1).unwrap();
            let (mut to_a, mut from_b) = chan::channel::<u64>(2).unwrap();
            runtime.block_on(async {
                let b = task::spawn(async move {
                    let (mut sent, mut received) = (0, 0);
                    while sent < count || received < count {
                        select! {
                            result = to_a.send_async_mut(sent), if sent < count => {
                                result.unwrap();
                                sent += 1;
                            }
                            value = from_a.recv_async_mut(), if received < count => {
                                assert_eq!(value, Ok(received));
                                received += 1;
                            }
                            () = task::yield_now() => {}
                        }
                    }
                });
                let (mut sent, mut received) = (0, 0);
                while sent < count || received < count {
                    select! {
                        result = to_b.send_async_mut(sent), if sent < count => {
                            result.unwrap();
                            sent += 1;
                        }
                        value = from_b.recv_async_mut(), if received < count => {
                            assert_eq!(value, Ok(received));
                            received += 1;
                        }
                        () = time::sleep(Duration::from_micros(50)) => {}
                    }
                }
                b.await.unwrap();
            });
        }
    }

    fn timeout_drops_the_pending_operation(chan) {
        for runtime in runtimes() {
            let (mut sender, mut receiver) = chan::channel::<u64>(1).unwrap();
            runtime.block_on(async {
                let short = Duration::from_millis(2);
                assert!(time::timeout(short, receiver.recv_async_mut()).await.is_err());
                sender.send_async_mut(1).await.unwrap();
                assert!(time::timeout(short, sender.send_async_mut(2)).await.is_err());
                assert_eq!(receiver.recv_async_mut().await, Ok(1));
                assert!(time::timeout(short, receiver.recv_async_mut()).await.is_err());
                drop(receiver);
                assert_eq!(sender.send_async_mut(3).await, Err(SendError::Closed(3)));
            });
        }
    }

    fn aborted_task_drops_its_handle(chan) {
        for runtime in runtimes() {
            let (mut sender, mut receiver) = chan::channel::<u64>(1).unwrap();
            runtime.block_on(async {
                let waits = task::spawn(async move { receiver.recv_async_mut().await });
                task::yield_now().await;
                waits.abort();
                assert!(waits.await.unwrap_err().is_cancelled());
                assert_eq!(sender.send_async_mut(1).await, Err(SendError::Closed(1)));
            });
        }
    }
}

#[test]
fn many_tasks_share_one_channel() {
    let _watched = watch();
    for runtime in runtimes() {
        let each = scaled(2_000, 5);
        let (sender, receiver) = many::channel::<usize>(3).unwrap();
        let sum = runtime.block_on(async {
            for _ in 0..8 {
                let mut sender = sender.clone();
                task::spawn(async move {
                    for i in 1..=each {
                        sender.send_async_mut(i).await.unwrap();
                    }
                });
            }
            drop(sender);
            let tasks: Vec<_> = (0..8)
                .map(|_| {
                    let mut receiver = receiver.clone();
                    task::spawn(async move {
                        let mut sum = 0;
                        while let Ok(value) = receiver.recv_async_mut().await {
                            sum += value;
                        }
                        sum
                    })
                })
                .collect();
            let mut sum = 0;
            for task in tasks {
                sum += task.await.unwrap();
            }
            sum
        });
        assert_eq!(sum, 8 * each * (each + 1) / 2);
    }
}

#[test]
fn many_requests_with_a_oneshot_each_are_answered() {
    let _watched = watch();
    for runtime in runtimes() {
        let (mut ask, mut questions) = one::channel::<(u64, oneshot::Sender<u64>)>(4).unwrap();
        runtime.block_on(async {
            task::spawn(async move {
                while let Ok((question, answer)) = questions.recv_async_mut().await {
                    // Some requests get no answer.
                    if question % 10 != 0 {
                        answer.send(question + 1).unwrap();
                    }
                }
            });
            for i in 1..scaled(2_000, 5) as u64 {
                let (answer, receiver) = oneshot::channel();
                ask.send_async_mut((i, answer)).await.unwrap();
                let expected = if i % 10 == 0 {
                    Err(RecvError)
                } else {
                    Ok(i + 1)
                };
                assert_eq!(receiver.await, expected);
            }
        });
    }
}
