//! A lock without what it guards: one word, and a line.
//!
//! | bit | meaning |
//! | --- | --- |
//! | `LOCKED` | somebody has it |
//! | `QUEUED` | somebody stands in the line |
//! | `WAKING` | one was taken out of the line and woken, and has not looked again |
//! | `HANDOVER` | the first in the line is to be given the lock itself |
//!
//! 1. Who finds the lock open takes it, whoever waits: who runs already need not wait until somebody else does.
//! 2. Who opens it while some wait wakes the first, unless one is on its way (`WAKING`).
//! 3. **Who was woken and finds it locked again is passed over no more**: it goes back to the front of the line and sets `HANDOVER`. Who unlocks
//!    then leaves `LOCKED` and gives the lock to the first in the line. So nobody is passed over twice in a row.
//! 4. `QUEUED` and `HANDOVER` change under the line's lock, and `WAKING` is set under it. With the line's lock held and its own `LOCKED`
//!    nobody else changes the word: who unlocks may store it.
//! 5. Who was woken and goes without looking takes `WAKING` back, and wakes the next if the lock is open. Who was given the lock and goes unlocks it.

use super::line::{Gift, Held, Line, Queue, Wakes};
use super::waiting::{Ask, Primitive, Waiting};
use crate::shim::{AtomicU32, Ordering};

const LOCKED: u32 = 1;
const QUEUED: u32 = 2;
const WAKING: u32 = 4;
const HANDOVER: u32 = 8;

/// The lock.
const OWNED: Gift = 1;
/// A wake-up.
const WOKEN: Gift = 2;

pub(super) struct RawLock {
    word: AtomicU32,
    line: Line<()>,
}

/// What one who waits for the lock knows of itself: it was woken, and looks again.
pub(super) struct Woken(bool);

impl RawLock {
    crate::shim::const_fn! {
        pub(super) fn new() -> Self {
            Self {
                word: AtomicU32::new(0),
                line: Line::new(()),
            }
        }
    }

    #[inline(always)]
    pub(super) fn try_lock(&self) -> bool {
        self.word
            .compare_exchange(0, LOCKED, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            || self.try_lock_before_others()
    }

    /// Rule 1.
    #[cold]
    fn try_lock_before_others(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & LOCKED == 0 {
            match self.word.compare_exchange_weak(
                word,
                word | LOCKED,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    pub(super) fn is_locked(&self) -> bool {
        self.word.load(Ordering::Relaxed) & LOCKED != 0
    }

    pub(super) fn waiting(&self) -> Waiting<'_, Self> {
        Waiting::new(self, Woken(false), 0)
    }

    /// Its owner's.
    #[inline(always)]
    pub(super) fn unlock(&self) {
        if self
            .word
            .compare_exchange(LOCKED, 0, Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            self.unlock_slowly();
        }
    }

    #[cold]
    fn unlock_slowly(&self) {
        let mut word = self.word.load(Ordering::Relaxed);
        // Nobody to wake.
        while word & HANDOVER == 0 && (word & QUEUED == 0 || word & WAKING != 0) {
            match self.word.compare_exchange_weak(
                word,
                word & !LOCKED,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
        let mut wakes = Wakes::default();
        let mut queue = self.line.lock();
        let word = self.word.load(Ordering::Relaxed);
        if word & HANDOVER != 0 && queue.give_first(OWNED, &mut wakes) {
            // Rule 3.
            self.store(&queue, LOCKED | (word & WAKING));
        } else if word & WAKING == 0 && queue.give_first(WOKEN, &mut wakes) {
            // Rule 2.
            self.store(&queue, WAKING);
        } else {
            self.store(&queue, word & WAKING);
        }
        drop(queue);
        wakes.wake();
    }

    /// Rule 4. A hand-over that was asked for is done with.
    fn store(&self, queue: &Queue<()>, bits: u32) {
        let queued = if queue.is_empty() { 0 } else { QUEUED };
        self.word.store(bits | queued, Ordering::Release);
    }
}

impl Primitive for RawLock {
    type State = ();
    type Wish = Woken;
    type Output = ();

    fn line(&self) -> &Line<()> {
        &self.line
    }

    fn ask(&self, _: &mut Queue<()>, Woken(woken): &mut Woken, _: &mut Wakes) -> Ask<()> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let is_open = word & LOCKED == 0;
            let mut next = word | if is_open { LOCKED } else { QUEUED };
            if *woken {
                next &= !WAKING;
                if !is_open {
                    next |= HANDOVER;
                }
            }
            match self
                .word
                .compare_exchange_weak(word, next, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) if is_open => return Ask::Done(()),
                Ok(_) if std::mem::take(woken) => return Ask::InFront,
                Ok(_) => return Ask::Behind,
                Err(now) => word = now,
            }
        }
    }

    fn given(&self, gift: Gift, woken: &mut Woken) -> Option<()> {
        woken.0 = gift == WOKEN;
        (gift == OWNED).then_some(())
    }

    /// Rule 5.
    fn left(&self, mut queue: Held<'_, ()>, gift: Option<Gift>, _: &Woken) {
        match gift {
            Some(OWNED) => {
                drop(queue);
                self.unlock();
            }
            Some(_) => {
                let mut wakes = Wakes::default();
                self.pass_wake_on(&mut queue, &mut wakes);
                drop(queue);
                wakes.wake();
            }
            None if queue.is_empty() => {
                self.word.fetch_and(!(QUEUED | HANDOVER), Ordering::Relaxed);
            }
            None => {}
        }
    }
}

impl RawLock {
    fn pass_wake_on(&self, queue: &mut Queue<()>, wakes: &mut Wakes) {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let wakes_next = word & LOCKED == 0 && !queue.is_empty();
            let next = if wakes_next { word } else { word & !WAKING };
            match self
                .word
                .compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) if wakes_next => break,
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
        queue.give_first(WOKEN, wakes);
        if queue.is_empty() {
            self.word.fetch_and(!QUEUED, Ordering::Relaxed);
        }
    }
}
