//! `life` and `task`: a job ends beside who joins it, lets it go, or wakes it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Wake, Waker};

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;
use thalweg_queue::explore::{large_model, model};

use super::{Counted, counted, go, job, run, settle, take_some};
use crate::life::Life;
use crate::remote_queue::RemoteQueue;
use crate::wait::WakeReason;

#[test]
fn a_thread_joins_while_the_job_ends() {
    model(|| {
        let (output, dropped) = counted();
        let (task, handle) = job(move || output);
        let worker = thread::spawn(move || run(task));
        let output: Counted = handle.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 0);
        drop(output);
        worker.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

#[test]
fn the_handle_goes_while_the_job_ends() {
    model(|| {
        let (output, dropped) = counted();
        let (task, handle) = job(move || output);
        let worker = thread::spawn(move || run(task));
        drop(handle);
        worker.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

#[test]
fn a_waker_goes_beside_the_handle_and_the_end() {
    large_model(|| {
        let (output, dropped) = counted();
        let (task, handle) = job(move || output);
        let waker = task.waker();
        let worker = thread::spawn(move || run(task));
        let other = thread::spawn(move || drop(waker));
        drop(handle);
        worker.join().unwrap();
        other.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

/// A join that has no time, then one that has: the place is taken back between the two.
#[test]
fn a_join_is_given_up_and_begun_again() {
    model(|| {
        let (output, dropped) = counted();
        let (task, handle) = job(move || output);
        let worker = thread::spawn(move || run(task));
        let output: Counted = match handle.join_timeout(std::time::Duration::ZERO) {
            Ok(output) => output.unwrap(),
            Err(late) => late.0.join().unwrap(),
        };
        drop(output);
        worker.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

/// Whoever polled is woken, and may go without another look.
#[test]
fn a_future_is_polled_and_dropped_while_the_job_ends() {
    struct Woken(std::sync::atomic::AtomicUsize);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    model(|| {
        let (output, dropped) = counted();
        let (task, handle) = job(move || output);
        let mut handle = Box::pin(handle);
        let worker = thread::spawn(move || run(task));
        let woken = Arc::new(Woken(0.into()));
        let waker = Waker::from(woken.clone());
        let first = handle.as_mut().poll(&mut Context::from_waker(&waker));
        let pending = first.is_pending();
        drop(first);
        let polled_again = pending
            && handle
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending();
        drop(handle);
        worker.join().unwrap();
        if polled_again {
            assert_eq!(woken.0.load(Relaxed), 1);
        }
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

/// `life`'s rule 3: who joins is freed as soon as the join is over.
#[test]
fn an_actor_of_another_worker_joins_and_goes() {
    model(|| {
        let queue = RemoteQueue::allocate();
        let (output, dropped) = counted();
        let (task, handle) = job(move || output);
        let worker = thread::spawn(move || run(task));

        let (me, my_handle) = job(|| ());
        settle(me, queue);
        assert!(handle.wait_as_actor(me, || {
            take_some(queue, |woken| assert!(woken == me));
            WakeReason::Woken
        }));
        let output: Counted = handle.join().unwrap();
        drop(output);
        go(queue, (me, my_handle), worker);
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

/// The same, where the wait may end at its deadline, and the joiner goes then.
#[test]
fn an_actor_of_another_worker_gives_its_join_up_and_goes() {
    model(|| {
        let queue = RemoteQueue::allocate();
        let (task, handle) = job(|| ());
        let worker = thread::spawn(move || run(task));

        let (me, my_handle) = job(|| ());
        settle(me, queue);
        let _ = handle.wait_as_actor(me, || WakeReason::TimedOut);
        drop(handle);
        go(queue, (me, my_handle), worker);
    });
}

/// Of the end for a joiner on the same worker: one thread has the job and its joiner, another a waker.
#[test]
fn a_waker_goes_beside_an_end_that_was_joined_here() {
    model(|| {
        let life = loom::sync::Arc::new((Life::new(), AtomicUsize::new(0)));
        life.0.add_reference();
        let also = life.clone();
        let waker = thread::spawn(move || {
            if also.0.drop_reference() {
                also.1.fetch_add(1, Ordering::Relaxed);
            }
        });
        assert!(life.0.join());
        assert!(life.0.is_joined());
        life.0.end_joined_here();
        assert!(life.0.is_done() && life.0.has_left());
        if life.0.drop_reference() {
            life.1.fetch_add(1, Ordering::Relaxed);
        }
        waker.join().unwrap();
        assert_eq!(life.1.load(Ordering::Relaxed), 1);
    });
}

/// `task`'s rule 4: each says something and wakes; the actor sees all that was said, however few wake-ups reach it.
#[test]
fn two_wake_an_actor_from_afar() {
    large_model(|| {
        let queue = RemoteQueue::allocate();
        let (task, handle) = job(|| ());
        settle(task, queue);
        let said = loom::sync::Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let wakers = [0, 1].map(|nth| {
            let (said, waker) = (said.clone(), task.waker());
            thread::spawn(move || {
                said[nth].store(true, Ordering::Relaxed);
                waker.wake();
            })
        });
        while !said.iter().all(|one| one.load(Ordering::Relaxed)) {
            take_some(queue, |woken| assert!(woken == task));
        }
        run(task);
        for waker in wakers {
            waker.join().unwrap();
        }
        for left in queue.drain() {
            left.wake_from_remote_queue(|_| unreachable!("it has ended"));
        }
        drop(handle);
    });
}

/// A wake-up that comes when its actor has ended, or beside that.
#[test]
fn a_waker_outlives_its_actor() {
    model(|| {
        let queue = RemoteQueue::allocate();
        let (task, handle) = job(|| ());
        settle(task, queue);
        let waker = task.waker();
        let waker = thread::spawn(move || {
            waker.wake_by_ref();
            waker.wake();
        });
        run(task);
        drop(handle);
        for left in queue.drain() {
            left.wake_from_remote_queue(|_| unreachable!("it has ended"));
        }
        waker.join().unwrap();
        for left in queue.drain() {
            left.wake_from_remote_queue(|_| unreachable!("it has ended"));
        }
    });
}
