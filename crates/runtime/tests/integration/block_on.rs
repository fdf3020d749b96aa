//! Futures awaited by actors, and actors awaited by futures' executors.

use std::future::{Future, pending, poll_fn};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use thalweg_runtime::{
    Actor, CallError, Context, Elapsed, Handle, Handler, JoinError, Mailbox, block_on,
    block_on_deadline, block_on_timeout, run, spawn, wait, yield_now,
};

use crate::kit::{Echo, runtime};

/// Reports that it was dropped.
struct Dropped(mpsc::Sender<&'static str>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.send("dropped").unwrap();
    }
}

/// A future that is ready when `ready` is true. It sends its waker at each poll.
fn when(
    ready: Arc<AtomicBool>,
    polls: Arc<AtomicUsize>,
    wakers: mpsc::Sender<Waker>,
) -> impl Future<Output = &'static str> {
    poll_fn(move |context| {
        polls.fetch_add(1, Ordering::SeqCst);
        if ready.load(Ordering::SeqCst) {
            return Poll::Ready("ready");
        }
        wakers.send(context.waker().clone()).unwrap();
        Poll::Pending
    })
}

#[test]
fn an_actor_that_awaits_leaves_its_worker_to_others() {
    let runtime = runtime(1);
    let (tx, rx) = thalweg_queue::oneshot::channel();
    let waiting = runtime.handle().spawn(move || block_on(rx));
    // On the same worker, so it runs only after the first actor has parked.
    let other = runtime.handle().spawn(move || tx.send(42));
    assert_eq!(other.join().unwrap(), Ok(()));
    assert_eq!(waiting.join().unwrap(), Ok(42));
}

#[test]
fn spurious_wake_neither_ends_nor_polls_the_future() {
    for in_actor in [true, false] {
        let (ready, polls) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let (tx, rx) = mpsc::channel();
        let (woken, wakers) = mpsc::channel();
        let future = when(Arc::clone(&ready), Arc::clone(&polls), tx);
        let awaits = move || {
            woken.send(wait::waker()).unwrap();
            block_on(future)
        };
        let runtime = runtime(1);
        let (done, ended) = mpsc::channel();
        let answers = move || done.send(awaits()).unwrap();
        if in_actor {
            drop(runtime.handle().spawn(answers));
        } else {
            drop(std::thread::spawn(answers));
        }
        let of_waiter = wakers.recv().unwrap();
        let of_future = rx.recv().unwrap();
        // The waiter's own waker, not the future's.
        of_waiter.wake_by_ref();
        if in_actor {
            // This actor runs on the same worker, after the woken one.
            runtime.handle().spawn(yield_now).join().unwrap();
        }
        assert_eq!(polls.load(Ordering::SeqCst), 1);
        // Wakes the future although it is not ready yet.
        of_future.wake();
        let of_future = rx.recv().unwrap();
        ready.store(true, Ordering::SeqCst);
        of_future.wake();
        assert_eq!(ended.recv().unwrap(), "ready");
        assert_eq!(polls.load(Ordering::SeqCst), 3);
    }
}

#[test]
fn wake_during_the_poll_is_kept() {
    let polled = run(|| {
        let mut polls = 0;
        block_on(poll_fn(|context| {
            polls += 1;
            let waker = context.waker().clone();
            std::thread::spawn(move || waker.wake()).join().unwrap();
            if polls < 3 {
                Poll::Pending
            } else {
                Poll::Ready(polls)
            }
        }))
    });
    assert_eq!(polled, 3);
}

#[test]
fn wake_while_the_poll_waits_is_kept() {
    let runtime = runtime(1);
    let (tx, rx) = thalweg_queue::oneshot::channel();
    let (wakers, waker) = thalweg_queue::oneshot::channel::<Waker>();
    let awaits = runtime.handle().spawn(move || {
        let mut inner = Some((rx, wakers));
        block_on(poll_fn(|context| match inner.take() {
            Some((rx, wakers)) => {
                drop(wakers.send(context.waker().clone()));
                // The actor is woken for its future here, and continues to wait.
                rx.recv().unwrap();
                Poll::Pending
            }
            None => Poll::Ready(()),
        }));
    });
    let other = runtime.handle().spawn(move || {
        waker.recv().unwrap().wake();
        // The waiting actor consumes the wake-up.
        yield_now();
        tx.send(()).unwrap();
    });
    other.join().unwrap();
    awaits.join().unwrap();
}

#[test]
fn self_waking_future_lets_other_actors_run() {
    let runtime = runtime(1);
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let busy = runtime.handle().spawn(move || {
        block_on(poll_fn(|context| {
            context.waker().wake_by_ref();
            if seen.load(Ordering::SeqCst) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
    });
    let stopping = Arc::clone(&stop);
    let other = runtime
        .handle()
        .spawn(move || stopping.store(true, Ordering::SeqCst));
    other.join().unwrap();
    busy.join().unwrap();
}

#[test]
fn future_not_ready_by_its_deadline_is_dropped() {
    let late = || {
        let (tx, rx) = mpsc::channel();
        let guard = Dropped(tx);
        let awaits = async move {
            let _guard = guard;
            pending::<()>().await;
        };
        let before = Instant::now();
        assert_eq!(
            block_on_timeout(Duration::from_millis(5), awaits),
            Err(Elapsed)
        );
        assert!(before.elapsed() >= Duration::from_millis(5));
        assert_eq!(rx.try_recv(), Ok("dropped"));
        // A future that is always awake times out as well.
        let restless = poll_fn(|context| {
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        let deadline = Instant::now() + Duration::from_millis(5);
        assert_eq!(block_on_deadline(deadline, restless), Err(Elapsed));
        assert!(Instant::now() >= deadline);
        // A future that is ready succeeds even with a timeout of zero.
        assert_eq!(
            block_on_timeout(Duration::ZERO, std::future::ready(1)),
            Ok(1)
        );
    };
    late();
    run(late);
}

#[test]
fn a_waker_may_outlive_its_actor_and_its_runtime() {
    let runtime = runtime(1);
    let (ready, polls) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let (tx, rx) = mpsc::channel();
    let future = when(Arc::clone(&ready), polls, tx);
    let awaits = runtime.handle().spawn(move || block_on(future));
    let waker = rx.recv().unwrap();
    ready.store(true, Ordering::SeqCst);
    waker.wake_by_ref();
    assert_eq!(awaits.join().unwrap(), "ready");
    waker.wake_by_ref();
    drop(runtime);
    waker.wake_by_ref();
    drop(waker);
}

#[test]
fn runtime_stop_unwinds_the_actor_and_drops_the_future() {
    for restless in [false, true] {
        let runtime = runtime(1);
        let (tx, rx) = mpsc::channel();
        let guard = Dropped(tx.clone());
        let awaits = runtime.handle().spawn(move || {
            let _guard = guard;
            let mut first = true;
            block_on(poll_fn(move |context| {
                if std::mem::take(&mut first) {
                    tx.send("polled").unwrap();
                }
                if restless {
                    context.waker().wake_by_ref();
                }
                Poll::<()>::Pending
            }));
        });
        assert_eq!(rx.recv(), Ok("polled"));
        drop(runtime);
        assert_eq!(rx.recv(), Ok("dropped"));
        assert!(matches!(awaits.join(), Err(JoinError::Stopped)));
    }
}

#[test]
fn runtime_stop_ends_a_timed_wait_at_once_and_unwinds_the_next() {
    let runtime = runtime(1);
    let (tx, rx) = mpsc::channel();
    let awaits = runtime.handle().spawn(move || {
        tx.send(Ok(())).unwrap();
        for _ in 0..3 {
            let hour = Duration::from_secs(3600);
            tx.send(block_on_timeout(hour, pending::<()>())).unwrap();
        }
    });
    assert_eq!(rx.recv().unwrap(), Ok(()));
    drop(runtime);
    // One error from the wait under way, and one from the next wait.
    let ends: Vec<_> = rx.iter().collect();
    assert!(!ends.is_empty() && ends.len() <= 2, "{ends:?}");
    assert!(ends.iter().all(|end| *end == Err(Elapsed)));
    assert!(matches!(awaits.join(), Err(JoinError::Stopped)));
}

/// Awaits a future in its destructor.
struct Late<F: Future + Unpin>(Option<F>, mpsc::Sender<Result<F::Output, Elapsed>>);

impl<F: Future + Unpin> Drop for Late<F> {
    fn drop(&mut self) {
        let hour = Duration::from_secs(3600);
        let in_time = block_on_timeout(hour, pending::<F::Output>());
        self.1.send(in_time).unwrap();
        if let Some(future) = self.0.take() {
            self.1.send(Ok(block_on(future))).unwrap();
        }
    }
}

#[test]
fn panicking_actor_can_await_a_future_of_another_thread() {
    let runtime = runtime(1);
    let (value, future) = thalweg_queue::oneshot::channel();
    let (tx, rx) = mpsc::channel();
    let panics = runtime.handle().spawn(move || {
        let _late = Late(Some(future), tx);
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert_eq!(rx.recv().unwrap(), Err(Elapsed));
    value.send(42).unwrap();
    assert_eq!(rx.recv().unwrap(), Ok(Ok(42)));
    assert!(matches!(panics.join(), Err(JoinError::Panic(_))));
}

#[test]
fn panic_in_the_poll_propagates_to_the_actor() {
    let runtime = runtime(1);
    let panics = runtime.handle().spawn(|| {
        block_on(poll_fn(|_| -> Poll<()> {
            std::panic::resume_unwind(Box::new("on purpose"))
        }));
    });
    let Err(JoinError::Panic(panic)) = panics.join() else {
        panic!("it panicked")
    };
    assert_eq!(panic.message(), Some("on purpose"));
}

/// Waits on both barriers.
struct Hold(Arc<Barrier>, Arc<Barrier>);

impl Handler<Hold> for Echo {
    type Reply = ();
    fn handle(&mut self, hold: Hold, _: &Context<'_, Self>) {
        hold.0.wait();
        hold.1.wait();
    }
}

#[test]
fn awaited_call_waits_for_mailbox_capacity() {
    let runtime = runtime(1);
    let mailbox = Mailbox {
        capacity: 1,
        ..Mailbox::default()
    };
    let echo = thalweg_runtime::Builder::new()
        .mailbox(mailbox)
        .start_on(runtime.handle(), Echo);
    assert_eq!(block_on(echo.call_async(1)), Ok(1));
    let (held, go) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    echo.cast(Hold(Arc::clone(&held), Arc::clone(&go))).unwrap();
    held.wait();
    // The message being handled counts until its handler returns, so the mailbox is full.
    let mut call = Box::pin(echo.call_async(2));
    let mut context = std::task::Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(&mut context).is_pending());
    assert_eq!(echo.len(), 1);
    let mut given_up = Box::pin(echo.call_async(3));
    assert!(given_up.as_mut().poll(&mut context).is_pending());
    drop(given_up);
    go.wait();
    assert_eq!(block_on(call), Ok(2));
    echo.stop();
    assert_eq!(block_on(echo.call_async(4)), Err(CallError::Ended));
}

#[test]
fn awaited_call_to_oneself_is_refused() {
    struct Itself;
    impl Actor for Itself {}
    impl Handler<u8> for Itself {
        type Reply = Result<u32, CallError>;
        fn handle(&mut self, _: u8, context: &Context<'_, Self>) -> Result<u32, CallError> {
            block_on(context.actor().call_async(1u32))
        }
    }
    impl Handler<u32> for Itself {
        type Reply = u32;
        fn handle(&mut self, value: u32, _: &Context<'_, Self>) -> u32 {
            value
        }
    }
    let runtime = runtime(1);
    let itself = runtime.handle().start(Itself);
    assert_eq!(itself.call(0u8), Ok(Err(CallError::CallingSelf)));
}

#[test]
fn actors_await_each_other_on_their_own_runtime() {
    let sum = run(|| {
        assert_eq!(Handle::current().unwrap().workers(), 1);
        let tasks: Vec<_> = (0..100u64).map(|n| spawn(move || n)).collect();
        block_on(async {
            let mut sum = 0;
            for task in tasks {
                sum += task.await.unwrap();
            }
            sum
        })
    });
    assert_eq!(sum, 4950);
}
