//! Those who wait at one side of a channel, and how the other side wakes them: [`atomic_waker`](crate::atomic_waker)'s protocol for any number of
//! waiters, with barriers that cost a busy channel nothing.
//!
//! One word says everything that a publisher must know: how many are armed, whether the channel is closed, and which barrier counts.
//!
//! 1. A publisher makes its data visible (Release), then **loads the word**. All zero: nobody waits and the sleepers use the
//!    heavy barrier; done. That is the whole fast path.
//! 2. Anything in the word but CLOSED: the publisher passes a full fence and loads the word again.
//! 3. Somebody armed: it takes the first off the list, and wakes it. A waker is taken once, so one data wakes one waiter.
//! 4. A waiter arms: adds its waker and one to the word, under the list's lock, then passes a barrier, **looks again** at all that it waits
//!    for, and only then sleeps. The barrier is a full fence if the word that its own addition replaced said FENCED, else the
//!    heavy one.
//! 5. WaiterKind arms may set FENCED: it then passes the heavy barrier still under the lock. A publisher may clear it. Because count and mode
//!    are one word, whoever sees the mode cleared sees everybody who armed under fences before.
//! 6. A waiter that was taken off the list and goes away without taking what it was woken for passes the wake-up on.
//! 7. One woken thread at a time: from its wake-up until it runs again WAKING is set, and publishers wake nobody else. It clears the mark
//!    before it looks again, with a full fence between, as publishers have one between publishing and reading the mark; and when it got
//!    what it wanted and sees more, it wakes the next ones. Where others wait behind it SKIP_FENCE is set too: then publishers pass no fence, and
//!    it passes the heavy barrier. Tasks are not marked: nobody knows when they are polled. A task that was woken and sees more than what
//!    it took wakes the next ones too: the wake-up may have been for what it did not take.
//! 8. Where a thread that was woken has not run for [`SLOW_WAKEUP_NS`], all processors are taken, perhaps by those who look again and again for
//!    what it was woken for: so they sleep without looking again.
//! 9. Tasks that wake each other on one thread need no fence: that thread sees its own next_ticket. `home` is that thread. A publisher
//!    on it skips the fence of rule 2; whoever arms on another takes it away and passes the heavy barrier.
//!
//! Why 5 is sound: a publisher that loaded the word before FENCED was set had published before that load, and the heavy
//! barrier makes what it published visible to the waiter that looks again; a publisher that loads it later uses fences. 9 is sound for
//! the same reason; and since `home` is given only where no thread sleeps or is on its way, rule 7 is nobody's there.
//!
//! FENCED is for those who sleep often: a fence for each of 512 messages costs less than one heavy barrier for all. So it is set by
//! a waiter that sleeps again after fewer, and cleared by the publisher that found nobody armed so many times in a row.

use std::collections::VecDeque;
use std::task::Waker;

use crate::barrier;
use crate::clock;
use crate::sync::{AtomicUsize, Mutex, Ordering, StdAtomicU64, lock};

const CLOSED: usize = 1;
const FENCED: usize = 2;
const WAKING: usize = 4;
const SKIP_FENCE: usize = 8;
const ARMED: usize = 16;

/// Messages between two sleeps from which on the heavy barrier is the cheaper one.
const BUSY: usize = if cfg!(loom) { 2 } else { 512 };

/// Five times what a wake-up costs, so that changing turns costs little.
const SLOW_WAKEUP_NS: u64 = 250_000;

/// Armings in a row on one thread that make it the home of all, at first.
const HOME_THRESHOLD: u32 = if cfg!(loom) { 1 } else { 16 };
/// After each time that it was taken away it takes twice as many, up to this.
const MAX_HOME_THRESHOLD: u32 = 1 << 16;

/// One arming, until it is woken or disarmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// WaiterKind waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaiterKind {
    /// A thread that looks again as soon as it runs, and passes on what it does not take.
    Thread,
    /// A task or a select: who may do something else first.
    Task,
    /// An event loop's descriptor: it is told, and takes no wake-up away from those who wait behind it, one of whom may be its owner.
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
    /// How many of them are no tasks.
    non_tasks: usize,
    next_ticket: u64,
    /// What the channel had transferred at the last arming.
    transferred: u64,
    /// Where the last next_ticket were, how many in a row, and how many it takes (rule 9).
    thread: usize,
    consecutive_arms: u32,
    home_threshold: u32,
}

#[derive(Debug)]
pub(crate) struct WaitList {
    word: AtomicUsize,
    /// Publishers that found FENCED and nobody armed, since somebody was. Two at once may count as one.
    idle_publishes: AtomicUsize,
    /// Rule 8: when a thread was last woken.
    woken_at: StdAtomicU64,
    /// Rule 9: a thread, or 0. Written under the list's lock.
    home: AtomicUsize,
    wakes: StdAtomicU64,
    parks: StdAtomicU64,
    parked_ns: StdAtomicU64,
    list: Mutex<Inner>,
}

/// How often the waiters of one side slept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParkStats {
    pub(crate) wakes: u64,
    pub(crate) parks: u64,
    pub(crate) parked_ns: u64,
}

/// A number that no other thread has at the same time; not 0.
#[cfg(not(loom))]
#[inline]
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

#[cfg(loom)]
use barrier::model::this_thread;

impl WaitList {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicUsize::new(if barrier::is_asymmetric() { 0 } else { FENCED }),
            idle_publishes: AtomicUsize::new(0),
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

    /// Whether anybody is armed.
    pub(crate) fn has_any(&self) -> bool {
        self.word.load(Ordering::Relaxed) >= ARMED
    }

    /// Marks the word, and wakes everybody. Whether this was the first time.
    pub(crate) fn close(&self) -> bool {
        let before = self.word.fetch_or(CLOSED, Ordering::AcqRel);
        barrier::full();
        self.wake_all();
        before & CLOSED == 0
    }

    /// Rule 1: after `published` values became visible.
    #[inline(always)]
    pub(crate) fn signal(&self, published: usize) {
        if !self.is_idle() {
            self.signal_slow(published);
        }
    }

    /// [`signal`](Self::signal) for one, by who has a value to return: so that it has nothing to keep while the slow path runs.
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

    #[inline(always)]
    fn is_idle(&self) -> bool {
        barrier::light();
        self.word.load(Ordering::Relaxed) & !CLOSED == 0
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
        if word >= ARMED {
            if word & WAKING == 0 {
                self.wake(published);
            }
        } else if word & FENCED != 0 {
            self.count_idle_publish();
        }
    }

    fn count_idle_publish(&self) {
        let idle_publishes = self.idle_publishes.load(Ordering::Relaxed) + 1;
        self.idle_publishes.store(idle_publishes, Ordering::Relaxed);
        if idle_publishes >= BUSY && barrier::is_asymmetric() {
            self.idle_publishes.store(0, Ordering::Relaxed);
            self.word.fetch_and(!FENCED, Ordering::Relaxed);
        }
    }

    /// Rules 3 and 7: wakes up to `most` of those who wait, longest first, up to the first thread.
    #[cold]
    pub(crate) fn wake(&self, max: usize) {
        let mut left = max;
        while left > 0
            && let Some(first) = self.take_first()
        {
            self.wakes.fetch_add(1, Ordering::Relaxed);
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
            self.wakes.fetch_add(1, Ordering::Relaxed);
            first.waker.wake();
        }
    }

    fn take_first(&self) -> Option<Waiter> {
        let mut list = lock(&self.list);
        let first = list.waiters.pop_front()?;
        list.non_tasks -= usize::from(first.kind != WaiterKind::Task);
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

    /// Rule 4, up to "look again". `transferred` is how many values went through the channel so far.
    pub(crate) fn arm(&self, kind: WaiterKind, waker: Waker, transferred: u64) -> Ticket {
        let mut list = lock(&self.list);
        let ticket = Ticket(list.next_ticket);
        list.next_ticket += 1;
        let busy = transferred.wrapping_sub(list.transferred) >= BUSY as u64;
        list.transferred = transferred;
        list.non_tasks += usize::from(kind != WaiterKind::Task);
        list.waiters.push_back(Waiter {
            ticket,
            kind,
            waker,
        });
        self.idle_publishes.store(0, Ordering::Relaxed);
        let revokes_home = self.revokes_home(&mut list);
        let fenced = self.word.fetch_add(ARMED, Ordering::Relaxed) & FENCED != 0;
        // For good where the kernel does not pass the heavy barrier any more.
        let sets_fenced = !fenced && (!busy || !barrier::is_asymmetric());
        if sets_fenced {
            self.word.fetch_or(FENCED, Ordering::Relaxed);
        }
        if fenced && !revokes_home {
            barrier::full();
        } else if sets_fenced || revokes_home {
            // Under the lock, so that who arms next relies on it.
            barrier::heavy();
        } else {
            drop(list);
            barrier::heavy();
        }
        ticket
    }

    /// Rule 9, for one that arms: `true`, if it takes another thread's home away.
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
            list.home_threshold = (list.home_threshold * 2).min(MAX_HOME_THRESHOLD);
            return true;
        }
        list.consecutive_arms += 1;
        if list.consecutive_arms >= list.home_threshold
            && barrier::is_asymmetric()
            && list.non_tasks == 0
            && self.word.load(Ordering::Relaxed) & WAKING == 0
        {
            self.home.store(thread, Ordering::Relaxed);
        }
        false
    }

    /// Gives an arming another waker; `false` if it was woken already.
    pub(crate) fn rearm(&self, ticket: Ticket, waker: &Waker) -> bool {
        let mut list = lock(&self.list);
        let armed = list.waiters.iter_mut().find(|one| one.ticket == ticket);
        if let Some(one) = armed {
            one.waker.clone_from(waker);
            return true;
        }
        false
    }

    /// Takes an arming back; `false` if it was woken already.
    pub(crate) fn disarm(&self, kind: WaiterKind, ticket: Ticket) -> bool {
        let mut list = lock(&self.list);
        // Tickets grow along the list.
        let place = list
            .waiters
            .binary_search_by_key(&ticket.0, |one| one.ticket.0);
        if let Ok(place) = place {
            list.waiters.remove(place);
            list.non_tasks -= usize::from(kind != WaiterKind::Task);
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

    /// Rule 6: takes an arming back for good, and gives the wake-up that it had already to the next.
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
