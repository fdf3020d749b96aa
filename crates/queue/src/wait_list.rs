//! The waiters of one side of a channel, and how the other side wakes them. It extends the protocol
//! of [`atomic_waker`](crate::atomic_waker) to any number of waiters, with barriers that cost a
//! busy channel nothing.
//!
//! One word tells a publisher everything that it must know: how many waiters are armed, whether the
//! channel is closed, and which barrier applies.
//!
//! 1. A publisher makes its data visible (Release), then **loads the word**. If it is zero, nobody
//!    waits, and waiters use the heavy barrier: there is nothing to do. This is the whole fast
//!    path.
//! 2. If the word has anything but CLOSED, the publisher executes a full fence and loads the word
//!    again.
//! 3. If a waiter is armed, the publisher removes the first one from the list and wakes it. A waker
//!    is taken once, so one published value wakes one waiter.
//! 4. A waiter arms: under the lock of the list, it adds its waker to the list and one to the word.
//!    Then it executes a barrier, **checks again** for everything that it waits for, and only then
//!    sleeps. The barrier is a full fence if the word had FENCED before the addition, otherwise the
//!    heavy barrier.
//! 5. A waiter that arms may set FENCED; it then executes the heavy barrier while it still holds
//!    the lock. A waiter or a publisher may clear FENCED. Because count and mode are one word, a
//!    thread that sees FENCED cleared also sees every waiter that armed with a fence before.
//! 6. A waiter that was removed from the list, but leaves without taking the value, wakes the next
//!    waiter.
//! 7. At most one woken thread is pending. From its wake-up until it runs again, WAKING is set, and
//!    publishers wake nobody else. The thread clears WAKING before it checks again, with a full
//!    fence between the two, because publishers also have a fence between publishing and reading
//!    WAKING. If it gets its value and sees more, it wakes the next waiters. If other waiters are
//!    behind it, or after [`SLOW_WAKEUP_PUBLISHES`], SKIP_FENCE is set too: publishers then execute
//!    no fence, and the thread executes the heavy barrier. Tasks do not set WAKING, because it is
//!    unknown when they are polled. A woken task that sees more than it took also wakes the next
//!    waiters: the wake-up may have been for a value that it did not take.
//! 8. If a woken thread has not run for [`SLOW_WAKEUP_NS`], all processors are busy, perhaps with
//!    waiters that spin for the value that it was woken for. Waiters therefore park without
//!    spinning.
//! 9. Tasks that wake each other on one thread need no fence, because the thread sees its own
//!    stores. `home` is that thread. A publisher on it skips the fence of rule 2, and has nothing
//!    to do if no waiter is armed. A waiter that arms on another thread resets `home` and executes
//!    the heavy barrier.
//!
//! Why rule 5 is sound: a publisher that loaded the word before FENCED was set had published before
//! that load, and the heavy barrier makes its data visible to the waiter that checks again. A
//! publisher that loads the word later uses fences. Rule 9 is sound for the same reason. `home` is
//! set only while no thread sleeps or has a pending wake-up, so rule 7 does not apply there.
//!
//! FENCED is for waiters that sleep often: a fence for each of up to 512 messages costs less than
//! one heavy barrier. A waiter that sleeps again after fewer messages sets it. A waiter that sleeps
//! after more messages clears it, and so does a publisher on another thread than `home` that found
//! no waiter armed that many times in a row.

use std::collections::VecDeque;
use std::task::Waker;

use crate::barrier;
use crate::clock;
use crate::sync::{AtomicU32, AtomicUsize, Mutex, Ordering, StdAtomicU64, lock};
use crate::this_thread::this_thread;

const CLOSED: usize = 1;
const FENCED: usize = 2;
const WAKING: usize = 4;
const SKIP_FENCE: usize = 8;
const ARMED: usize = 16;

/// From this many messages between two sleeps on, the heavy barrier is cheaper.
const BUSY: usize = if cfg!(loom) { 2 } else { 512 };

/// From this many messages during a wake-up on, the woken thread executes the heavy barrier.
const SLOW_WAKEUP_PUBLISHES: u32 = if cfg!(loom) { 1 } else { 128 };

/// Five times the cost of a wake-up, so that an occasional mistake costs little.
const SLOW_WAKEUP_NS: u64 = 250_000;

/// Initially, this many consecutive armings on one thread make it the home thread.
const HOME_THRESHOLD: u16 = if cfg!(loom) { 1 } else { 16 };
/// The threshold doubles each time that the home is reset, up to this value.
const MAX_HOME_THRESHOLD: u16 = 1 << 15;

/// Identifies one arming until it is woken or disarmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// The kind of a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaiterKind {
    /// A thread. It checks again as soon as it runs, and wakes others for values that it does not
    /// take.
    Thread,
    /// A task, a select, or a thread that is woken together with all others. It may do other work
    /// first.
    Task,
    /// The file descriptor of an event loop. It is notified, but does not consume the wake-up of
    /// the waiters behind it, because one of them may be its owner.
    Watcher,
}

#[derive(Debug)]
struct Waiter {
    ticket: Ticket,
    kind: WaiterKind,
    waker: Waker,
}

#[derive(Debug)]
struct Inner {
    waiters: VecDeque<Waiter>,
    /// How many of the waiters are not tasks.
    non_tasks: u32,
    next_ticket: u64,
    /// How many values had passed through the channel at the last arming.
    transferred: u64,
    /// The thread of the last armings, their number, and the number that is required (rule 9).
    thread: usize,
    consecutive_arms: u16,
    home_threshold: u16,
}

/// Every channel has two of these, each alone on its cache lines.
#[cfg(all(target_pointer_width = "64", not(loom)))]
const _: () = assert!(size_of::<crate::CachePadded<WaitList>>() == 128);

/// The order of the fields is fixed so that `word` is not the first one. If it is, the compiler
/// computes its address before it loads it: one more instruction for each signal of `mpmc`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct WaitList {
    /// Publishes that found FENCED but no waiter, or a woken thread on its way, since a waiter last
    /// armed. Two concurrent ones may count as one. Without the heavy barrier, only a waiter that arms
    /// resets it, so it may wrap.
    idle_publishes: AtomicU32,
    /// All tickets below this one (modulo 2^32) were taken out of the list. Written under its lock.
    /// It lags behind if waiters disarm.
    taken: AtomicU32,
    word: AtomicUsize,
    /// Rule 8: when a thread was last woken.
    woken_at: StdAtomicU64,
    /// Rule 9: a thread, or 0. Written under the lock of the list.
    home: AtomicUsize,
    wakes: StdAtomicU64,
    parks: StdAtomicU64,
    parked_ns: StdAtomicU64,
    list: Mutex<Inner>,
}

/// The parking statistics of one side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParkStats {
    pub(crate) wakes: u64,
    pub(crate) parks: u64,
    pub(crate) parked_ns: u64,
}

impl WaitList {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicUsize::new(if barrier::is_asymmetric() { 0 } else { FENCED }),
            idle_publishes: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            woken_at: StdAtomicU64::new(0),
            home: AtomicUsize::new(0),
            wakes: StdAtomicU64::new(0),
            parks: StdAtomicU64::new(0),
            parked_ns: StdAtomicU64::new(0),
            list: Mutex::new(Inner {
                waiters: VecDeque::new(),
                non_tasks: 0,
                next_ticket: 0,
                transferred: 0,
                thread: 0,
                consecutive_arms: 0,
                home_threshold: HOME_THRESHOLD,
            }),
        }
    }

    #[inline(always)]
    pub(crate) fn is_closed(&self) -> bool {
        self.word.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Whether a waiter is armed.
    pub(crate) fn has_any(&self) -> bool {
        self.word.load(Ordering::Relaxed) >= ARMED
    }

    /// Sets CLOSED and wakes nobody. [`close`](Self::close) has to follow.
    pub(crate) fn mark_closed(&self) {
        self.word.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Sets CLOSED and wakes every waiter. Returns whether this was the first close.
    pub(crate) fn close(&self) -> bool {
        let before = self.word.fetch_or(CLOSED, Ordering::AcqRel);
        barrier::full();
        self.wake_all();
        before & CLOSED == 0
    }

    /// Rule 1: called after `published` values became visible.
    #[inline(always)]
    pub(crate) fn signal(&self, published: usize) {
        if !self.is_idle() {
            self.signal_slow(published);
        }
    }

    /// Like [`signal`](Self::signal) for one value. It passes `value` through, so that the caller
    /// keeps no registers alive across the slow path.
    #[inline(always)]
    pub(crate) fn signal_returning<T>(&self, value: T) -> T {
        if self.is_idle() {
            value
        } else {
            self.signal_slow_returning(value)
        }
    }

    #[cold]
    #[inline(never)]
    fn signal_slow_returning<T>(&self, value: T) -> T {
        self.signal_slow(1);
        value
    }

    /// Whether no waiter is armed, and this needs no fence (rules 1 and 9).
    #[inline(always)]
    fn is_idle(&self) -> bool {
        barrier::light();
        let word = self.word.load(Ordering::Relaxed) & !CLOSED;
        word == 0 || word == FENCED && self.home.load(Ordering::Relaxed) == this_thread()
    }

    #[inline(never)]
    fn signal_slow(&self, published: usize) {
        // Rule 7.
        if self.word.load(Ordering::Relaxed) & SKIP_FENCE != 0 {
            return;
        }
        // Rules 2 and 9.
        if self.home.load(Ordering::Relaxed) != this_thread() {
            barrier::full();
        }
        let word = self.word.load(Ordering::Relaxed);
        if word & WAKING != 0 {
            self.count_waking_publish(word);
        } else if word >= ARMED {
            self.wake(published);
        } else if word & FENCED != 0 {
            self.count_idle_publish();
        }
    }

    /// Rule 7: the woken thread is slow, so that one heavy barrier costs less than the fences.
    fn count_waking_publish(&self, word: usize) {
        let publishes = self.idle_publishes.load(Ordering::Relaxed).wrapping_add(1);
        self.idle_publishes.store(publishes, Ordering::Relaxed);
        if publishes >= SLOW_WAKEUP_PUBLISHES && barrier::is_asymmetric() {
            self.idle_publishes.store(0, Ordering::Relaxed);
            // It fails if the thread has come meanwhile.
            let _ = self.word.compare_exchange(
                word,
                word | SKIP_FENCE,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }

    fn count_idle_publish(&self) {
        let idle_publishes = self.idle_publishes.load(Ordering::Relaxed).wrapping_add(1);
        self.idle_publishes.store(idle_publishes, Ordering::Relaxed);
        if idle_publishes >= BUSY as u32 && barrier::is_asymmetric() {
            self.idle_publishes.store(0, Ordering::Relaxed);
            self.word.fetch_and(!FENCED, Ordering::Relaxed);
        }
    }

    /// Rules 3 and 7: wakes up to `max` waiters, oldest first, but stops after the first thread.
    #[cold]
    pub(crate) fn wake(&self, max: usize) {
        let mut left = max;
        while left > 0
            && let Some(first) = self.take_first()
        {
            first.waker.wake();
            match first.kind {
                WaiterKind::Thread => return,
                WaiterKind::Task => left -= 1,
                WaiterKind::Watcher => {}
            }
        }
    }

    fn wake_all(&self) {
        while let Some(first) = self.take_first() {
            first.waker.wake();
        }
    }

    fn take_first(&self) -> Option<Waiter> {
        let mut list = lock(&self.list);
        let first = list.waiters.pop_front()?;
        let taken = first.ticket.0.wrapping_add(1);
        self.taken.store(taken as u32, Ordering::Release);
        // Under the lock, two statements suffice.
        let wakes = self.wakes.load(Ordering::Relaxed);
        self.wakes.store(wakes + 1, Ordering::Relaxed);
        list.non_tasks -= u32::from(first.kind != WaiterKind::Task);
        if first.kind == WaiterKind::Thread {
            self.woken_at.store(clock::now(), Ordering::Relaxed);
            let skip_fence = !list.waiters.is_empty() && barrier::is_asymmetric();
            let marks = if skip_fence {
                WAKING | SKIP_FENCE
            } else {
                WAKING
            };
            self.word.fetch_or(marks, Ordering::Relaxed);
        }
        self.word.fetch_sub(ARMED, Ordering::Relaxed);
        Some(first)
    }

    /// Rule 4, up to "checks again". `transferred` is the number of values that have passed through
    /// the channel.
    pub(crate) fn arm(&self, kind: WaiterKind, waker: Waker, transferred: u64) -> Ticket {
        let mut list = lock(&self.list);
        let ticket = Ticket(list.next_ticket);
        list.next_ticket += 1;
        let busy = transferred.wrapping_sub(list.transferred) >= BUSY as u64;
        list.transferred = transferred;
        list.non_tasks += u32::from(kind != WaiterKind::Task);
        list.waiters.push_back(Waiter {
            ticket,
            kind,
            waker,
        });
        self.idle_publishes.store(0, Ordering::Relaxed);
        let revokes_home = self.revokes_home(&mut list);
        let fenced = self.word.fetch_add(ARMED, Ordering::Relaxed) & FENCED != 0;
        // FENCED stays set if the kernel no longer executes the heavy barrier.
        let wants_fenced = !busy || !barrier::is_asymmetric();
        let sets_fenced = wants_fenced && !fenced;
        if sets_fenced {
            self.word.fetch_or(FENCED, Ordering::Relaxed);
        } else if !wants_fenced && fenced {
            self.word.fetch_and(!FENCED, Ordering::Relaxed);
        }
        if fenced && !revokes_home {
            barrier::full();
        } else if sets_fenced || revokes_home {
            // Under the lock, because the next waiter that arms relies on it.
            barrier::heavy();
        } else {
            drop(list);
            barrier::heavy();
        }
        ticket
    }

    /// Rule 9, for a waiter that arms. Returns `true` if it resets the home of another thread.
    fn revokes_home(&self, list: &mut Inner) -> bool {
        let thread = this_thread();
        if thread != list.thread {
            list.thread = thread;
            list.consecutive_arms = 0;
        }
        let home = self.home.load(Ordering::Relaxed);
        if home == thread {
            return false;
        }
        if home != 0 {
            self.home.store(0, Ordering::Relaxed);
            let doubled = list.home_threshold.saturating_mul(2);
            list.home_threshold = doubled.min(MAX_HOME_THRESHOLD);
            return true;
        }
        list.consecutive_arms = list.consecutive_arms.saturating_add(1);
        if list.consecutive_arms >= list.home_threshold
            && barrier::is_asymmetric()
            && list.non_tasks == 0
            && self.word.load(Ordering::Relaxed) & WAKING == 0
        {
            self.home.store(thread, Ordering::Relaxed);
        }
        false
    }

    /// Replaces the waker of an arming. Returns `false` if it was already woken.
    pub(crate) fn rearm(&self, ticket: Ticket, waker: &Waker) -> bool {
        let mut list = lock(&self.list);
        let armed = list.waiters.iter_mut().find(|one| one.ticket == ticket);
        if let Some(one) = armed {
            one.waker.clone_from(waker);
            return true;
        }
        false
    }

    /// Cancels an arming. Returns `false` if it was already woken.
    pub(crate) fn disarm(&self, kind: WaiterKind, ticket: Ticket) -> bool {
        if kind != WaiterKind::Thread && self.was_taken(ticket) {
            return false;
        }
        let mut list = lock(&self.list);
        // Tickets increase along the list.
        let place = list
            .waiters
            .binary_search_by_key(&ticket.0, |one| one.ticket.0);
        if let Ok(place) = place {
            list.waiters.remove(place);
            list.non_tasks -= u32::from(kind != WaiterKind::Task);
            self.word.fetch_sub(ARMED, Ordering::Relaxed);
            return true;
        }
        if kind == WaiterKind::Thread {
            // Rule 7.
            let marks = WAKING | SKIP_FENCE;
            let skip_fence = self.word.fetch_and(!marks, Ordering::Relaxed) & SKIP_FENCE != 0;
            drop(list);
            if skip_fence {
                barrier::heavy();
            } else {
                barrier::full();
            }
        }
        false
    }

    /// Whether the entry was taken out of the list. It may miss that.
    fn was_taken(&self, ticket: Ticket) -> bool {
        let ahead = self
            .taken
            .load(Ordering::Acquire)
            .wrapping_sub(ticket.0 as u32);
        // A list has fewer than 2^31 waiters, so a waiter that was not taken is never that far behind.
        (1..1 << 31).contains(&ahead)
    }

    /// Rule 6: cancels an arming for good. If it was already woken, wakes the next waiter.
    pub(crate) fn disarm_or_pass_on(&self, kind: WaiterKind, ticket: Ticket) {
        if !self.disarm(kind, ticket) {
            self.wake(1);
        }
    }

    /// Rule 8.
    pub(crate) fn has_slow_wakeup(&self) -> bool {
        self.word.load(Ordering::Relaxed) & WAKING != 0
            && clock::now().saturating_sub(self.woken_at.load(Ordering::Relaxed)) > SLOW_WAKEUP_NS
    }

    pub(crate) fn record_park(&self, ns: u64) {
        self.parks.fetch_add(1, Ordering::Relaxed);
        self.parked_ns.fetch_add(ns, Ordering::Relaxed);
    }

    pub(crate) fn park_stats(&self) -> ParkStats {
        ParkStats {
            wakes: self.wakes.load(Ordering::Relaxed),
            parks: self.parks.load(Ordering::Relaxed),
            parked_ns: self.parked_ns.load(Ordering::Relaxed),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{MAX_HOME_THRESHOLD, WaitList, WaiterKind};
    use crate::barrier;
    use crate::sync::{Ordering, lock};
    use crate::this_thread::this_thread;
    use std::task::Waker;
    use std::thread;

    fn arm_and_disarm(list: &WaitList) {
        let ticket = list.arm(WaiterKind::Task, Waker::noop().clone(), 0);
        assert!(list.disarm(WaiterKind::Task, ticket));
    }

    #[test]
    fn each_revocation_doubles_the_threshold_up_to_its_maximum() {
        if !barrier::is_asymmetric() {
            return;
        }
        let list = WaitList::new();
        for _ in 0..14 {
            while list.home.load(Ordering::Relaxed) == 0 {
                arm_and_disarm(&list);
            }
            assert_eq!(list.home.load(Ordering::Relaxed), this_thread());
            thread::scope(|scope| scope.spawn(|| arm_and_disarm(&list)).join().unwrap());
            assert_eq!(list.home.load(Ordering::Relaxed), 0);
        }
        assert_eq!(lock(&list.list).home_threshold, MAX_HOME_THRESHOLD);
    }
}
