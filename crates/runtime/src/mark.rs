//! The waker of one wait for a future, and when the wait is to look again by itself.
//!
//! 1. A mark has a flag of its own. So a wake-up that comes while the future is polled counts, also where the poll itself waited for
//!    something and took the actor's wake-up for that; and the future is polled again for no other wake-up.
//! 2. It holds [`wait::waker`], which may be used by any thread and at any time: after the actor's end it does nothing.
//! 3. A future that [sleeps](crate::sleep_async) leaves an alarm with the mark that it is polled with, and takes it back when it goes. Who waits
//!    parks until the earliest of them, so a sleep needs no timer but that of the wait around it. An alarm that has come is a wake-up, and is
//!    taken off.
//! 4. A mark that nobody else has any more when its wait is over is kept for the thread's next one: then a wait allocates nothing.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex};
use std::task::{RawWaker, RawWakerVTable, Waker};

use thalweg_queue::clock;
use thalweg_queue::quiet::lock;

use crate::shim::{AtomicBool, AtomicU64, Ordering};
use crate::wait::{self, WakeReason};

const NEVER: u64 = u64::MAX;

pub(crate) struct Mark {
    woken: AtomicBool,
    waiter: Waker,
    /// That of `alarms`, or [`NEVER`]. Written under their lock.
    earliest: AtomicU64,
    alarms: Mutex<Alarms>,
}

#[derive(Default)]
struct Alarms {
    /// When, and a number, as two may be at one time.
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
    static KEPT: Cell<Option<Arc<Mark>>> = const { Cell::new(None) };
}

/// The mark of a wait that is under way.
pub(crate) struct Waiting(Arc<Mark>);

impl Waiting {
    pub(crate) fn begin() -> Self {
        let waiter = wait::waker();
        let kept = KEPT.try_with(Cell::take).ok().flatten();
        if let Some(mut kept) = kept
            && let Some(mark) = Arc::get_mut(&mut kept)
        {
            mark.waiter = waiter;
            return Self(kept);
        }
        Self(Arc::new(Mark {
            woken: AtomicBool::new(false),
            waiter,
            earliest: AtomicU64::new(NEVER),
            alarms: Mutex::default(),
        }))
    }

    pub(crate) fn waker(&self) -> Waker {
        waker_of(Arc::clone(&self.0))
    }

    /// Waits until the future is to be polled again. `false`: the deadline passed, or the caller cannot wait.
    pub(crate) fn wait(&self, deadline: Option<u64>) -> bool {
        let mark = &*self.0;
        if mark.take() {
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
            let until = deadline.min(mark.earliest.load(Ordering::Acquire));
            match wait::park(Some(until)) {
                WakeReason::TimedOut if mark.ring() => return true,
                // The alarm was taken back meanwhile.
                WakeReason::TimedOut if until < deadline => {}
                // One more look, if it was woken meanwhile.
                WakeReason::TimedOut | WakeReason::Stopping => return mark.take(),
                WakeReason::Woken | WakeReason::Interrupted if mark.take() => return true,
                WakeReason::Woken | WakeReason::Interrupted => {}
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // loom's atomics are made anew for each run.
        if cfg!(loom) {
            return;
        }
        if let Some(mark) = Arc::get_mut(&mut self.0) {
            mark.waiter = Waker::noop().clone();
            mark.woken = AtomicBool::new(false);
            let kept = Arc::clone(&self.0);
            // A thread whose thread-locals are gone keeps none.
            let before = KEPT.try_with(|place| place.replace(Some(kept)));
            drop(before);
        }
    }
}

impl Mark {
    /// Whose waker it is, if it is a mark's.
    pub(crate) fn of(waker: &Waker) -> Option<Arc<Self>> {
        if !std::ptr::eq(waker.vtable(), &raw const WAKER) {
            return None;
        }
        let raw = waker.data().cast::<Self>();
        // SAFETY: by its table the waker is one of ours, so it holds a reference to a mark; here is one more.
        Some(unsafe {
            Arc::increment_strong_count(raw);
            Arc::from_raw(raw)
        })
    }

    pub(crate) fn is_of(&self, waker: &Waker) -> bool {
        std::ptr::eq(waker.vtable(), &raw const WAKER)
            && std::ptr::eq(waker.data().cast::<Self>(), self)
    }

    fn take(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }

    fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.waiter.wake_by_ref();
        }
    }

    /// Rule 3: `at` comes. What takes it back.
    pub(crate) fn set_alarm(&self, at: u64) -> (u64, u64) {
        let alarm = {
            let mut alarms = lock(&self.alarms);
            alarms.number += 1;
            let alarm = (at, alarms.number);
            alarms.set.insert(alarm);
            self.earliest.store(alarms.earliest(), Ordering::Release);
            alarm
        };
        // Who waits sets it while it polls, and looks at it next. Anybody else finds it parked, perhaps.
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

    /// Takes off those that have come. Whether there was one.
    fn ring(&self) -> bool {
        let now = clock::now();
        if self.earliest.load(Ordering::Acquire) > now {
            return false;
        }
        let mut alarms = lock(&self.alarms);
        let mut rang = false;
        while alarms.earliest() <= now {
            rang = alarms.set.pop_first().is_some();
        }
        self.earliest.store(alarms.earliest(), Ordering::Release);
        rang
    }
}

fn waker_of(mark: Arc<Mark>) -> Waker {
    let raw = RawWaker::new(Arc::into_raw(mark).cast(), &WAKER);
    // SAFETY: the table below keeps what `RawWaker` asks for; the reference is the waker's.
    unsafe { Waker::from_raw(raw) }
}

static WAKER: RawWakerVTable = RawWakerVTable::new(
    |raw| RawWaker::new(Arc::into_raw(Arc::clone(&borrow(raw))).cast(), &WAKER),
    |raw| ManuallyDrop::into_inner(borrow(raw)).wake(),
    |raw| borrow(raw).wake(),
    |raw| drop(ManuallyDrop::into_inner(borrow(raw))),
);

/// The waker's own reference.
fn borrow(raw: *const ()) -> ManuallyDrop<Arc<Mark>> {
    // SAFETY: the waker was made of a mark, and holds a reference.
    ManuallyDrop::new(unsafe { Arc::from_raw(raw.cast()) })
}
