//! Models of `task` and `task::state`: a task ends while other threads join it, detach it, or wake
//! it.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Wake, Waker};

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;
use thalweg_queue::explore::{large_model, model};

use super::{DropCounter, bind, drain_or_park, drop_counter, finish, new_task, run};
use crate::control::{Down, OnDown};
use crate::join::wait_as_actor;
use crate::remote_queue::RemoteQueue;
use crate::task::state::TaskState;
use crate::wake_reason::WakeReason;

#[test]
fn thread_joins_while_the_task_ends() {
    model(|| {
        let (output, dropped) = drop_counter();
        let (task, handle) = new_task(move || output);
        let worker = thread::spawn(move || run(task));
        let output: DropCounter = handle.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 0);
        drop(output);
        worker.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

#[test]
fn handle_is_dropped_while_the_task_ends() {
    model(|| {
        let (output, dropped) = drop_counter();
        let (task, handle) = new_task(move || output);
        let worker = thread::spawn(move || run(task));
        drop(handle);
        worker.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

#[test]
fn waker_and_handle_are_dropped_while_the_task_ends() {
    large_model(|| {
        let (output, dropped) = drop_counter();
        let (task, handle) = new_task(move || output);
        let waker = task.waker();
        let worker = thread::spawn(move || run(task));
        let other = thread::spawn(move || drop(waker));
        drop(handle);
        worker.join().unwrap();
        other.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

/// A join with an expired deadline, then one without a deadline: the joiner is taken back in
/// between.
#[test]
fn join_is_given_up_and_repeated() {
    model(|| {
        let (output, dropped) = drop_counter();
        let (task, handle) = new_task(move || output);
        let worker = thread::spawn(move || run(task));
        let output: DropCounter = match handle.join_timeout(std::time::Duration::ZERO) {
            Ok(output) => output.unwrap(),
            Err(late) => late.0.join().unwrap(),
        };
        drop(output);
        worker.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

/// The poller is woken, and may drop the future without another poll.
#[test]
fn join_future_is_polled_and_dropped_while_the_task_ends() {
    struct Woken(std::sync::atomic::AtomicUsize);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    model(|| {
        let (output, dropped) = drop_counter();
        let (task, handle) = new_task(move || output);
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

/// `task::state`'s rule 3: the joining actor is freed as soon as the join is over.
#[test]
fn actor_of_another_worker_joins_and_ends() {
    model(|| {
        let queue = RemoteQueue::allocate();
        let (output, dropped) = drop_counter();
        let (task, handle) = new_task(move || output);
        let worker = thread::spawn(move || run(task));

        let (me, my_handle) = new_task(|| ());
        bind(me, queue);
        let park = || {
            drain_or_park(queue, |woken| assert!(woken == me));
            WakeReason::Woken
        };
        // SAFETY: the slot belongs to this handle.
        assert!(unsafe { wait_as_actor(handle.task(), me, ptr::null(), park) });
        let output: DropCounter = handle.join().unwrap();
        drop(output);
        finish(queue, (me, my_handle), worker);
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

/// Likewise, but the wait may end at its deadline, and the joiner ends then.
#[test]
fn actor_of_another_worker_gives_up_its_join_and_ends() {
    model(|| {
        let queue = RemoteQueue::allocate();
        let (task, handle) = new_task(|| ());
        let worker = thread::spawn(move || run(task));

        let (me, my_handle) = new_task(|| ());
        bind(me, queue);
        // SAFETY: the slot belongs to this handle.
        let _ = unsafe { wait_as_actor(handle.task(), me, ptr::null(), || WakeReason::TimedOut) };
        drop(handle);
        finish(queue, (me, my_handle), worker);
    });
}

/// The end of a task whose joiner is on the same worker: one thread has the task and its joiner,
/// another has a waker.
#[test]
fn waker_is_dropped_during_an_end_with_a_local_joiner() {
    model(|| {
        let state = loom::sync::Arc::new((TaskState::new(), AtomicUsize::new(0)));
        state.0.add_reference();
        let also = state.clone();
        let waker = thread::spawn(move || {
            if also.0.drop_reference() {
                also.1.fetch_add(1, Ordering::Relaxed);
            }
        });
        assert!(state.0.set_joiner());
        assert!(state.0.has_only_joiner());
        state.0.complete_for_local_joiner();
        assert!(state.0.is_complete() && state.0.is_released());
        if state.0.drop_reference() {
            state.1.fetch_add(1, Ordering::Relaxed);
        }
        waker.join().unwrap();
        assert_eq!(state.1.load(Ordering::Relaxed), 1);
    });
}

/// `task`'s rule 5: when a join returns, the task's watcher was notified once, and its control has
/// ended.
#[test]
fn watcher_is_notified_before_the_join_returns() {
    struct Notified(AtomicUsize);
    impl OnDown for Notified {
        fn on_down(&self, _: Down) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    model(|| {
        let notified = Arc::new(Notified(AtomicUsize::new(0)));
        let (task, handle) = new_task(|| ());
        task.watch(notified.clone());
        let pid = handle.pid();
        let worker = thread::spawn(move || run(task));
        assert!(handle.join().is_ok());
        assert_eq!(notified.0.load(Ordering::Relaxed), 1);
        assert!(!pid.is_alive());
        worker.join().unwrap();
        assert_eq!(Arc::strong_count(&notified), 1);
    });
}

/// `task`'s rule 6: each thread publishes a change and wakes. The actor sees all changes, even if
/// it receives fewer wake-ups.
#[test]
fn two_threads_wake_an_actor_remotely() {
    large_model(|| {
        let queue = RemoteQueue::allocate();
        let (task, handle) = new_task(|| ());
        bind(task, queue);
        let said = loom::sync::Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let wakers = [0, 1].map(|nth| {
            let (said, waker) = (said.clone(), task.waker());
            thread::spawn(move || {
                said[nth].store(true, Ordering::Relaxed);
                waker.wake();
            })
        });
        while !said.iter().all(|one| one.load(Ordering::Relaxed)) {
            drain_or_park(queue, |woken| assert!(woken == task));
        }
        run(task);
        for waker in wakers {
            waker.join().unwrap();
        }
        for left in queue.drain() {
            left.wake_from_remote_queue(|_| unreachable!("the task has ended"));
        }
        drop(handle);
    });
}

/// The wake-up arrives when its actor has ended, or during its end.
#[test]
fn waker_outlives_its_actor() {
    model(|| {
        let queue = RemoteQueue::allocate();
        let (task, handle) = new_task(|| ());
        bind(task, queue);
        let waker = task.waker();
        let waker = thread::spawn(move || {
            waker.wake_by_ref();
            waker.wake();
        });
        run(task);
        drop(handle);
        for left in queue.drain() {
            left.wake_from_remote_queue(|_| unreachable!("the task has ended"));
        }
        waker.join().unwrap();
        for left in queue.drain() {
            left.wake_from_remote_queue(|_| unreachable!("the task has ended"));
        }
    });
}
