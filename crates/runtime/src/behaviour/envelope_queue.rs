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
pub(super) struct Header<A: Actor> {
    next: Link<*mut Header<A>>,
    /// Reads the letter to the actor, or, where there is none any more, drops it.
    deliver_or_drop: DeliverFn<A>,
}

type DeliverFn<A> = unsafe fn(NonNull<Header<A>>, Option<(&mut A, &Context<'_, A>)>);

/// An envelope and what is in it.
#[repr(C)]
struct Envelope<A: Actor, C> {
    header: Header<A>,
    contents: C,
}

/// What a letter does when it is read.
pub(super) trait Payload<A: Actor>: Send + 'static {
    fn deliver(self, actor: &mut A, context: &Context<'_, A>);
}

struct WithTrace<C> {
    contents: C,
    context: Arc<TraceContext>,
}

impl<A: Actor, C: Payload<A>> Payload<A> for WithTrace<C> {
    fn deliver(self, actor: &mut A, context: &Context<'_, A>) {
        let Self {
            contents,
            context: sender,
        } = self;
        trace::enter(Some(Arc::new(sender.child())), || {
            contents.deliver(actor, context);
        });
    }
}

/// A letter that is in nobody's lane.
pub(super) struct BoxedEnvelope<A: Actor>(NonNull<Header<A>>);

// SAFETY: what is in it is `Send`, by `Payload`.
unsafe impl<A: Actor> Send for BoxedEnvelope<A> {}

impl<A: Actor> BoxedEnvelope<A> {
    pub(super) fn new<C: Payload<A>>(contents: C) -> Self {
        let envelope = Box::new(Envelope {
            header: Header {
                next: Link::new(null_mut()),
                deliver_or_drop: deliver_or_drop::<A, C>,
            },
            contents,
        });
        Self(NonNull::from(Box::leak(envelope)).cast())
    }

    /// The same, with the sender's trace, if it has one.
    #[inline(always)]
    pub(super) fn traced<C: Payload<A>>(contents: C) -> Self {
        if trace::is_used() {
            return Self::with_current_trace(contents);
        }
        Self::new(contents)
    }

    #[cold]
    #[inline(never)]
    fn with_current_trace<C: Payload<A>>(contents: C) -> Self {
        match trace::to_send() {
            None => Self::new(contents),
            Some(context) => Self::new(WithTrace { contents, context }),
        }
    }

    pub(super) fn deliver(self, actor: &mut A, context: &Context<'_, A>) {
        self.consume(Some((actor, context)));
    }

    fn consume(self, to: Option<(&mut A, &Context<'_, A>)>) {
        let header = std::mem::ManuallyDrop::new(self).0;
        // SAFETY: rule 3: it is ours, and `open` goes with the type that it was made with.
        unsafe { (header.as_ref().deliver_or_drop)(header, to) };
    }
}

impl<A: Actor> Drop for BoxedEnvelope<A> {
    fn drop(&mut self) {
        Self(self.0).consume(None);
    }
}

/// # Safety
/// The envelope is that of a `Envelope<A, C>`, which is given up.
unsafe fn deliver_or_drop<A: Actor, C: Payload<A>>(
    header: NonNull<Header<A>>,
    to: Option<(&mut A, &Context<'_, A>)>,
) {
    // SAFETY: as said; it was boxed.
    let envelope = unsafe { Box::from_raw(header.cast::<Envelope<A, C>>().as_ptr()) };
    if let Some((actor, context)) = to {
        envelope.contents.deliver(actor, context);
    }
}

pub(super) struct EnvelopeQueue<A: Actor> {
    newest: AtomicPtr<Header<A>>,
    oldest: Cell<*mut Header<A>>,
}

impl<A: Actor> EnvelopeQueue<A> {
    pub(super) fn new() -> Self {
        Self {
            newest: AtomicPtr::new(null_mut()),
            oldest: Cell::new(null_mut()),
        }
    }

    /// Rule 1.
    pub(super) fn push(&self, envelope: BoxedEnvelope<A>) {
        let envelope = std::mem::ManuallyDrop::new(envelope).0;
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            // SAFETY: rule 3: it is the sender's until the CAS succeeds.
            unsafe { envelope.as_ref() }.next.set(newest);
            match self.newest.compare_exchange_weak(
                newest,
                envelope.as_ptr(),
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
    pub(super) unsafe fn pop(&self) -> Option<BoxedEnvelope<A>> {
        if self.oldest.get().is_null() {
            self.refill();
        }
        let oldest = NonNull::new(self.oldest.get())?;
        // SAFETY: rules 2 and 3: what was taken is the reader's.
        self.oldest.set(unsafe { oldest.as_ref() }.next.get());
        Some(BoxedEnvelope(oldest))
    }

    /// The reader: whether there was none a moment ago.
    ///
    /// # Safety
    /// The caller is the reader (rule 2).
    pub(super) unsafe fn is_empty(&self) -> bool {
        self.oldest.get().is_null() && self.newest.load(Ordering::Relaxed).is_null()
    }

    fn refill(&self) {
        if self.newest.load(Ordering::Relaxed).is_null() {
            return;
        }
        let mut rest = self.newest.swap(null_mut(), Ordering::Acquire);
        let mut oldest = null_mut();
        while let Some(envelope) = NonNull::new(rest) {
            // SAFETY: rule 1: the chain is the reader's.
            rest = unsafe { envelope.as_ref() }.next.replace(oldest);
            oldest = envelope.as_ptr();
        }
        self.oldest.set(oldest);
    }
}

impl<A: Actor> Drop for EnvelopeQueue<A> {
    fn drop(&mut self) {
        // SAFETY: nobody else has it any more.
        while let Some(envelope) = unsafe { self.pop() } {
            drop(envelope);
        }
    }
}
