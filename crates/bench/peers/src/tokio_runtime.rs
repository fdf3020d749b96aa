//! `tokio_current_thread`, `tokio_multi_thread`: the lab's runtime workloads with tokio's tasks
//! instead of actors.
//!
//! There is one function per workload, and the workload checks its result. Sizes, and work that
//! does not belong to the runtime, come from the caller, so that both sides use the same.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, spawn, yield_now};

/// The message for joining a task that is not expected to panic.
const ENDS: &str = "a task that nobody told to panic ends well";

/// A running runtime.
#[derive(Debug)]
pub struct Tokio {
    runtime: Runtime,
    workers: usize,
}

impl Tokio {
    /// Starts a runtime: `current_thread` for one worker, else `multi_thread`. With `io` it also
    /// drives files and sockets, like `#[tokio::main]`; without, only timers.
    ///
    /// # Errors
    /// The operating system cannot provide a thread or an epoll instance.
    pub fn start(workers: usize, io: bool) -> io::Result<Self> {
        let mut builder = match workers {
            1 => Builder::new_current_thread(),
            _ => Builder::new_multi_thread(),
        };
        if io {
            builder.enable_io();
        }
        let runtime = builder.worker_threads(workers).enable_time().build()?;
        Ok(Self { runtime, workers })
    }

    /// Runs `main` to completion. On several threads it runs as a task, because the thread that
    /// starts the runtime is not a worker.
    pub fn run<T: Send + 'static>(&self, main: impl Future<Output = T> + Send + 'static) -> T {
        if self.workers == 1 {
            self.runtime.block_on(main)
        } else {
            let main = self.runtime.spawn(main);
            self.runtime.block_on(main).expect(ENDS)
        }
    }
}

/// Spawns and awaits `tasks`, one after another; returns the sum of their numbers.
pub async fn chained_spawn(tasks: u64) -> u64 {
    let mut sum = 0;
    for number in 0..tasks {
        sum += spawn(async move { number }).await.expect(ENDS);
    }
    sum
}

/// Spawns one task per round, which receives a number and answers with the next; returns the sum of
/// the answers.
pub async fn ping_pong_oneshot(rounds: u64) -> u64 {
    let mut sum = 0;
    for number in 0..rounds {
        let (ask, asked) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        drop(spawn(async move {
            let number: u64 = asked.await.expect(ENDS);
            answer.send(number + 1).expect(ENDS);
        }));
        ask.send(number).expect(ENDS);
        sum += answered.await.expect(ENDS);
    }
    sum
}

/// Spawns and awaits `tasks` in blocks while `yielders` yield. After each block it yields until
/// each yielder has run since the block began. Returns the sum of the numbers, how often each
/// yielder ran, and how often the spawner yielded for them.
pub async fn spawn_storm_busy(tasks: u64, block: u64, yielders: u64) -> (u64, Vec<u64>, u64) {
    let stop = Arc::new(AtomicBool::new(false));
    let turns: Vec<_> = (0..yielders).map(|_| Arc::new(AtomicU64::new(0))).collect();
    let yielding =
        |turns: &Arc<AtomicU64>| spawn(yield_until(Arc::clone(&stop), Arc::clone(turns)));
    let background: Vec<_> = turns.iter().map(yielding).collect();
    let (mut sum, mut waited) = (0, 0);
    for first in (0..tasks).step_by(block as usize) {
        let before: Vec<u64> = turns
            .iter()
            .map(|turns| turns.load(Ordering::Relaxed))
            .collect();
        let numbers = first..(first + block).min(tasks);
        let spawned: Vec<_> = numbers.map(|number| spawn(async move { number })).collect();
        sum += sum_of(spawned).await;
        for (turns, before) in turns.iter().zip(before) {
            while turns.load(Ordering::Relaxed) == before {
                waited += 1;
                yield_now().await;
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    for yielder in background {
        yielder.await.expect(ENDS);
    }
    let turns = turns.iter().map(|turns| turns.load(Ordering::Relaxed));
    (sum, turns.collect(), waited)
}

async fn yield_until(stop: Arc<AtomicBool>, turns: Arc<AtomicU64>) {
    let mut so_far = 0;
    while !stop.load(Ordering::Relaxed) {
        so_far += 1;
        turns.store(so_far, Ordering::Relaxed);
        yield_now().await;
    }
}

async fn sum_of(tasks: Vec<JoinHandle<u64>>) -> u64 {
    let mut sum = 0;
    for task in tasks {
        sum += task.await.expect(ENDS);
    }
    sum
}

/// Runs `tasks` that yield this often each; returns the total number of yields.
pub async fn yield_many(tasks: u64, yields: u64) -> u64 {
    let yielding = |_| {
        spawn(async move {
            let mut done = 0;
            while done < yields {
                yield_now().await;
                done += 1;
            }
            done
        })
    };
    sum_of((0..tasks).map(yielding).collect()).await
}

/// Runs `sleeps` at once, with the duration that `nap` returns; returns by how many ns each woke
/// too late.
pub async fn many_timers(sleeps: u64, nap: fn(u64) -> Duration) -> Vec<i64> {
    let sleeping = |number| {
        spawn(async move {
            let nap = nap(number);
            let began = Instant::now();
            tokio::time::sleep(nap).await;
            began.elapsed().as_nanos() as i64 - nap.as_nanos() as i64
        })
    };
    let sleepers: Vec<_> = (0..sleeps).map(sleeping).collect();
    let mut late = Vec::with_capacity(sleepers.len());
    for sleeper in sleepers {
        late.push(sleeper.await.expect(ENDS));
    }
    late
}

/// Runs `work` in one task per chunk; returns the sum of the results.
pub async fn fan_out(chunks: u64, work: impl Fn(u64) -> u64 + Copy + Send + 'static) -> u64 {
    let working = |chunk| spawn(async move { work(chunk) });
    sum_of((0..chunks).map(working).collect()).await
}

/// Nests futures `depth` times; returns the depth reached.
pub fn recursion(depth: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        match depth {
            0 => 0,
            _ => 1 + recursion(depth - 1).await,
        }
    })
}

/// Nests tasks that await a task, `depth` times; returns the depth reached.
pub fn task_per_level(depth: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        match depth {
            0 => 0,
            _ => 1 + spawn(task_per_level(depth - 1)).await.expect(ENDS),
        }
    })
}

/// Runs `producers` that send this many messages each to one consumer; returns the number received
/// from each, and the number out of order.
pub async fn funnel(producers: u32, each: u32) -> (Vec<u32>, u64) {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    for producer in 0..producers {
        let sender = sender.clone();
        drop(spawn(async move {
            for number in 0..each {
                sender.send((producer, number)).expect(ENDS);
            }
        }));
    }
    drop(sender);
    let consumer = spawn(async move {
        let (mut got, mut wrong) = (vec![0; producers as usize], 0);
        while let Some((producer, number)) = receiver.recv().await {
            let due = &mut got[producer as usize];
            wrong += u64::from(number != *due);
            *due += 1;
        }
        (got, wrong)
    });
    consumer.await.expect(ENDS)
}

/// Runs tasks that panic; returns the number of panics observed.
pub async fn panics(tasks: u64, panicking: fn()) -> u64 {
    let spawned: Vec<_> = (0..tasks)
        .map(|_| spawn(async move { panicking() }))
        .collect();
    let mut seen = 0;
    for task in spawned {
        seen += u64::from(task.await.is_err_and(|error| error.is_panic()));
    }
    seen
}
