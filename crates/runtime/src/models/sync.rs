//! Models of `sync`: each wait succeeds, even if other waiters give up or are
//! dropped. A lock admits one owner at a time.
//!
//! The threads park with the real code. A wait with an expired deadline checks once, and may be
//! selected at that moment.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use loom::thread;
use thalweg_queue::explore::{large_model, model};

use crate::sync::{
    Barrier, ClosableWaitError, Condvar, Mutex, Notify, RwLock, Semaphore, WaitError, watch,
};

const NO_TIME: Duration = Duration::ZERO;

/// The value that a lock protects. loom detects two concurrent owners, and an owner that does not
/// see the effects of the previous one.
struct Guarded(UnsafeCell<u32>);

// SAFETY: the lock under test orders the accesses, which loom checks.
unsafe impl Send for Guarded {}
// SAFETY: as above.
unsafe impl Sync for Guarded {}

impl Guarded {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn add(&self) {
        // SAFETY: as above.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }

    fn get(&self) -> u32 {
        // SAFETY: as above.
        self.0.with(|value| unsafe { *value })
    }
}

/// Polls the future this many times with a waker that does nothing, yields after each poll, and
/// drops the future.
fn begin_and_drop(polls: u32, future: impl Future) {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..polls {
        if future.as_mut().poll(&mut context).is_ready() {
            return;
        }
        thread::yield_now();
    }
}

fn locked(times: [u32; 2]) -> (Arc<Mutex<Guarded>>, thread::JoinHandle<()>) {
    let mutex = Arc::new(Mutex::new(Guarded::new()));
    let other = thread::spawn({
        let mutex = mutex.clone();
        move || (0..times[0]).for_each(|_| mutex.lock().add())
    });
    (0..times[1]).for_each(|_| mutex.lock().add());
    (mutex, other)
}

#[test]
fn two_threads_lock_a_mutex() {
    model(|| {
        let (mutex, other) = locked([1, 1]);
        other.join().unwrap();
        assert_eq!(mutex.lock().get(), 2);
    });
}

/// So that a waiter is woken and finds the lock locked again.
#[test]
fn two_threads_lock_a_mutex_repeatedly() {
    model(|| {
        let (mutex, other) = locked([2, 3]);
        other.join().unwrap();
        assert_eq!(mutex.lock().get(), 5);
    });
}

#[test]
fn three_threads_lock_a_mutex() {
    large_model(|| {
        let mutex = Arc::new(Mutex::new(Guarded::new()));
        let guard = mutex.lock();
        let others = [1, 2].map(|times| {
            let mutex = mutex.clone();
            thread::spawn(move || (0..times).for_each(|_| mutex.lock().add()))
        });
        drop(guard);
        mutex.lock().add();
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(mutex.lock().get(), 4);
    });
}

#[test]
fn waiter_for_a_mutex_gives_up_while_another_waits() {
    large_model(|| {
        let mutex = Arc::new(Mutex::new(Guarded::new()));
        let guard = mutex.lock();
        let waits = thread::spawn({
            let mutex = mutex.clone();
            move || mutex.lock().add()
        });
        let gives_up = thread::spawn({
            let mutex = mutex.clone();
            move || match mutex.lock_timeout(NO_TIME) {
                Ok(guard) => guard.add(),
                Err(error) => assert_eq!(error, WaitError::TimedOut),
            }
        });
        drop(guard);
        waits.join().unwrap();
        gives_up.join().unwrap();
        assert!(!mutex.is_locked());
    });
}

/// The future is ahead of the waiter that must get the lock, or has been granted the lock.
#[test]
fn lock_future_is_dropped_during_an_unlock() {
    large_model(|| {
        let mutex = Arc::new(Mutex::new(Guarded::new()));
        let guard = mutex.lock();
        let drops = thread::spawn({
            let mutex = mutex.clone();
            move || begin_and_drop(1, mutex.lock_async())
        });
        let waits = thread::spawn({
            let mutex = mutex.clone();
            move || mutex.lock().add()
        });
        thread::yield_now();
        drop(guard);
        mutex.lock().add();
        drops.join().unwrap();
        waits.join().unwrap();
        assert!(!mutex.is_locked());
    });
}

/// The future was woken and found the lock locked again. It has been granted the lock, or not yet.
#[test]
fn overtaken_lock_future_is_dropped_during_an_unlock() {
    model(|| {
        let mutex = Arc::new(Mutex::new(Guarded::new()));
        let other = thread::spawn({
            let mutex = mutex.clone();
            move || {
                for _ in 0..3 {
                    let guard = mutex.lock();
                    thread::yield_now();
                    guard.add();
                }
            }
        });
        begin_and_drop(2, mutex.lock_async());
        mutex.lock().add();
        other.join().unwrap();
        assert_eq!(mutex.lock().get(), 4);
    });
}

#[test]
fn reader_and_writer_exclude_each_other() {
    model(|| {
        let lock = Arc::new(RwLock::new(Guarded::new()));
        let writer = thread::spawn({
            let lock = lock.clone();
            move || {
                lock.write().add();
                lock.write().add();
            }
        });
        let first = lock.read().get();
        assert!(first <= lock.read().get());
        writer.join().unwrap();
        assert_eq!(lock.read().get(), 2);
    });
}

/// A writer waits behind a reader, and a reader behind the writer. One reader is queued before the
/// writer, the other after it and sees what both have read.
#[test]
fn writer_waits_for_two_readers() {
    model(|| {
        let lock = Arc::new(RwLock::new(Guarded::new()));
        let readers = [(); 2].map(|()| {
            let lock = lock.clone();
            thread::spawn(move || lock.read().get())
        });
        lock.write().add();
        for reader in readers {
            assert!(reader.join().unwrap() <= 1);
        }
    });
}

#[test]
fn writer_that_gives_up_admits_the_readers_behind_it() {
    large_model(|| {
        let lock = Arc::new(RwLock::new(Guarded::new()));
        let reading = lock.read();
        let writer = thread::spawn({
            let lock = lock.clone();
            move || {
                if let Ok(guard) = lock.write_timeout(NO_TIME) {
                    guard.add();
                }
            }
        });
        let reader = thread::spawn({
            let lock = lock.clone();
            move || lock.read().get()
        });
        let before = reading.get();
        writer.join().unwrap();
        // While this guard still exists.
        assert_eq!(reader.join().unwrap(), before);
        drop(reading);
        lock.write().add();
    });
}

#[test]
fn waiters_get_different_numbers_of_permits() {
    large_model(|| {
        let semaphore = Arc::new(Semaphore::new(2));
        let (inside, guarded) = (Arc::new(AtomicUsize::new(0)), Arc::new(Guarded::new()));
        let others = [1, 2].map(|permits| {
            let (semaphore, inside) = (semaphore.clone(), inside.clone());
            let guarded = guarded.clone();
            thread::spawn(move || {
                let permit = semaphore.acquire_many(permits).unwrap();
                assert!(inside.fetch_add(permits, Relaxed) + permits <= 2);
                if permits == 2 {
                    guarded.add();
                }
                inside.fetch_sub(permits, Relaxed);
                drop(permit);
            })
        });
        let all = semaphore.acquire_many(2).unwrap();
        guarded.add();
        drop(all);
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(semaphore.available(), 2);
    });
}

/// The waiter that gives up was the only obstacle for the next one, or had been granted its
/// permits.
#[test]
fn waiter_for_many_permits_gives_up_before_a_waiter_for_one() {
    large_model(|| {
        let semaphore = Arc::new(Semaphore::new(0));
        let gives_up = thread::spawn({
            let semaphore = semaphore.clone();
            move || drop(semaphore.acquire_timeout(2, NO_TIME))
        });
        let drops = thread::spawn({
            let semaphore = semaphore.clone();
            move || begin_and_drop(1, semaphore.acquire_async(1))
        });
        thread::yield_now();
        semaphore.add_permits(1);
        drop(semaphore.acquire().unwrap());
        gives_up.join().unwrap();
        drops.join().unwrap();
        assert_eq!(semaphore.available(), 1);
    });
}

#[test]
fn semaphore_is_closed_during_a_wait_and_a_release() {
    large_model(|| {
        let semaphore = Arc::new(Semaphore::new(0));
        let waits = thread::spawn({
            let semaphore = semaphore.clone();
            move || match semaphore.acquire() {
                Ok(permit) => permit.forget(),
                Err(error) => assert_eq!(error, ClosableWaitError::Closed),
            }
        });
        let adds = thread::spawn({
            let semaphore = semaphore.clone();
            move || semaphore.add_permits(1)
        });
        semaphore.close();
        waits.join().unwrap();
        adds.join().unwrap();
        assert_eq!(semaphore.acquire().unwrap_err(), ClosableWaitError::Closed);
    });
}

#[test]
fn notification_is_not_lost_and_orders_memory() {
    model(|| {
        let shared = Arc::new((Notify::new(), Guarded::new()));
        let notifies = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.1.add();
                shared.0.notify_one();
            }
        });
        shared.0.wait();
        assert_eq!(shared.1.get(), 1);
        notifies.join().unwrap();
    });
}

/// There is one notification and one waiter that needs it. The waiters that give up had received
/// it, or not.
#[test]
fn notified_waiter_that_gives_up_passes_the_notification_on() {
    large_model(|| {
        let notify = Arc::new(Notify::new());
        let drops = thread::spawn({
            let notify = notify.clone();
            move || {
                let mut notified = pin!(notify.notified());
                let mut context = Context::from_waker(Waker::noop());
                let has_it = notified.as_mut().poll(&mut context).is_ready();
                thread::yield_now();
                has_it
            }
        });
        let notifies = thread::spawn({
            let notify = notify.clone();
            move || notify.notify_one()
        });
        if notify.wait_timeout(NO_TIME).is_ok() {
            notify.notify_one();
        }
        if drops.join().unwrap() {
            notify.notify_one();
        }
        notify.wait();
        notifies.join().unwrap();
    });
}

#[test]
fn notify_all_wakes_all_waiters() {
    model(|| {
        let shared = Arc::new((Notify::new(), AtomicBool::new(false)));
        let notifies = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.1.store(true, Relaxed);
                shared.0.notify_waiters();
            }
        });
        loop {
            let notified = shared.0.notified();
            if shared.1.load(Relaxed) {
                break;
            }
            notified.wait();
        }
        notifies.join().unwrap();
    });
}

#[test]
fn condvar_waiter_sees_the_change() {
    model(|| {
        let shared = Arc::new((Mutex::new(Guarded::new()), Condvar::new()));
        let changes = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.0.lock().add();
                shared.1.notify_one();
            }
        });
        let guard = shared
            .1
            .wait_while(shared.0.lock(), |value| value.get() == 0);
        assert_eq!(guard.get(), 1);
        drop(guard);
        changes.join().unwrap();
    });
}

/// There is one notification for two waiters. The one that gives up had received it, or not.
#[test]
fn condvar_waiter_that_gives_up_passes_the_notification_on() {
    large_model(|| {
        let shared = Arc::new((Mutex::new(Guarded::new()), Condvar::new()));
        let gives_up = thread::spawn({
            let shared = shared.clone();
            move || {
                let (guard, told) = shared.1.wait_timeout(shared.0.lock(), NO_TIME);
                drop(guard);
                // This waiter does not handle the change.
                if told.is_ok() {
                    shared.1.notify_one();
                }
            }
        });
        let changes = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.0.lock().add();
                shared.1.notify_one();
            }
        });
        drop(
            shared
                .1
                .wait_while(shared.0.lock(), |value| value.get() == 0),
        );
        gives_up.join().unwrap();
        changes.join().unwrap();
    });
}

#[test]
fn barrier_is_reusable_and_has_one_leader() {
    model(|| {
        let barrier = Arc::new(Barrier::new(2));
        let other = thread::spawn({
            let barrier = barrier.clone();
            move || [(); 2].map(|()| barrier.wait().is_leader())
        });
        let here = [(); 2].map(|()| barrier.wait().is_leader());
        let there = other.join().unwrap();
        assert!(here[0] != there[0] && here[1] != there[1]);
    });
}

#[test]
fn barrier_does_not_count_a_waiter_that_gives_up() {
    large_model(|| {
        let barrier = Arc::new(Barrier::new(2));
        let gives_up = thread::spawn({
            let barrier = barrier.clone();
            move || barrier.wait_timeout(NO_TIME).is_ok()
        });
        let meets = thread::spawn({
            let barrier = barrier.clone();
            move || barrier.wait_timeout(NO_TIME).is_ok()
        });
        let both = [gives_up, meets].map(|thread| thread.join().unwrap());
        // Both or neither.
        assert_eq!(both[0], both[1]);
        assert!(barrier.wait_timeout(NO_TIME).is_err());
    });
}

#[test]
fn watch_receiver_sees_a_newer_value() {
    model(|| {
        let (sender, mut receiver) = watch::channel(0);
        let sends = thread::spawn(move || {
            sender.send(1).unwrap();
            sender.send(2).unwrap();
        });
        assert_eq!(*receiver.wait_for(|value| *value == 2).unwrap(), 2);
        assert_eq!(receiver.changed(), Err(ClosableWaitError::Closed));
        sends.join().unwrap();
    });
}

#[test]
fn last_watch_receiver_is_dropped_while_the_sender_waits_for_it() {
    model(|| {
        let (sender, receiver) = watch::channel(());
        let goes = thread::spawn(move || drop(receiver));
        sender.closed();
        goes.join().unwrap();
    });
}
