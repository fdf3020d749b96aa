//! The messages sent to one actor: an intrusive linked list, so that an empty queue takes two
//! words.
//!
//! 1. `newest` points to the envelope that was pushed last, or is null. A sender links its envelope
//!    to the one that it saw, and replaces the pointer by CAS (Release). The reader swaps the
//!    pointer for null (Acquire) and then owns the whole list, so there is no ABA problem.
//! 2. `oldest` belongs to the reader: the envelopes that it has taken and not yet handled. There is
//!    one reader at a time. Whatever makes another turn the reader also publishes what the previous
//!    reader wrote ([`super::mailbox_state`]).
//! 3. An envelope is owned by its sender, then by the queue, then by the reader that popped it. It
//!    is delivered or dropped exactly once.

use std::cell::Cell;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use super::{Actor, Context};
use crate::shim::{AtomicPtr, Cell as Link, Ordering};
use crate::task::blocks;
use crate::trace;
use crate::trace_context::TraceContext;

/// The common part of all envelopes for an `A`. It is the first field of each.
#[repr(C)]
pub(super) struct Header<A: Actor> {
    next: Link<*mut Header<A>>,
    /// Delivers the message to the actor. Without an actor, drops it.
    deliver_or_drop: DeliverFn<A>,
}

type DeliverFn<A> = unsafe fn(NonNull<Header<A>>, Option<(&mut A, &Context<'_, A>)>);

/// A queued message with its header.
#[repr(C)]
struct Envelope<A: Actor, C> {
    header: Header<A>,
    contents: C,
}

/// The content of an envelope: what happens when it is delivered.
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

/// An envelope that is in no queue.
pub(super) struct BoxedEnvelope<A: Actor>(NonNull<Header<A>>);

// SAFETY: the content is `Send`, since `Payload` requires it.
unsafe impl<A: Actor> Send for BoxedEnvelope<A> {}

impl<A: Actor> BoxedEnvelope<A> {
    pub(super) fn new<C: Payload<A>>(contents: C) -> Self {
        let envelope = blocks::allocate::<Envelope<A, C>>();
        // SAFETY: the memory is for this type.
        unsafe {
            envelope.write(Envelope {
                header: Header {
                    next: Link::new(null_mut()),
                    deliver_or_drop: deliver_or_drop::<A, C>,
                },
                contents,
            });
        }
        Self(envelope.cast())
    }

    /// As [`new`](Self::new), with the sender's trace context if it has one.
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
        match trace::outgoing() {
            None => Self::new(contents),
            Some(context) => Self::new(WithTrace { contents, context }),
        }
    }

    pub(super) fn deliver(self, actor: &mut A, context: &Context<'_, A>) {
        self.consume(Some((actor, context)));
    }

    fn consume(self, to: Option<(&mut A, &Context<'_, A>)>) {
        let header = std::mem::ManuallyDrop::new(self).0;
        // SAFETY: rule 3: this owns the envelope, and `deliver_or_drop` was created with its type.
        unsafe { (header.as_ref().deliver_or_drop)(header, to) };
    }
}

impl<A: Actor> Drop for BoxedEnvelope<A> {
    fn drop(&mut self) {
        Self(self.0).consume(None);
    }
}

/// # Safety
/// `header` belongs to an `Envelope<A, C>`, whose ownership passes to this function.
unsafe fn deliver_or_drop<A: Actor, C: Payload<A>>(
    header: NonNull<Header<A>>,
    to: Option<(&mut A, &Context<'_, A>)>,
) {
    let place = header.cast::<Envelope<A, C>>();
    // SAFETY: the caller's contract. `BoxedEnvelope::new` allocated it.
    let Envelope { contents, .. } = unsafe {
        let envelope = place.read();
        blocks::free(place);
        envelope
    };
    if let Some((actor, context)) = to {
        contents.deliver(actor, context);
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
            // SAFETY: rule 3: the sender owns it until the CAS succeeds.
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

    /// Removes the oldest envelope. `None`: the queue was empty a moment ago.
    ///
    /// # Safety
    /// The caller is the reader (rule 2).
    pub(super) unsafe fn pop(&self) -> Option<BoxedEnvelope<A>> {
        if self.oldest.get().is_null() {
            self.refill();
        }
        let oldest = NonNull::new(self.oldest.get())?;
        // SAFETY: rules 2 and 3: the reader owns the envelopes that it has taken.
        self.oldest.set(unsafe { oldest.as_ref() }.next.get());
        Some(BoxedEnvelope(oldest))
    }

    /// Whether the queue was empty a moment ago.
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
            // SAFETY: rule 1: the reader owns the list.
            rest = unsafe { envelope.as_ref() }.next.replace(oldest);
            oldest = envelope.as_ptr();
        }
        self.oldest.set(oldest);
    }
}

impl<A: Actor> Drop for EnvelopeQueue<A> {
    fn drop(&mut self) {
        // SAFETY: `&mut self` excludes other users.
        while let Some(envelope) = unsafe { self.pop() } {
            drop(envelope);
        }
    }
}
