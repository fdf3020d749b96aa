//! `select!`: which arm runs, and when, and how a wait in it ends.

use std::cell::Cell;
use std::future::{Future, pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context as Task, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use thalweg_runtime::cancel::{Cause, with_timeout};
use thalweg_runtime::sync::Semaphore;
use thalweg_runtime::{
    Config, JoinError, Runtime, Sleep, block_on, channel, interval, run, select, sleep_async,
    spawn, yield_now,
};

use crate::kit::{LONG, on_both};

#[test]
fn the_arm_that_is_ready_runs_and_its_value_is_the_selects() {
    on_both(|| {
        let (_open, mut never) = channel::<u32>();
        let (sender, mut numbers) = channel();
        spawn(move || sender.send(42).unwrap());
        let value = select! {
            number = numbers.recv_async() => number.unwrap(),
            _ = never.recv_async() => unreachable!(),
            () = sleep_async(LONG) => unreachable!(),
        };
        assert_eq!(value, 42);
    });
}

#[test]
fn a_body_may_be_a_block_an_expression_or_a_way_out() {
    fn leaves() -> Option<u32> {
        let mut turns = 0;
        loop {
            select! {
                n = ready(1) => {
                    turns += n;
                    if turns < 3 {
                        continue;
                    }
                    break;
                }
                () = pending() => { unreachable!() },
            }
        }
        let n = select! { n = ready(None) => n? };
        Some(n)
    }
    assert_eq!(leaves(), None);
    let sum = select! { (a, Ok(b) | Err(b)) = ready((1, Err::<u8, u8>(2))) => a + b };
    assert_eq!(sum, 3);
}

#[test]
fn no_arm_is_left_out_and_biased_takes_the_first() {
    const TURNS: usize = if cfg!(miri) { 200 } else { 8_000 };
    let mut won = [0; 8];
    let mut other = [0; 2];
    for _ in 0..TURNS {
        let n = select! {
            n = ready(0) => n, n = ready(1) => n, n = ready(2) => n, n = ready(3) => n,
            n = ready(4) => n, n = ready(5) => n, n = ready(6) => n, n = ready(7) => n,
        };
        won[n] += 1;
        // Two `select!`s in turn: neither receives only every other number of the random sequence.
        other[select! { n = ready(0) => n, n = ready(1) => n }] += 1;
        assert_eq!(
            select! { biased; () = pending() => 0, n = ready(1) => n, n = ready(2) => n },
            1
        );
    }
    if cfg!(miri) {
        return;
    }
    // The expected values are 1,000 and 4,000; these limits are 15 standard deviations away.
    assert!(won.iter().all(|n| *n > 500), "{won:?}");
    assert!(other.iter().all(|n| *n > 3_300), "{other:?}");
}

/// Arms that are not ready, or that a guard disables, give no other arm an advantage.
#[test]
fn select_among_eight_of_which_the_last_two_are_ready_is_uniform() {
    const TURNS: usize = if cfg!(miri) { 200 } else { 8_000 };
    let (mut behind_pending, mut behind_guards) = ([0; 2], [0; 2]);
    let never = std::hint::black_box(false);
    for _ in 0..TURNS {
        let n = select! {
            n = pending() => n, n = pending() => n, n = pending() => n, n = pending() => n,
            n = pending() => n, n = pending() => n, n = ready(0) => n, n = ready(1) => n,
        };
        behind_pending[n] += 1;
        let n = select! {
            n = ready(0), if never => n, n = ready(0), if never => n, n = ready(0), if never => n,
            n = ready(0) => n, n = ready(1) => n,
        };
        behind_guards[n] += 1;
    }
    // The expected value is half; a tenth less than that is 8.9 standard deviations away. With 200
    // turns a quarter is 7.1 standard deviations away.
    let least = if cfg!(miri) {
        TURNS / 4
    } else {
        TURNS * 45 / 100
    };
    assert!(
        behind_pending.iter().all(|n| *n > least),
        "{behind_pending:?}"
    );
    assert!(
        behind_guards.iter().all(|n| *n > least),
        "{behind_guards:?}"
    );
}

#[test]
fn a_guard_that_is_false_keeps_its_operation_from_being_made() {
    let made = Cell::new(0);
    let make = || {
        made.set(made.get() + 1);
        ready(1)
    };
    for on in [true, false] {
        let n = select! {
            biased;
            n = make(), if on => n,
            n = make(), if !on => { n + 1 }
            n = make(), if false => n + 2,
        };
        assert_eq!(n, if on { 1 } else { 2 });
    }
    assert_eq!(made.get(), 2);
}

#[test]
fn default_runs_where_nothing_is_ready_also_without_any_arm_left() {
    let never = false;
    assert_eq!(select! { () = pending() => 1, default => 2 }, 2);
    assert_eq!(select! { n = ready(1) => n, default => 2 }, 1);
    assert_eq!(select! { n = ready(1), if never => n, default => { 2 } }, 2);
    // A future that wakes itself and becomes ready later counts as not ready.
    let mut polled = false;
    let later = poll_fn(|context| {
        context.waker().wake_by_ref();
        if std::mem::replace(&mut polled, true) {
            Poll::Ready(1)
        } else {
            Poll::Pending
        }
    });
    assert_eq!(select! { n = later => n, default => 2 }, 2);
}

#[test]
#[should_panic(expected = "select! has nothing to wait for")]
fn all_guards_false_without_a_default_panics() {
    let never = false;
    select! {
        () = pending(), if never => (),
        () = ready(()), if never => (),
    }
}

#[test]
fn a_loop_of_it_with_a_default_lets_others_run() {
    run(|| {
        let (sender, mut numbers) = channel();
        spawn(move || sender.send(1).unwrap());
        // Nothing else yields to the sender, so this works only if `select!` is a preemption point.
        let n = loop {
            select! {
                n = numbers.recv_async() => break n.unwrap(),
                default => {}
            }
        };
        assert_eq!(n, 1);
    });
}

#[test]
fn sixty_four_arms() {
    macro_rules! many {
        ($which:ident: $($n:literal)*) => {
            select! {
                $(
                    n = async { if $which == $n { $n } else { pending().await } } => (n, $n),
                )*
            }
        };
    }
    for which in 0..64 {
        let won = many!(which:
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60
            61 62 63);
        assert_eq!(won, (which, which));
    }
}

#[test]
fn the_operands_are_free_in_the_body_and_a_select_may_lie_in_one() {
    run(|| {
        let (sender, mut one) = channel();
        let (other, mut two) = channel();
        sender.send(1).unwrap();
        sender.send(2).unwrap();
        other.send(3).unwrap();
        let mut sum = select! {
            biased;
            n = one.recv_async() => n.unwrap() + select! {
                n = one.recv_async() => n.unwrap(),
                () = sleep_async(LONG) => unreachable!(),
            },
            n = two.recv_async() => n.unwrap(),
        };
        // The same inside an arm's future, whose poll itself waits.
        sum += select! {
            n = async {
                select! {
                    n = two.recv_async() => n.unwrap(),
                    () = sleep_async(LONG) => 0,
                }
            } => n,
        };
        assert_eq!(sum, 6);
    });
}

#[test]
fn a_panic_in_a_body_or_an_operation_passes_and_takes_nothing_along() {
    run(|| {
        let (sender, mut numbers) = channel();
        sender.send(1).unwrap();
        let panics = |numbers: &mut thalweg_runtime::Receiver<i32>, in_body: bool| {
            catch_unwind(AssertUnwindSafe(|| {
                select! {
                    biased;
                    () = async { assert!(in_body, "the operation's") } => panic!("the body's"),
                    _ = numbers.recv_async() => {}
                }
            }))
            .unwrap_err()
        };
        let words = panics(&mut numbers, true);
        assert_eq!(*words.downcast::<&str>().unwrap(), "the body's");
        let words = panics(&mut numbers, false);
        assert_eq!(*words.downcast::<&str>().unwrap(), "the operation's");
        assert_eq!(numbers.try_recv(), Ok(1));
    });
}

#[test]
fn a_kill_ends_it_and_what_it_waited_for_is_free() {
    on_both(|| {
        let permits = Arc::new(Semaphore::new(0));
        let theirs = Arc::clone(&permits);
        let (waits, mut waiting) = channel();
        let child = spawn(move || {
            let (_open, mut never) = channel::<u32>();
            select! {
                _ = never.recv_async() => {}
                _ = theirs.acquire_async(1) => {}
                () = async { waits.send(()).unwrap(); pending().await } => {}
                () = sleep_async(LONG) => {}
            }
        });
        block_on(waiting.recv_async()).unwrap();
        child.pid().kill().unwrap();
        match child.join() {
            Err(JoinError::Exit(reason)) => assert_eq!(reason.kind(), "killed"),
            other => panic!("{other:?}"),
        }
        permits.add_permits(1);
        assert!(permits.try_acquire().is_ok(), "nobody stands in its line");
    });
}

#[test]
fn a_deadline_and_a_cancellation_around_it_end_it() {
    on_both(|| {
        let late = with_timeout(Duration::from_millis(1), || {
            select! {
                () = pending() => {}
                () = sleep_async(LONG) => {}
            }
        });
        assert_eq!(late.unwrap_err().cause, Cause::Deadline);
        let asked = thalweg_runtime::cancel::cancel_scope(|token| {
            let token = token.clone();
            spawn(move || token.cancel("enough"));
            select! { () = pending() => {}, () = sleep_async(LONG) => {} }
        });
        assert_eq!(asked.unwrap_err().to_string(), "cancelled: enough");
    });
}

#[test]
fn the_runtimes_end_ends_it_and_drops_its_operations() {
    struct Dropped(mpsc::Sender<()>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let (tx, rx) = mpsc::channel();
    let (begun, begins) = mpsc::channel();
    let waiting = runtime.handle().spawn(move || {
        let dropped = Dropped(tx);
        select! {
            () = async move {
                let _dropped = dropped;
                begun.send(()).unwrap();
                pending().await
            } => {}
            () = sleep_async(LONG) => {}
        }
    });
    begins.recv().unwrap();
    drop(runtime);
    rx.recv().unwrap();
    assert!(matches!(waiting.join(), Err(JoinError::Stopped)));
}

#[test]
fn a_thread_selects_too() {
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let (sender, mut numbers) = channel();
    let mut child = runtime.handle().spawn(move || sender.send(1));
    let mut down = child.pid().monitor();
    let (mut number, mut joined, mut ended, mut slept) = (false, false, false, false);
    while !(number && joined && ended && slept) {
        select! {
            n = numbers.recv_async(), if !number => number = n.is_ok(),
            value = &mut child, if !joined => joined = value.unwrap().is_ok(),
            down = &mut down, if !ended => ended = down.reason.kind() == "normal",
            () = sleep_async(Duration::from_millis(1)), if !slept => slept = true,
        }
    }
}

#[test]
fn a_sleep_that_is_kept_over_many_waits_comes_once_and_none_comes_early() {
    on_both(|| {
        let begun = Instant::now();
        let mut sleep = sleep_async(Duration::from_millis(3));
        let mut shorter = 0;
        loop {
            let at = Instant::now();
            select! {
                () = &mut sleep => break,
                () = sleep_async(Duration::from_micros(100)) => {
                    assert!(at.elapsed() >= Duration::from_micros(100));
                    shorter += 1;
                }
                () = sleep_async(LONG) => unreachable!(),
            }
        }
        assert!(begun.elapsed() >= Duration::from_millis(3));
        assert!(shorter <= 30);
        let mut ticks = interval(Duration::from_millis(1));
        let first = select! { at = ticks.tick_async() => at };
        // A tick that loses is not lost.
        select! { biased; () = ready(()) => {}, _ = ticks.tick_async() => unreachable!() }
        let second = select! { at = ticks.tick_async() => at, () = sleep_async(LONG) => first };
        assert_eq!(second, first + Duration::from_millis(1));
    });
}

/// A combinator with a waker of its own, as `FuturesUnordered` has.
struct Own<F> {
    future: Pin<Box<F>>,
    flag: Arc<Flag>,
}

struct Flag {
    woken: AtomicBool,
    outer: Mutex<Option<Waker>>,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        if let Some(outer) = self.outer.lock().unwrap().take() {
            outer.wake();
        }
    }
}

impl<F: Future> Future for Own<F> {
    type Output = F::Output;
    fn poll(mut self: Pin<&mut Self>, context: &mut Task<'_>) -> Poll<F::Output> {
        *self.flag.outer.lock().unwrap() = Some(context.waker().clone());
        if !self.flag.woken.swap(false, Ordering::SeqCst) {
            return Poll::Pending;
        }
        let waker = Waker::from(Arc::clone(&self.flag));
        self.future.as_mut().poll(&mut Task::from_waker(&waker))
    }
}

#[test]
fn a_sleep_wakes_whoever_polls_it() {
    let own = || Own {
        future: Box::pin(sleep_async(Duration::from_millis(2))),
        flag: Arc::new(Flag {
            woken: AtomicBool::new(true),
            outer: Mutex::default(),
        }),
    };
    // Woken by a combinator's own waker, in an actor and on a thread.
    let begun = Instant::now();
    run(move || select! { () = own() => {}, () = sleep_async(LONG) => panic!("it was lost") });
    select! { () = own() => {}, () = sleep_async(LONG) => panic!("it was lost") }
    assert!(begun.elapsed() >= Duration::from_millis(4));
    // Polled by one waiter, and then by another.
    run(|| {
        let mut sleep = sleep_async(Duration::from_millis(20));
        // On a busy machine the sleep may have ended already.
        while select! { biased; () = &mut sleep => true, () = ready(()) => false } {
            sleep = sleep_async(Duration::from_millis(20));
        }
        spawn(move || block_on(&mut sleep)).join().unwrap();
    });
    // Polled by another thread with our waker, while the waiter is parked for longer.
    run(|| {
        let (send, wakers) = mpsc::channel::<Waker>();
        let shared: Arc<Mutex<Option<Pin<Box<Sleep>>>>> = Arc::default();
        let theirs = Arc::clone(&shared);
        std::thread::spawn(move || {
            let waker = wakers.recv().unwrap();
            std::thread::sleep(Duration::from_millis(2));
            let mut place = theirs.lock().unwrap();
            let sleep = place.insert(Box::pin(sleep_async(Duration::from_millis(1))));
            let _ = sleep.as_mut().poll(&mut Task::from_waker(&waker));
        });
        select! {
            () = poll_fn(|context| match &mut *shared.lock().unwrap() {
                Some(sleep) => sleep.as_mut().poll(context),
                None => {
                    let _ = send.send(context.waker().clone());
                    Poll::Pending
                }
            }) => {}
            () = sleep_async(LONG) => unreachable!(),
        }
    });
}

#[test]
fn a_wake_that_comes_while_a_poll_waits_is_kept() {
    run(|| {
        let (sender, mut numbers) = channel();
        let (woken, wakes) = channel();
        let mut asked = 0;
        let n = select! {
            biased;
            n = poll_fn(|context| {
                asked += 1;
                if asked == 1 {
                    let waker = context.waker().clone();
                    let sender = sender.clone();
                    let woken = woken.clone();
                    spawn(move || {
                        waker.wake();
                        sender.send(1).unwrap();
                        woken.send(()).unwrap();
                    });
                    // The actor waits in here, and consumes its wake-up for that wait.
                    wakes.recv().unwrap();
                    yield_now();
                    return Poll::Pending;
                }
                Poll::Ready(asked)
            }) => n,
            _ = async { pending::<()>().await; numbers.recv_async().await } => unreachable!(),
        };
        assert_eq!(n, 2);
    });
}
