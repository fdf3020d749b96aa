//! Synchronisation objects that actors, threads and tasks share.
#![cfg(not(loom))]

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use thalweg_runtime::sync::{
    Barrier, ClosableWaitError, Condvar, Mutex, MutexGuard, Notify, RwLock, RwLockWriteGuard,
    Semaphore, TryAcquireError, WaitError, watch,
};
use thalweg_runtime::{run, spawn};

use crate::kit::{NO_TIME, SHORT, let_others, runtime};

#[test]
fn an_actor_that_waits_leaves_its_worker_to_others() {
    let runtime = runtime(1);
    let mutex = Arc::new(Mutex::new(1));
    let held = mutex.lock();
    let waits = runtime.handle().spawn({
        let mutex = mutex.clone();
        move || *mutex.lock()
    });
    assert_eq!(runtime.handle().spawn(|| 2).join().unwrap(), 2);
    drop(held);
    assert_eq!(waits.join().unwrap(), 1);
}

#[test]
fn static_primitives_need_no_initialisation() {
    static SUM: Mutex<u32> = Mutex::new(0);
    static FEW: Semaphore = Semaphore::new(2);
    static LAST: RwLock<u32> = RwLock::new(0);
    static DONE: Notify = Notify::new();
    static CHANGED: Condvar = Condvar::new();
    static MET: Barrier = Barrier::new(1);
    *SUM.lock() += 1;
    *LAST.write() += *SUM.lock();
    DONE.notify_one();
    DONE.wait();
    CHANGED.notify_all();
    assert!(MET.wait().is_leader());
    assert_eq!((*LAST.read(), FEW.available()), (1, 2));
}

#[test]
#[cfg(target_pointer_width = "64")]
fn each_primitive_has_its_documented_size() {
    let sizes = [
        size_of::<Mutex<()>>(),
        size_of::<RwLock<()>>(),
        size_of::<Semaphore>(),
        size_of::<Notify>(),
        size_of::<Condvar>(),
    ];
    assert_eq!((sizes, size_of::<Barrier>()), ([32; 5], 40));
}

/// The holder unlocks and locks again before the woken waiter runs. This succeeds only once.
#[test]
fn mutex_lets_a_running_actor_overtake_a_waiter_only_once() {
    let order = run(|| {
        let mutex = Arc::new(Mutex::new(Vec::new()));
        let mut held = mutex.lock();
        let waits = ["first", "second"].map(|name| {
            let mutex = mutex.clone();
            let waits = spawn(move || mutex.lock().push(name));
            let_others();
            waits
        });
        for _ in 0..3 {
            held.push("holds");
            drop(held);
            held = mutex.lock();
            let_others();
        }
        drop(held);
        waits.into_iter().for_each(|waits| waits.join().unwrap());
        std::mem::take(&mut *mutex.lock())
    });
    assert_eq!(order, ["holds", "holds", "first", "second", "holds"]);
}

#[test]
fn semaphore_grants_permits_in_call_order() {
    let order = run(|| {
        let shared = Arc::new((Semaphore::new(2), Mutex::new(Vec::new())));
        let held = shared.0.acquire_many(2).unwrap();
        let actors: Vec<_> = [1, 2, 1, 1]
            .into_iter()
            .enumerate()
            .map(|(nth, permits)| {
                let shared = shared.clone();
                let actor = spawn(move || {
                    let _permits = shared.0.acquire_many(permits).unwrap();
                    shared.1.lock().push(nth);
                    let_others();
                });
                let_others();
                actor
            })
            .collect();
        // There is a permit for the first waiter, which wants one, but not for later callers: the
        // waiters come first.
        drop(held);
        assert_eq!(
            shared.0.try_acquire().unwrap_err(),
            TryAcquireError::NoPermits
        );
        actors.into_iter().for_each(|actor| actor.join().unwrap());
        assert_eq!(shared.0.available(), 2);
        std::mem::take(&mut *shared.1.lock())
    });
    assert_eq!(order, [0, 1, 2, 3]);
}

#[test]
fn later_readers_wait_behind_a_writer_and_then_read_together() {
    run(|| {
        let lock = Arc::new(RwLock::new(0));
        let reading = lock.read();
        let writer = spawn({
            let lock = lock.clone();
            move || *lock.write() = 1
        });
        let_others();
        assert!(lock.try_read().is_none());
        let barrier = Arc::new(Barrier::new(2));
        let readers = [(); 2].map(|()| {
            let (lock, barrier) = (lock.clone(), barrier.clone());
            spawn(move || {
                let value = lock.read();
                barrier.wait();
                *value
            })
        });
        let_others();
        assert_eq!(*reading, 0);
        drop(reading);
        writer.join().unwrap();
        assert_eq!(readers.map(|reader| reader.join().unwrap()), [1, 1]);
        let downgraded = RwLockWriteGuard::downgrade(lock.write());
        assert_eq!(*downgraded + *lock.read(), 2);
        assert!(lock.try_write().is_none());
        drop(downgraded);
        assert!(lock.try_write().is_some());
    });
}

#[test]
fn each_wait_ends_at_its_deadline_and_leaves_nothing() {
    fn all() {
        let before = Instant::now();
        let mutex = Mutex::new(());
        let held = mutex.lock();
        assert_eq!(mutex.lock_timeout(SHORT).unwrap_err(), WaitError::TimedOut);
        assert!(before.elapsed() >= SHORT);
        let soon = Instant::now() + SHORT;
        assert_eq!(mutex.lock_deadline(soon).unwrap_err(), WaitError::TimedOut);
        assert!(Instant::now() >= soon);
        drop(held);
        assert!(mutex.lock_timeout(NO_TIME).is_ok());

        let lock = RwLock::new(());
        let reading = lock.read();
        assert_eq!(lock.write_timeout(SHORT).unwrap_err(), WaitError::TimedOut);
        drop(lock.read_timeout(NO_TIME).unwrap());
        drop(reading);
        let writing = lock.write_timeout(NO_TIME).unwrap();
        assert!(lock.read_deadline(Instant::now()).is_err());
        drop(writing);

        let semaphore = Semaphore::new(1);
        let late = semaphore.acquire_timeout(2, SHORT);
        assert_eq!(late.unwrap_err(), ClosableWaitError::TimedOut);
        assert!(semaphore.try_acquire().is_ok());

        let notify = Notify::new();
        assert_eq!(notify.wait_timeout(SHORT), Err(WaitError::TimedOut));
        notify.notify_one();
        assert_eq!(notify.wait_timeout(NO_TIME), Ok(()));
        assert_eq!(notify.wait_timeout(NO_TIME), Err(WaitError::TimedOut));

        let barrier = Barrier::new(2);
        assert_eq!(barrier.wait_timeout(SHORT), Err(WaitError::TimedOut));
        assert_eq!(barrier.wait_timeout(NO_TIME), Err(WaitError::TimedOut));

        let changed = Condvar::new();
        let (guard, ended) = changed.wait_timeout(mutex.lock(), SHORT);
        assert_eq!(ended, Err(WaitError::TimedOut));
        let (guard, ended) = changed.wait_while_timeout(guard, SHORT, |()| true);
        assert_eq!(ended, Err(WaitError::TimedOut));
        drop(guard);
        assert!(!mutex.is_locked());

        let (sender, mut receiver) = watch::channel(1);
        assert_eq!(
            receiver.changed_timeout(SHORT),
            Err(ClosableWaitError::TimedOut)
        );
        let never = receiver.wait_for_timeout(SHORT, |value| *value == 2);
        assert_eq!(never.map(|value| *value), Err(ClosableWaitError::TimedOut));
        sender.send(2).unwrap();
        assert_eq!(receiver.changed_deadline(Instant::now()), Ok(()));
    }
    run(all);
    all();
}

#[test]
#[should_panic(expected = "MAX_PERMITS")]
fn permits_beyond_the_counters_range_are_refused() {
    let semaphore = Semaphore::new(Semaphore::MAX_PERMITS - 1);
    semaphore.add_permits(1);
    assert_eq!(semaphore.available(), Semaphore::MAX_PERMITS);
    semaphore.add_permits(1);
}

#[test]
fn refused_release_changes_nothing_even_with_a_waiter() {
    let semaphore = Semaphore::new(1);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| semaphore.acquire_many(Semaphore::MAX_PERMITS).map(drop));
        while semaphore.try_acquire().is_ok() {
            std::thread::yield_now();
        }
        let too_many = || semaphore.add_permits(Semaphore::MAX_PERMITS);
        assert!(catch_unwind(AssertUnwindSafe(too_many)).is_err());
        semaphore.add_permits(Semaphore::MAX_PERMITS - 1);
        assert_eq!(waits.join().unwrap(), Ok(()));
    });
    assert_eq!(semaphore.available(), Semaphore::MAX_PERMITS);
}

#[test]
fn forgotten_permits_are_gone_and_a_closed_semaphore_returns_closed() {
    let semaphore = Arc::new(Semaphore::new(3));
    assert_eq!(semaphore.forget_permits(1), 1);
    let owned = semaphore.try_acquire().unwrap().into_owned(&semaphore);
    assert_eq!(semaphore.forget_permits(5), 1);
    semaphore.close();
    assert!(semaphore.is_closed());
    drop(owned);
    assert_eq!(semaphore.available(), 1);
    assert_eq!(
        semaphore.try_acquire().unwrap_err(),
        TryAcquireError::Closed
    );
    assert_eq!(semaphore.acquire().unwrap_err(), ClosableWaitError::Closed);
}

#[test]
#[should_panic(expected = "another mutex's")]
fn a_guard_stays_with_its_own_mutex() {
    let (one, other) = (Mutex::new(()), Arc::new(Mutex::new(())));
    drop(MutexGuard::into_owned(one.lock(), &other));
}

#[test]
fn notification_wakes_the_oldest_waiter_or_is_stored() {
    run(|| {
        let notify = Arc::new(Notify::new());
        let order = Arc::new(Mutex::new(Vec::new()));
        let actors: Vec<_> = (0..4)
            .map(|nth| {
                let (notify, order) = (notify.clone(), order.clone());
                let actor = spawn(move || {
                    notify.wait();
                    order.lock().push(nth);
                });
                let_others();
                actor
            })
            .collect();
        notify.notify_one();
        let_others();
        assert_eq!(*order.lock(), [0]);
        notify.notify_one();
        notify.notify_one();
        let_others();
        assert_eq!(order.lock().len(), 3);
        notify.notify_waiters();
        actors.into_iter().for_each(|actor| actor.join().unwrap());
        // `notify_waiters` leaves no permit, and two calls of `notify_one` leave one.
        assert!(notify.wait_timeout(NO_TIME).is_err());
        notify.notify_one();
        notify.notify_one();
        notify.wait();
        assert!(notify.wait_timeout(NO_TIME).is_err());
    });
}

#[test]
fn condvar_wakes_the_oldest_waiter_or_all() {
    run(|| {
        let shared = Arc::new((Mutex::new(0), Condvar::new(), AtomicUsize::new(0)));
        let actors: Vec<_> = (0..3)
            .map(|_| {
                let shared = shared.clone();
                let actor = spawn(move || {
                    drop(shared.1.wait(shared.0.lock()));
                    shared.2.fetch_add(1, Ordering::Relaxed);
                });
                let_others();
                actor
            })
            .collect();
        shared.1.notify_one();
        let_others();
        assert_eq!(shared.2.load(Ordering::Relaxed), 1);
        shared.1.notify_all();
        actors.into_iter().for_each(|actor| actor.join().unwrap());
        // A notification without a waiter is lost.
        shared.1.notify_one();
        assert!(shared.1.wait_timeout(shared.0.lock(), NO_TIME).1.is_err());
    });
}

#[test]
fn watch_returns_the_newest_value_and_then_closed() {
    run(|| {
        let (sender, mut receiver) = watch::channel(0);
        assert_eq!(receiver.has_changed(), Ok(false));
        sender.send(1).unwrap();
        sender.send(2).unwrap();
        assert_eq!(receiver.has_changed(), Ok(true));
        assert!(receiver.borrow().has_changed());
        assert_eq!(*receiver.borrow_and_update(), 2);
        assert!(!receiver.borrow().has_changed());
        assert!(!sender.send_if_modified(|_| false));
        assert_eq!(receiver.has_changed(), Ok(false));
        let mut late = sender.subscribe();
        assert_eq!(late.has_changed(), Ok(false));
        let both = sender.clone();
        drop(sender);
        assert_eq!(both.send_replace(3), 2);
        drop(both);
        // An unseen value is returned before the closed error.
        assert_eq!(late.changed(), Ok(()));
        assert_eq!(*late.borrow(), 3);
        assert_eq!(late.changed(), Err(ClosableWaitError::Closed));
        assert_eq!(*receiver.wait_for(|value| *value == 3).unwrap(), 3);
    });
    let (sender, receiver) = watch::channel(0);
    drop(receiver);
    sender.send(1).unwrap_err();
    sender.closed();
    assert_eq!(*sender.subscribe().borrow(), 0);
}

#[test]
fn wait_for_the_last_receiver_to_drop_returns() {
    runtime(1)
        .handle()
        .spawn(|| {
            let (sender, receiver) = watch::channel(0);
            let other = receiver.clone();
            let waits = spawn(move || sender.closed());
            let_others();
            drop(other);
            let_others();
            assert!(!waits.is_finished());
            drop(receiver);
            waits.join().unwrap();
        })
        .join()
        .unwrap();
}

#[test]
fn panicking_modification_notifies_nobody_and_unlocks() {
    let (sender, receiver) = watch::channel(0);
    let panics = || sender.send_modify(|_| panic!("half done"));
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert_eq!(receiver.has_changed(), Ok(false));
    sender.send(1).unwrap();
    assert_eq!(*receiver.borrow(), 1);
}

#[test]
fn a_predicate_that_panics_unlocks() {
    let (mutex, changed) = (Mutex::new(0), Condvar::new());
    let panics = || drop(changed.wait_while(mutex.lock(), |_| panic!("cannot say")));
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert!(!mutex.is_locked());
}

#[test]
fn dropped_wait_of_a_task_passes_its_grant_on() {
    let tasks = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    tasks.block_on(async {
        let (mutex, semaphore) = (Arc::new(Mutex::new(0)), Arc::new(Semaphore::new(1)));
        let held = MutexGuard::into_owned(mutex.lock_async().await, &mutex);
        let permit = semaphore.acquire_async(1).await.unwrap();
        // Each wait joins the wait list and times out.
        let late = tokio::time::timeout(SHORT, mutex.lock_async()).await;
        assert!(late.is_err());
        let late = tokio::time::timeout(SHORT, semaphore.acquire_async(1)).await;
        assert!(late.is_err());
        let others: Vec<_> = (0..10)
            .map(|_| {
                let (mutex, semaphore) = (mutex.clone(), semaphore.clone());
                tokio::spawn(async move {
                    let permit = semaphore.acquire_async(1).await.unwrap();
                    let mut value = mutex.lock_async().await;
                    tokio::task::yield_now().await;
                    *value += 1;
                    drop(permit);
                })
            })
            .collect();
        drop((held, permit));
        for other in others {
            other.await.unwrap();
        }
        assert_eq!((*mutex.lock_async().await, semaphore.available()), (10, 1));
    });
}

#[test]
fn change_by_an_actor_wakes_a_task() {
    let (sender, mut receiver) = watch::channel(0);
    let (notify, barrier) = (Arc::new(Notify::new()), Arc::new(Barrier::new(2)));
    let runtime = runtime(1);
    let actor = runtime.handle().spawn({
        let (notify, barrier) = (notify.clone(), barrier.clone());
        move || {
            notify.wait();
            sender.send(1).unwrap();
            barrier.wait();
            sender.closed();
        }
    });
    let tasks = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    tasks.block_on(async {
        notify.notify_one();
        receiver.changed_async().await.unwrap();
        assert_eq!(*receiver.borrow(), 1);
        barrier.wait_async().await;
        drop(receiver);
    });
    actor.join().unwrap();
}

/// A task may pass a different waker at each poll: the last one is woken.
#[test]
fn future_polled_with_two_wakers_wakes_the_last_one() {
    struct Flag(AtomicBool);
    impl std::task::Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let flags = [(); 2].map(|()| Arc::new(Flag(AtomicBool::new(false))));
    let notify = Notify::new();
    let mut notified = std::pin::pin!(notify.notified());
    for flag in [&flags[0], &flags[1], &flags[1]] {
        let waker = flag.clone().into();
        let mut context = std::task::Context::from_waker(&waker);
        assert!(notified.as_mut().poll(&mut context).is_pending());
    }
    notify.notify_one();
    let woken = flags.map(|flag| flag.0.load(Ordering::Relaxed));
    assert_eq!(woken, [false, true]);
}
