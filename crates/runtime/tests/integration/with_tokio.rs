//! With tokio: actors await tokio's futures, tokio's tasks await actors, and a runtime runs within
//! a task.

use std::time::Duration;

use thalweg_runtime::{
    Actor, CallError, Config, Context, Elapsed, Handler, JoinError, Runtime, block_on,
    block_on_timeout, init, run, spawn,
};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};

fn tokio_with(threads: usize) -> tokio::runtime::Runtime {
    Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_time()
        .build()
        .unwrap()
}

struct Doubler;
impl Actor for Doubler {}

impl Handler<u32> for Doubler {
    type Reply = u32;
    fn handle(&mut self, number: u32, _: &Context<'_, Self>) -> u32 {
        number * 2
    }
}

#[test]
fn actors_await_channels_that_tasks_send_to() {
    let tokio = tokio_with(1);
    let handle = tokio.handle().clone();
    run(move || {
        let (tx, rx) = oneshot::channel();
        // A sender that is dropped unsent reports an error, as everywhere.
        let (gone, nothing) = oneshot::channel::<()>();
        handle.spawn(async move {
            drop(gone);
            tx.send(42)
        });
        assert_eq!(block_on(rx), Ok(42));
        assert!(block_on(nothing).is_err());

        // With a capacity of one, so that both sides wait for each other again and again.
        let (tx, mut rx) = mpsc::channel(1);
        handle.spawn(async move {
            for n in 0..1_000u32 {
                tx.send(n).await.unwrap();
            }
        });
        let others = spawn(|| (1..=10).sum::<u32>());
        let received: Vec<_> = std::iter::from_fn(|| block_on(rx.recv())).collect();
        assert_eq!(received, (0..1_000).collect::<Vec<_>>());
        assert_eq!(others.join().unwrap(), 55);
    });
}

#[test]
fn actor_awaits_a_tokio_sleep() {
    let tokio = tokio_with(1);
    let handle = tokio.handle().clone();
    run(move || {
        let pause = Duration::from_millis(5);
        let before = std::time::Instant::now();
        let asleep = {
            let _entered = handle.enter();
            tokio::time::sleep(pause)
        };
        block_on(asleep);
        assert!(before.elapsed() >= pause);
        let hour = {
            let _entered = handle.enter();
            tokio::time::sleep(Duration::from_secs(3600))
        };
        assert_eq!(block_on_timeout(pause, hour), Err(Elapsed));
    });
}

#[test]
fn tasks_spawn_actors_and_await_them() {
    let runtime = Runtime::start(Config::with_workers(2)).unwrap();
    let handle = runtime.handle().clone();
    let doubler = runtime.handle().start(Doubler);
    for tokio in [
        tokio_with(2),
        Builder::new_current_thread().build().unwrap(),
    ] {
        let (handle, doubler) = (handle.clone(), doubler.clone());
        let sum = tokio.block_on(async move {
            let mut tasks = Vec::new();
            for n in 0..100u32 {
                let (handle, doubler) = (handle.clone(), doubler.clone());
                tasks.push(tokio::spawn(async move {
                    // An actor that waits for a value from this task.
                    let (tx, rx) = oneshot::channel();
                    let actor = handle.spawn(move || block_on(rx).unwrap() + 1);
                    tx.send(n).unwrap();
                    let value = actor.await.unwrap();
                    doubler.call_async(value).await.unwrap()
                }));
            }
            let mut sum = 0;
            for task in tasks {
                sum += task.await.unwrap();
            }
            sum
        });
        assert_eq!(sum, 2 * (1..=100).sum::<u32>());
    }
}

#[test]
fn task_gets_the_exit_reason_instead_of_a_value() {
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let handle = runtime.handle().clone();
    let doubler = runtime.handle().start(Doubler);
    let tokio = Builder::new_current_thread().build().unwrap();
    tokio.block_on(async {
        let panics = handle.spawn(|| std::panic::resume_unwind(Box::new("on purpose")));
        let panics: Result<(), _> = panics.await;
        assert!(
            matches!(panics, Err(JoinError::Panic(panic)) if panic.message() == Some("on purpose"))
        );
        let waits = handle.spawn(|| block_on(std::future::pending::<()>()));
        let stops = std::thread::spawn(move || drop(runtime));
        assert!(matches!(waits.await, Err(JoinError::Stopped)));
        stops.join().unwrap();
        assert!(matches!(handle.spawn(|| ()).await, Err(JoinError::Stopped)));
        assert_eq!(doubler.call_async(1).await, Err(CallError::Ended));
    });
}

#[test]
fn a_runtime_runs_within_a_task() {
    let work = || {
        let ready = init(Config::with_workers(2)).unwrap();
        let sum: u64 = ready.run(|| {
            let halves: Vec<_> = (0..4u64).map(|n| spawn(move || n * n)).collect();
            halves.into_iter().map(|half| half.join().unwrap()).sum()
        });
        sum + run(|| spawn(|| 1).join().unwrap())
    };
    let tokio = tokio_with(2);
    tokio.block_on(async {
        assert_eq!(tokio::spawn(async move { work() }).await.unwrap(), 15);
        assert_eq!(tokio::task::spawn_blocking(work).await.unwrap(), 15);
        let in_place = tokio::spawn(async move { tokio::task::block_in_place(work) });
        assert_eq!(in_place.await.unwrap(), 15);
        let panics = tokio::spawn(async { run(|| std::panic::resume_unwind(Box::new(7))) });
        assert!(panics.await.unwrap_err().is_panic());
        // The runtime is still usable.
        assert_eq!(tokio::spawn(async { 1 }).await.unwrap(), 1);
    });
    let alone = Builder::new_current_thread().build().unwrap();
    assert_eq!(alone.block_on(async { work() }), 15);
}

#[test]
fn tokio_futures_stay_ready_within_block_in_place() {
    let tokio = tokio_with(2);
    let received = tokio.block_on(async {
        let task = tokio::spawn(async {
            tokio::task::block_in_place(|| {
                run(|| {
                    let (tx, mut rx) = mpsc::channel(1);
                    spawn(move || (0..1_000).for_each(|n| block_on(tx.send(n)).unwrap()));
                    std::iter::from_fn(|| block_on(rx.recv())).sum::<u32>()
                })
            })
        });
        task.await.unwrap()
    });
    assert_eq!(received, 499_500);
}

// The cooperative budget belongs to the thread. On the second backend, an actor has a thread of its
// own.
#[cfg(not(thalweg_threads))]
#[test]
fn tokio_futures_stop_at_the_tasks_budget_within_a_task() {
    let tokio = tokio_with(1);
    let received = tokio.block_on(async {
        let task = tokio::spawn(async {
            run(|| {
                let (tx, mut rx) = mpsc::channel(1_000);
                (0..1_000).for_each(|n| tx.try_send(n).unwrap());
                // A future that is ready returns at the first poll, whatever the timeout.
                let some = Duration::from_millis(20);
                std::iter::from_fn(|| block_on_timeout(some, rx.recv()).ok().flatten()).count()
            })
        });
        task.await.unwrap()
    });
    assert_eq!(received, 128);
}
