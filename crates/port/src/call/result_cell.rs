//! Where a waiting caller receives the completion of its call. One word; no lock, and no allocation.
//!
//! | word | meaning |
//! | --- | --- |
//! | `EMPTY` | no completion yet, or it was taken |
//! | `ARMED` | no completion yet; `waker` wakes the caller |
//! | `TAKING` | the completing thread takes `waker`, and then stores the completion |
//! | `ABANDONED` | the caller dropped the call, so no thread will read the completion |
//! | a pointer | the completion |
//!
//! 1. Only the caller changes the word to `EMPTY`, `ARMED` and `ABANDONED`. Only the thread that ends
//!    the call changes it to `TAKING` and to the pointer, once per call.
//! 2. `waker` belongs to the caller, except while the word is `ARMED` or `TAKING`. In `ARMED` it
//!    belongs to the thread that changes the word.
//! 3. The completing thread takes the waker out before it stores the pointer, and accesses nothing
//!    of the cell afterwards: from then on, the caller may free or reuse the cell.
//! 4. A caller that finds `TAKING` waits for the pointer. That takes a few instructions, in which
//!    the other thread cannot be preempted by another actor.

use std::ptr;
use std::task::Waker;

use thalweg_queue::no_preempt::NoPreemptGuard;

use crate::completion::{CallBuffer, Completion, Outcome};
use crate::mailbox::Linked;
use crate::sync::{AtomicPtr, Ordering, UnsafeCell, yield_now};

type Word = *mut Outcome;

const EMPTY: Word = ptr::null_mut();
const ARMED: Word = ptr::without_provenance_mut(1);
const TAKING: Word = ptr::without_provenance_mut(2);
const ABANDONED: Word = ptr::without_provenance_mut(3);

fn is_completion(word: Word) -> bool {
    word.addr() > ABANDONED.addr()
}

/// Rule 1: drops a completion whose caller has abandoned the call.
///
/// # Safety
/// The pointer came from `into_node`, and the caller owns it.
#[cold]
unsafe fn drop_abandoned(pointer: Word) {
    // SAFETY: the caller's contract.
    drop(Completion(unsafe { CallBuffer::from_node(pointer) }));
}

/// Receives the completion of a call without a port.
#[derive(Debug)]
pub(crate) struct ResultCell {
    word: AtomicPtr<Outcome>,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: rules 1 and 2.
unsafe impl Sync for ResultCell {}

impl Default for ResultCell {
    fn default() -> Self {
        Self {
            word: AtomicPtr::new(EMPTY),
            waker: UnsafeCell::new(None),
        }
    }
}

impl ResultCell {
    /// Empties the cell for the next call. The caller is its only user.
    pub(crate) fn reset(&self) {
        self.word.store(EMPTY, Ordering::Relaxed);
    }

    fn exchange(&self, from: Word, to: Word) -> Result<Word, Word> {
        self.word
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
    }

    /// Called by the thread that ends the call.
    #[inline]
    pub(crate) fn complete(&self, completion: Completion) {
        let _no_preempt = NoPreemptGuard::enter();
        let pointer = completion.into_buffer().into_node();
        let stored = match self.exchange(EMPTY, pointer) {
            Err(ARMED) => self.complete_armed(pointer),
            other => other,
        };
        if stored.is_err() {
            // SAFETY: the pointer was not stored.
            unsafe { drop_abandoned(pointer) };
        }
    }

    #[cold]
    fn complete_armed(&self, pointer: Word) -> Result<Word, Word> {
        let Ok(_) = self.exchange(ARMED, TAKING) else {
            // The caller took its waker back.
            return self.exchange(EMPTY, pointer);
        };
        // SAFETY: rule 2.
        let waker = self.waker.with_mut(|waker| unsafe { (*waker).take() });
        let stored = self.exchange(TAKING, pointer);
        if let (Ok(_), Some(waker)) = (stored, waker) {
            waker.wake();
        }
        stored
    }

    /// Whether the completion is here.
    #[inline]
    pub(crate) fn is_filled(&self) -> bool {
        is_completion(self.word.load(Ordering::Relaxed))
    }

    /// Called by the caller: takes the completion.
    #[inline]
    pub(crate) fn take(&self) -> Option<Completion> {
        let word = self.word.load(Ordering::Acquire);
        if !is_completion(word) {
            return None;
        }
        self.word.store(EMPTY, Ordering::Relaxed);
        // SAFETY: rule 1: no other thread changes the word after the completion was stored.
        Some(Completion(unsafe { CallBuffer::from_node(word) }))
    }

    /// Called by the caller. From now on, `waker` is woken when the completion arrives. Returns
    /// `false` if it is already here.
    pub(crate) fn arm(&self, waker: Waker) -> bool {
        if !self.disarm() {
            return false;
        }
        // SAFETY: rule 2: the word is not `ARMED`.
        self.waker.with_mut(|place| unsafe { *place = Some(waker) });
        self.exchange(EMPTY, ARMED).is_ok() || {
            self.drop_waker();
            false
        }
    }

    /// Called by the caller: removes the waker. Returns `false` if the completion is here.
    pub(crate) fn disarm(&self) -> bool {
        let mut word = self.word.load(Ordering::Acquire);
        if word == ARMED {
            match self.exchange(ARMED, EMPTY) {
                Ok(_) => {
                    self.drop_waker();
                    return true;
                }
                Err(now) => word = now,
            }
        }
        while word == TAKING {
            // Rule 4.
            yield_now();
            word = self.word.load(Ordering::Acquire);
        }
        word == EMPTY
    }

    /// Drops the waker. Rule 2: the word is not `ARMED`.
    fn drop_waker(&self) {
        // SAFETY: the caller's contract.
        drop(self.waker.with_mut(|waker| unsafe { (*waker).take() }));
    }

    /// Called by the caller, which drops the call.
    pub(crate) fn abandon(&self) {
        let before = self.word.swap(ABANDONED, Ordering::AcqRel);
        if before == ARMED {
            self.drop_waker();
        } else if is_completion(before) {
            // SAFETY: rule 1: the swap made the caller its owner.
            drop(Completion(unsafe { CallBuffer::from_node(before) }));
        }
    }
}
