//! Models of `join_set`: tasks end while their owner waits for them, gives up, or ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};

use loom::sync::Mutex;
use loom::thread;
use thalweg_queue::explore::{large_model, model};

use super::{bind, drain_or_park, drop_counter, finish, new_task, run};
use crate::join_set::JoinSet;
use crate::remote_queue::RemoteQueue;
use crate::wake_reason::WakeReason;

struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn two_tasks_end_while_the_owner_waits() {
    large_model(|| {
        let mut set = JoinSet::new();
        let workers = [1, 2].map(|n| {
            let (task, handle) = new_task(move || n);
            set.insert(handle);
            thread::spawn(move || run(task))
        });
        let first = set.join_next().unwrap().result.unwrap();
        let second = set.join_next().unwrap().result.unwrap();
        assert_eq!(first + second, 3);
        assert!(set.join_next().is_none());
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

/// Rule 4: the waiting actor is freed as soon as it was notified.
#[test]
fn actor_of_another_worker_is_notified_and_ends() {
    model(|| {
        let queue = RemoteQueue::allocate();
        let mut set = JoinSet::new();
        let (task, handle) = new_task(|| 1);
        set.insert(handle);
        let worker = thread::spawn(move || run(task));

        let (me, my_handle) = new_task(|| ());
        bind(me, queue);
        assert!(set.wait_as_actor(me, || {
            drain_or_park(queue, |woken| assert!(woken == me));
            WakeReason::Woken
        }));
        let ended = set.try_join_next().expect("the set waited for it");
        assert_eq!(ended.result.unwrap(), 1);
        finish(queue, (me, my_handle), worker);
    });
}

/// Likewise, but the wait is over at once, and the owner ends together with its set.
#[test]
fn actor_of_another_worker_gives_up_and_ends() {
    model(|| {
        let queue = RemoteQueue::allocate();
        let mut set = JoinSet::new();
        let (output, dropped) = drop_counter();
        let (task, handle) = new_task(move || output);
        set.insert(handle);
        let worker = thread::spawn(move || run(task));

        let (me, my_handle) = new_task(|| ());
        bind(me, queue);
        if set.wait_as_actor(me, || WakeReason::Stopping) {
            assert!(set.try_join_next().is_some());
        }
        set.detach_all();
        finish(queue, (me, my_handle), worker);
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

#[test]
fn set_is_dropped_while_two_tasks_end() {
    large_model(|| {
        let mut set = JoinSet::new();
        let (outputs, workers): (Vec<_>, Vec<_>) = (0..2)
            .map(|_| {
                let (output, dropped) = drop_counter();
                let (task, handle) = new_task(move || output);
                set.insert(handle);
                (dropped, thread::spawn(move || run(task)))
            })
            .unzip();
        set.detach_all();
        for worker in workers {
            worker.join().unwrap();
        }
        assert!(outputs.iter().all(|dropped| dropped.load(Relaxed) == 1));
    });
}

/// Rule 5: the owner waits, and drops its set when it is woken, or before.
#[test]
fn set_with_a_waker_is_dropped_while_a_task_ends() {
    model(|| {
        let mut set = JoinSet::new();
        let (output, dropped) = drop_counter();
        let (task, handle) = new_task(move || output);
        set.insert(handle);
        let worker = thread::spawn(move || run(task));
        let woken = Arc::new(Woken(0.into()));
        let waker = Waker::from(woken.clone());
        let polled = set.poll_join_next(&mut Context::from_waker(&waker));
        let joined = polled.is_ready();
        drop(polled);
        set.detach_all();
        drop(set);
        worker.join().unwrap();
        assert!(woken.0.load(Relaxed) <= usize::from(!joined));
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

/// Drops the set when it is woken.
struct Dropper(Mutex<Option<JoinSet<i32>>>);

impl Wake for Dropper {
    fn wake(self: Arc<Self>) {
        let set = self.0.lock().unwrap().take();
        set.unwrap().detach_all();
    }
}

/// Rule 5: the wake-up runs on the thread of the task that ends, before the task is released.
#[test]
fn waker_drops_the_set() {
    model(|| {
        let mut set = JoinSet::new();
        let workers = [1, 2].map(|n| {
            let (task, handle) = new_task(move || n);
            set.insert(handle);
            thread::spawn(move || run(task))
        });
        let dropper = Arc::new(Dropper(Mutex::new(None)));
        let waker = Waker::from(dropper.clone());
        let mut place = dropper.0.lock().unwrap();
        if set
            .poll_join_next(&mut Context::from_waker(&waker))
            .is_pending()
        {
            *place = Some(set);
        }
        drop(place);
        for worker in workers {
            worker.join().unwrap();
        }
        assert!(dropper.0.lock().unwrap().is_none());
    });
}

/// The last poller is woken, or sees the end itself.
#[test]
fn set_is_polled_twice_while_a_task_ends() {
    model(|| {
        let mut set = JoinSet::new();
        let (task, handle) = new_task(|| 1);
        set.insert(handle);
        let worker = thread::spawn(move || run(task));
        let woken = Arc::new(Woken(0.into()));
        let waker = Waker::from(woken.clone());
        let mut heard = 0;
        let mut pending = false;
        for _ in 0..2 {
            match set.poll_join_next(&mut Context::from_waker(&waker)) {
                Poll::Ready(Some(ended)) => heard += ended.result.unwrap(),
                Poll::Ready(None) => assert_eq!(heard, 1),
                Poll::Pending => pending = true,
            }
        }
        worker.join().unwrap();
        if heard == 0 {
            assert!(pending && woken.0.load(Relaxed) == 1);
            assert_eq!(set.try_join_next().unwrap().result.unwrap(), 1);
        }
    });
}

#[test]
fn task_that_ends_during_its_insertion_is_reported() {
    model(|| {
        let (task, handle) = new_task(|| 1);
        let worker = thread::spawn(move || run(task));
        let mut set = JoinSet::new();
        set.insert(handle);
        assert_eq!(set.join_next().unwrap().result.unwrap(), 1);
        worker.join().unwrap();
    });
}
