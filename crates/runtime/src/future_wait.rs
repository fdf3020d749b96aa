//! A wait for a future: its waker, and the time at which the wait polls again without being woken.
//!
//! 1. A `WaitWaker` has a flag of its own. A wake-up that arrives while the future is polled is
//!    therefore counted, even if the poll itself waited for something and consumed the actor's
//!    wake-up. No other wake-up causes a poll.
//! 2. A `WaitWaker` contains a [`wait::waker`]. Any thread may use that at any time; after the
//!    actor's end it does nothing.
//! 3. A future that [sleeps](crate::sleep_async) registers an alarm with the `WaitWaker` that polls
//!    it, and removes the alarm when it is dropped. The waiting actor or thread parks until the
//!    earliest alarm, so a sleep needs no timer other than that of the wait around it. An alarm
//!    whose time has come is a wake-up and is removed.
//! 4. A `WaitWaker` that has no other owner when its wait is over is cached for the thread's next
//!    wait, which then allocates nothing.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex};
use std::task::{RawWaker, RawWakerVTable, Waker};

use thalweg_queue::clock;
use thalweg_queue::no_preempt::lock;

use crate::shim::{AtomicBool, AtomicU64, Ordering};
use crate::wait;
use crate::wake_reason::WakeReason;

const NEVER: u64 = u64::MAX;

pub(crate) struct WaitWaker {
    woken: AtomicBool,
    waiter: Waker,
    /// The earliest time in `alarms`, or [`NEVER`]. Written under the lock of `alarms`.
    earliest: AtomicU64,
    alarms: Mutex<Alarms>,
}

#[derive(Default)]
struct Alarms {
    /// The time, and a number that distinguishes alarms at the same time.
    set: BTreeSet<(u64, u64)>,
    number: u64,
}

impl Alarms {
    fn earliest(&self) -> u64 {
        self.set.first().map_or(NEVER, |(at, _)| *at)
    }
}

thread_local! {
    /// Rule 4.
    static CACHED: Cell<Option<Arc<WaitWaker>>> = const { Cell::new(None) };
}

/// A wait that is in progress.
pub(crate) struct FutureWait(Arc<WaitWaker>);

impl FutureWait {
    pub(crate) fn begin() -> Self {
        let waiter = wait::waker();
        let cached = CACHED.try_with(Cell::take).ok().flatten();
        if let Some(mut cached) = cached
            && let Some(waker) = Arc::get_mut(&mut cached)
        {
            waker.waiter = waiter;
            return Self(cached);
        }
        Self(Arc::new(WaitWaker {
            woken: AtomicBool::new(false),
            waiter,
            earliest: AtomicU64::new(NEVER),
            alarms: Mutex::default(),
        }))
    }

    pub(crate) fn waker(&self) -> Waker {
        waker_of(Arc::clone(&self.0))
    }

    /// Waits until the future must be polled again. Returns `false` if the deadline passed or the
    /// caller cannot wait.
    pub(crate) fn wait(&self, deadline: Option<u64>) -> bool {
        let waker = &*self.0;
        if waker.take_woken() {
            if wait::is_stopping() || deadline.is_some_and(|at| at <= clock::now()) {
                return false;
            }
            wait::yield_now();
            return true;
        }
        if deadline.is_some() {
            wait::begin_fallible_wait();
        }
        let deadline = deadline.unwrap_or(NEVER);
        loop {
            let until = deadline.min(waker.earliest.load(Ordering::Acquire));
            match wait::park(Some(until)) {
                WakeReason::TimedOut if waker.take_due_alarms() => return true,
                // The alarm was cancelled meanwhile.
                WakeReason::TimedOut if until < deadline => {}
                // Checks once more whether it was woken meanwhile.
                WakeReason::TimedOut | WakeReason::Stopping => return waker.take_woken(),
                WakeReason::Woken | WakeReason::Interrupted if waker.take_woken() => return true,
                WakeReason::Woken | WakeReason::Interrupted => {}
            }
        }
    }
}

impl Drop for FutureWait {
    fn drop(&mut self) {
        // loom creates its atomics anew for each run.
        if cfg!(loom) {
            return;
        }
        if let Some(waker) = Arc::get_mut(&mut self.0) {
            waker.waiter = Waker::noop().clone();
            waker.woken = AtomicBool::new(false);
            let cached = Arc::clone(&self.0);
            // A thread whose thread-locals are destroyed caches nothing.
            let before = CACHED.try_with(|place| place.replace(Some(cached)));
            drop(before);
        }
    }
}

impl WaitWaker {
    /// Returns the `WaitWaker` behind a waker, if there is one.
    pub(crate) fn of(waker: &Waker) -> Option<Arc<Self>> {
        if !std::ptr::eq(waker.vtable(), &raw const WAKER) {
            return None;
        }
        let raw = waker.data().cast::<Self>();
        // SAFETY: the vtable shows that the waker came from `waker_of`, so it owns a reference to a
        // `WaitWaker`. This adds another one.
        Some(unsafe {
            Arc::increment_strong_count(raw);
            Arc::from_raw(raw)
        })
    }

    pub(crate) fn is_of(&self, waker: &Waker) -> bool {
        std::ptr::eq(waker.vtable(), &raw const WAKER)
            && std::ptr::eq(waker.data().cast::<Self>(), self)
    }

    fn take_woken(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }

    fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.waiter.wake_by_ref();
        }
    }

    /// Rule 3: registers an alarm at `at`. Returns the key that cancels it.
    pub(crate) fn set_alarm(&self, at: u64) -> (u64, u64) {
        let alarm = {
            let mut alarms = lock(&self.alarms);
            alarms.number += 1;
            let alarm = (at, alarms.number);
            alarms.set.insert(alarm);
            self.earliest.store(alarms.earliest(), Ordering::Release);
            alarm
        };
        // The waiting actor or thread sets its alarm while it polls and reads it afterwards. If
        // another thread sets it, the waiter may be parked already.
        if !self.waiter.will_wake(&wait::waker()) {
            self.wake();
        }
        alarm
    }

    pub(crate) fn unset_alarm(&self, alarm: (u64, u64)) {
        let mut alarms = lock(&self.alarms);
        alarms.set.remove(&alarm);
        self.earliest.store(alarms.earliest(), Ordering::Release);
    }

    /// Removes the alarms whose time has come. Returns whether there were any.
    fn take_due_alarms(&self) -> bool {
        let now = clock::now();
        if self.earliest.load(Ordering::Acquire) > now {
            return false;
        }
        let mut alarms = lock(&self.alarms);
        let mut has_come = false;
        while alarms.earliest() <= now {
            has_come = alarms.set.pop_first().is_some();
        }
        self.earliest.store(alarms.earliest(), Ordering::Release);
        has_come
    }
}

fn waker_of(waker: Arc<WaitWaker>) -> Waker {
    let raw = RawWaker::new(Arc::into_raw(waker).cast(), &WAKER);
    // SAFETY: the vtable below satisfies the contract of `RawWaker`; the waker owns the reference.
    unsafe { Waker::from_raw(raw) }
}

static WAKER: RawWakerVTable = RawWakerVTable::new(
    |raw| RawWaker::new(Arc::into_raw(Arc::clone(&borrow(raw))).cast(), &WAKER),
    |raw| ManuallyDrop::into_inner(borrow(raw)).wake(),
    |raw| borrow(raw).wake(),
    |raw| drop(ManuallyDrop::into_inner(borrow(raw))),
);

/// Borrows the waker's own reference.
fn borrow(raw: *const ()) -> ManuallyDrop<Arc<WaitWaker>> {
    // SAFETY: the waker came from `waker_of` and owns a reference.
    ManuallyDrop::new(unsafe { Arc::from_raw(raw.cast()) })
}
