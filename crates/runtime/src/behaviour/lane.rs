//! The letters on their way to one actor: a chain through them, so that an empty mailbox is two words.
//!
//! 1. `newest` points to the last letter put in, or is null. A sender links its letter to the one that it saw and swings the pointer by CAS
//!    (Release). The reader swaps it for null (Acquire) and owns the whole chain, so there is no ABA.
//! 2. `oldest` is the reader's: what it took and has not read. There is one reader at a time, and whoever makes the next one the reader
//!    passes on what the last one wrote ([`super::owner`]).
//! 3. A letter is owned by its sender, then by the lane, then by who took it out, and is opened or dropped once.

use std::cell::Cell;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use super::{Actor, Context};
use crate::shim::{AtomicPtr, Cell as Link, Ordering};
use crate::trace::{self, TraceContext};

/// What all letters to an `A` have in common. It is the first field of each.
#[repr(C)]
pub(super) struct Envelope<A: Actor> {
    behind: Link<*mut Envelope<A>>,
    /// Reads the letter to the actor, or, where there is none any more, drops it.
    open: Open<A>,
}

type Open<A> = unsafe fn(NonNull<Envelope<A>>, Option<(&mut A, &Context<'_, A>)>);

/// An envelope and what is in it.
#[repr(C)]
struct Letter<A: Actor, C> {
    envelope: Envelope<A>,
    contents: C,
}

/// What a letter does when it is read.
pub(super) trait Contents<A: Actor>: Send + 'static {
    fn read(self, actor: &mut A, context: &Context<'_, A>);
}

struct WithTrace<C> {
    contents: C,
    context: Arc<TraceContext>,
}

impl<A: Actor, C: Contents<A>> Contents<A> for WithTrace<C> {
    fn read(self, actor: &mut A, context: &Context<'_, A>) {
        let Self {
            contents,
            context: came,
        } = self;
        trace::enter(Some(Arc::new(came.child())), || {
            contents.read(actor, context);
        });
    }
}

/// A letter that is in nobody's lane.
pub(super) struct Sealed<A: Actor>(NonNull<Envelope<A>>);

// SAFETY: what is in it is `Send`, by `Contents`.
unsafe impl<A: Actor> Send for Sealed<A> {}

impl<A: Actor> Sealed<A> {
    pub(super) fn new<C: Contents<A>>(contents: C) -> Self {
        let letter = Box::new(Letter {
            envelope: Envelope {
                behind: Link::new(null_mut()),
                open: open::<A, C>,
            },
            contents,
        });
        Self(NonNull::from(Box::leak(letter)).cast())
    }

    /// The same, with the sender's trace, if it has one.
    #[inline(always)]
    pub(super) fn traced<C: Contents<A>>(contents: C) -> Self {
        if trace::is_used() {
            return Self::perhaps_traced(contents);
        }
        Self::new(contents)
    }

    #[cold]
    #[inline(never)]
    fn perhaps_traced<C: Contents<A>>(contents: C) -> Self {
        match trace::to_send() {
            None => Self::new(contents),
            Some(context) => Self::new(WithTrace { contents, context }),
        }
    }

    pub(super) fn read(self, actor: &mut A, context: &Context<'_, A>) {
        self.open(Some((actor, context)));
    }

    fn open(self, to: Option<(&mut A, &Context<'_, A>)>) {
        let envelope = std::mem::ManuallyDrop::new(self).0;
        // SAFETY: rule 3: it is ours, and `open` goes with the type that it was made with.
        unsafe { (envelope.as_ref().open)(envelope, to) };
    }
}

impl<A: Actor> Drop for Sealed<A> {
    fn drop(&mut self) {
        Self(self.0).open(None);
    }
}

/// # Safety
/// The envelope is that of a `Letter<A, C>`, which is given up.
unsafe fn open<A: Actor, C: Contents<A>>(
    envelope: NonNull<Envelope<A>>,
    to: Option<(&mut A, &Context<'_, A>)>,
) {
    // SAFETY: as said; it was boxed.
    let letter = unsafe { Box::from_raw(envelope.cast::<Letter<A, C>>().as_ptr()) };
    if let Some((actor, context)) = to {
        letter.contents.read(actor, context);
    }
}

pub(super) struct Lane<A: Actor> {
    newest: AtomicPtr<Envelope<A>>,
    oldest: Cell<*mut Envelope<A>>,
}

impl<A: Actor> Lane<A> {
    pub(super) fn new() -> Self {
        Self {
            newest: AtomicPtr::new(null_mut()),
            oldest: Cell::new(null_mut()),
        }
    }

    /// Rule 1.
    pub(super) fn push(&self, letter: Sealed<A>) {
        let letter = std::mem::ManuallyDrop::new(letter).0;
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            // SAFETY: rule 3: it is the sender's until the CAS succeeds.
            unsafe { letter.as_ref() }.behind.set(newest);
            match self.newest.compare_exchange_weak(
                newest,
                letter.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => newest = now,
            }
        }
    }

    /// The reader: the oldest. `None`: a moment ago there was none.
    ///
    /// # Safety
    /// The caller is the reader (rule 2).
    pub(super) unsafe fn pop(&self) -> Option<Sealed<A>> {
        if self.oldest.get().is_null() {
            self.turn_over();
        }
        let oldest = NonNull::new(self.oldest.get())?;
        // SAFETY: rules 2 and 3: what was taken is the reader's.
        self.oldest.set(unsafe { oldest.as_ref() }.behind.get());
        Some(Sealed(oldest))
    }

    /// The reader: whether there was none a moment ago.
    ///
    /// # Safety
    /// The caller is the reader (rule 2).
    pub(super) unsafe fn is_empty(&self) -> bool {
        self.oldest.get().is_null() && self.newest.load(Ordering::Relaxed).is_null()
    }

    fn turn_over(&self) {
        if self.newest.load(Ordering::Relaxed).is_null() {
            return;
        }
        let mut rest = self.newest.swap(null_mut(), Ordering::Acquire);
        let mut oldest = null_mut();
        while let Some(letter) = NonNull::new(rest) {
            // SAFETY: rule 1: the chain is the reader's.
            rest = unsafe { letter.as_ref() }.behind.replace(oldest);
            oldest = letter.as_ptr();
        }
        self.oldest.set(oldest);
    }
}

impl<A: Actor> Drop for Lane<A> {
    fn drop(&mut self) {
        // SAFETY: nobody else has it any more.
        while let Some(letter) = unsafe { self.pop() } {
            drop(letter);
        }
    }
}
