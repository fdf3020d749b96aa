//! Models of `remote_queue`: each pushed task is taken, and the worker is woken for it.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use thalweg_queue::explore::large_model;

use super::{bind, drain_or_park, new_task};
use crate::remote_queue::RemoteQueue;

#[test]
fn two_threads_wake_one_actor_each() {
    large_model(|| {
        let queue = RemoteQueue::allocate();
        let [(one, its_handle), (other, others_handle)] = [(); 2].map(|()| new_task(|| ()));
        let tasks = [one, other];
        let threads = tasks.map(|task| {
            bind(task, queue);
            let waker = task.waker();
            thread::spawn(move || waker.wake())
        });
        let mut woken = 0;
        while woken < 2 {
            drain_or_park(queue, |task| {
                assert!(tasks.contains(&task));
                woken += 1;
            });
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(queue.is_empty());
        for task in tasks {
            // SAFETY: no other code started it.
            unsafe { task.run() };
        }
        drop((its_handle, others_handle));
    });
}

/// `task`'s rule 6: a woken task may check its condition at once. A change after that check wakes
/// it again.
#[test]
fn woken_task_may_check_its_condition_at_once() {
    large_model(|| {
        let queue = RemoteQueue::allocate();
        let (task, handle) = new_task(|| ());
        bind(task, queue);
        let flags = Arc::new([false, false].map(AtomicBool::new));
        let threads = [0, 1].map(|nth| {
            let (flags, waker) = (flags.clone(), task.waker());
            thread::spawn(move || {
                flags[nth].store(true, Ordering::Relaxed);
                waker.wake();
            })
        });
        let mut has_seen = false;
        while !has_seen {
            drain_or_park(queue, |_| {
                has_seen = flags.iter().all(|one| one.load(Ordering::Relaxed));
            });
        }
        for thread in threads {
            thread.join().unwrap();
        }
        for left in queue.drain() {
            left.drop_reference();
        }
        // SAFETY: no other code started it.
        unsafe { task.run() };
        drop(handle);
    });
}
