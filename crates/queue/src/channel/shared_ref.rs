//! The handles' reference to the state of their channel.

use std::marker::PhantomData;
use std::ops::Deref;
use std::process::abort;
use std::ptr::NonNull;

use super::Core;
use crate::sync::Ordering;

/// More references than this can only come from leaked ones. The count must not overflow.
const MAX_REFERENCES: usize = usize::MAX / 2;

/// The state of a channel, which contains its core.
pub(crate) trait HasCore {
    fn core(&self) -> &Core;
}

/// A counted reference like `Arc`. The count is in the [`Core`], because the state has an alignment
/// of 128 bytes, and the counts of an `Arc` in front of it would take as many.
pub(crate) struct SharedRef<S: HasCore> {
    state: NonNull<S>,
    owned: PhantomData<S>,
}

// SAFETY: references share the state, and the last one drops it, on any thread.
unsafe impl<S: HasCore + Send + Sync> Send for SharedRef<S> {}
// SAFETY: as above.
unsafe impl<S: HasCore + Send + Sync> Sync for SharedRef<S> {}

impl<S: HasCore> SharedRef<S> {
    /// The first reference. The core counts it already.
    pub(crate) fn new(state: S) -> Self {
        Self {
            state: NonNull::from(Box::leak(Box::new(state))),
            owned: PhantomData,
        }
    }
}

impl<S: HasCore> Deref for SharedRef<S> {
    type Target = S;

    #[inline(always)]
    fn deref(&self) -> &S {
        // SAFETY: the state lives as long as a reference exists, and it is never borrowed mutably
        // before that.
        unsafe { self.state.as_ref() }
    }
}

impl<S: HasCore> Clone for SharedRef<S> {
    fn clone(&self) -> Self {
        if self.core().references.fetch_add(1, Ordering::Relaxed) > MAX_REFERENCES {
            abort();
        }
        Self {
            state: self.state,
            owned: PhantomData,
        }
    }
}

impl<S: HasCore> Drop for SharedRef<S> {
    #[inline]
    fn drop(&mut self) {
        // Release and Acquire: all uses of the state happen before it is dropped.
        if self.core().references.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: it came from a box, and this was the last reference.
            drop(unsafe { Box::from_raw(self.state.as_ptr()) });
        }
    }
}
