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
//! 5. Who arms may set FENCED: it then passes the heavy barrier still under the lock. A publisher may clear it. Because count and mode
//!    are one word, whoever sees the mode cleared sees everybody who armed under fences before.
//! 6. A waiter that was taken off the list and goes away without taking what it was woken for passes the wake-up on.
//! 7. One woken thread at a time: from its wake-up until it runs again WAKING is set, and publishers wake nobody else. It clears the mark
//!    before it looks again, with a full fence between, as publishers have one between publishing and reading the mark; and when it got
//!    what it wanted and sees more, it wakes the next ones. Where others wait behind it QUIET is set too: then publishers pass no fence, and
//!    it passes the heavy barrier. Tasks are not marked: nobody knows when they are polled. A task that was woken and sees more than what
//!    it took wakes the next ones too: the wake-up may have been for what it did not take.
//! 8. Where a thread that was woken has not run for [`PATIENCE_NS`], all processors are taken, perhaps by those who look again and again for
//!    what it was woken for: so they sleep without looking again.
//! 9. Tasks that wake each other on one thread need no fence: that thread sees its own armings. `home` is that thread. A publisher
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
use crate::sync::{AtomicUsize, Figure, Mutex, Ordering, lock};

const CLOSED: usize = 1;
const FENCED: usize = 2;
const WAKING: usize = 4;
const QUIET: usize = 8;
const ARMED: usize = 16;

/// Messages between two sleeps from which on the heavy barrier is the cheaper one.
const BUSY: usize = if cfg!(loom) { 2 } else { 512 };

/// Five times what a wake-up costs, so that changing turns costs little.
const PATIENCE_NS: u64 = 250_000;

/// Armings in a row on one thread that make it the home of all, at first.
const AT_HOME: u32 = if cfg!(loom) { 1 } else { 16 };
/// After each time that it was taken away it takes twice as many, up to this.
const MOST_AT_HOME: u32 = 1 << 16;

/// One arming, until it is woken or disarmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// Who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// A thread that looks again as soon as it runs, and passes on what it does not take.
    Thread,
    /// A task or a select: who may do something else first.
    Task,
    /// An event loop's descriptor: it is told, and takes no wake-up away from those who wait behind it, one of whom may be its owner.
    Watcher,
}

#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    who: Who,
    waker: Waker,
}

#[derive(Debug)]
struct List {
    waiting: VecDeque<Waiting>,
    /// How many of them are no tasks.
    others: usize,
    armings: u64,
    /// What the channel had moved at the last arming.
    moved: u64,
    /// Where the last armings were, how many in a row, and how many it takes (rule 9).
    thread: usize,
    in_a_row: u32,
    at_home: u32,
}

#[derive(Debug)]
pub(crate) struct Waiters {
    word: AtomicUsize,
    /// Publishers that found FENCED and nobody armed, since somebody was. Two at once may count as one.
    in_vain: AtomicUsize,
    /// Rule 8: when a thread was last woken.
    woken_at: Figure,
    /// Rule 9: a thread, or 0. Written under the list's lock.
    home: AtomicUsize,
    wakes: Figure,
    parks: Figure,
    parked_ns: Figure,
    list: Mutex<List>,
}

/// How often the waiters of one side slept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slept {
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

impl Waiters {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicUsize::new(if barrier::is_asymmetric() { 0 } else { FENCED }),
            in_vain: AtomicUsize::new(0),
            woken_at: Figure::new(0),
            home: AtomicUsize::new(0),
            wakes: Figure::new(0),
            parks: Figure::new(0),
            parked_ns: Figure::new(0),
            list: Mutex::new(List {
                waiting: VecDeque::new(),
                others: 0,
                armings: 0,
                moved: 0,
                thread: 0,
                in_a_row: 0,
                at_home: AT_HOME,
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
        if !self.is_quiet() {
            self.signal_slowly(published);
        }
    }

    /// [`signal`](Self::signal) for one, by who has a value to return: so that it has nothing to keep while the slow path runs.
    #[inline(always)]
    pub(crate) fn signal_and<T>(&self, value: T) -> T {
        if self.is_quiet() {
            value
        } else {
            self.signal_slowly_and(value)
        }
    }

    #[cold]
    #[inline(never)]
    fn signal_slowly_and<T>(&self, value: T) -> T {
        self.signal_slowly(1);
        value
    }

    #[inline(always)]
    fn is_quiet(&self) -> bool {
        barrier::light();
        self.word.load(Ordering::Relaxed) & !CLOSED == 0
    }

    #[inline(never)]
    fn signal_slowly(&self, published: usize) {
        // Rule 7.
        if self.word.load(Ordering::Relaxed) & QUIET != 0 {
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
            self.published_in_vain();
        }
    }

    fn published_in_vain(&self) {
        let in_vain = self.in_vain.load(Ordering::Relaxed) + 1;
        self.in_vain.store(in_vain, Ordering::Relaxed);
        if in_vain >= BUSY && barrier::is_asymmetric() {
            self.in_vain.store(0, Ordering::Relaxed);
            self.word.fetch_and(!FENCED, Ordering::Relaxed);
        }
    }

    /// Rules 3 and 7: wakes up to `most` of those who wait, longest first, up to the first thread.
    #[cold]
    pub(crate) fn wake(&self, most: usize) {
        let mut left = most;
        while left > 0
            && let Some(first) = self.take_first()
        {
            self.wakes.fetch_add(1, Ordering::Relaxed);
            first.waker.wake();
            match first.who {
                Who::Thread => return,
                Who::Task => left -= 1,
                Who::Watcher => {}
            }
        }
    }

    fn wake_all(&self) {
        while let Some(first) = self.take_first() {
            self.wakes.fetch_add(1, Ordering::Relaxed);
            first.waker.wake();
        }
    }

    fn take_first(&self) -> Option<Waiting> {
        let mut list = lock(&self.list);
        let first = list.waiting.pop_front()?;
        list.others -= usize::from(first.who != Who::Task);
        if first.who == Who::Thread {
            self.woken_at.store(clock::now(), Ordering::Relaxed);
            let quiet = !list.waiting.is_empty() && barrier::is_asymmetric();
            let marks = if quiet { WAKING | QUIET } else { WAKING };
            self.word.fetch_or(marks, Ordering::Relaxed);
        }
        self.word.fetch_sub(ARMED, Ordering::Relaxed);
        Some(first)
    }

    /// Rule 4, up to "look again". `moved` is how many values went through the channel so far.
    pub(crate) fn arm(&self, who: Who, waker: Waker, moved: u64) -> Ticket {
        let mut list = lock(&self.list);
        let ticket = Ticket(list.armings);
        list.armings += 1;
        let busy = moved.wrapping_sub(list.moved) >= BUSY as u64;
        list.moved = moved;
        list.others += usize::from(who != Who::Task);
        list.waiting.push_back(Waiting { ticket, who, waker });
        self.in_vain.store(0, Ordering::Relaxed);
        let takes_home_away = self.takes_home_away(&mut list);
        let fenced = self.word.fetch_add(ARMED, Ordering::Relaxed) & FENCED != 0;
        // For good where the kernel does not pass the heavy barrier any more.
        let sets_fenced = !fenced && (!busy || !barrier::is_asymmetric());
        if sets_fenced {
            self.word.fetch_or(FENCED, Ordering::Relaxed);
        }
        if fenced && !takes_home_away {
            barrier::full();
        } else if sets_fenced || takes_home_away {
            // Under the lock, so that who arms next relies on it.
            barrier::heavy();
        } else {
            drop(list);
            barrier::heavy();
        }
        ticket
    }

    /// Rule 9, for one that arms: `true`, if it takes another thread's home away.
    fn takes_home_away(&self, list: &mut List) -> bool {
        let thread = this_thread();
        if thread != list.thread {
            list.thread = thread;
            list.in_a_row = 0;
        }
        let home = self.home.load(Ordering::Relaxed);
        if home == thread {
            return false;
        }
        if home != 0 {
            self.home.store(0, Ordering::Relaxed);
            list.at_home = (list.at_home * 2).min(MOST_AT_HOME);
            return true;
        }
        list.in_a_row += 1;
        if list.in_a_row >= list.at_home
            && barrier::is_asymmetric()
            && list.others == 0
            && self.word.load(Ordering::Relaxed) & WAKING == 0
        {
            self.home.store(thread, Ordering::Relaxed);
        }
        false
    }

    /// Gives an arming another waker; `false` if it was woken already.
    pub(crate) fn rearm(&self, ticket: Ticket, waker: &Waker) -> bool {
        let mut list = lock(&self.list);
        let armed = list.waiting.iter_mut().find(|one| one.ticket == ticket);
        if let Some(one) = armed {
            one.waker.clone_from(waker);
            return true;
        }
        false
    }

    /// Takes an arming back; `false` if it was woken already.
    pub(crate) fn disarm(&self, who: Who, ticket: Ticket) -> bool {
        let mut list = lock(&self.list);
        // Tickets grow along the list.
        let place = list
            .waiting
            .binary_search_by_key(&ticket.0, |one| one.ticket.0);
        if let Ok(place) = place {
            list.waiting.remove(place);
            list.others -= usize::from(who != Who::Task);
            self.word.fetch_sub(ARMED, Ordering::Relaxed);
            return true;
        }
        if who == Who::Thread {
            // Rule 7.
            let marks = WAKING | QUIET;
            let quiet = self.word.fetch_and(!marks, Ordering::Relaxed) & QUIET != 0;
            drop(list);
            if quiet {
                barrier::heavy();
            } else {
                barrier::full();
            }
        }
        false
    }

    /// Rule 6: takes an arming back for good, and gives the wake-up that it had already to the next.
    pub(crate) fn leave(&self, who: Who, ticket: Ticket) {
        if !self.disarm(who, ticket) {
            self.wake(1);
        }
    }

    /// Rule 8.
    pub(crate) fn is_waking_for_long(&self) -> bool {
        self.word.load(Ordering::Relaxed) & WAKING != 0
            && clock::now().saturating_sub(self.woken_at.load(Ordering::Relaxed)) > PATIENCE_NS
    }

    pub(crate) fn parked(&self, ns: u64) {
        self.parks.fetch_add(1, Ordering::Relaxed);
        self.parked_ns.fetch_add(ns, Ordering::Relaxed);
    }

    pub(crate) fn slept(&self) -> Slept {
        Slept {
            wakes: self.wakes.load(Ordering::Relaxed),
            parks: self.parks.load(Ordering::Relaxed),
            parked_ns: self.parked_ns.load(Ordering::Relaxed),
        }
    }
}
