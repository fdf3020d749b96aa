//! Which actor a thread is running, for the report of its overflow or stall.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;

/// What an actor is called in the report. Cut after some 400 bytes. Clones are one and the same: each turn of a behaviour actor has one.
#[derive(Clone, Debug)]
pub(crate) struct Name(Arc<str>);

impl Name {
    pub(crate) fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

thread_local! {
    // Neither lazily made nor dropped: one store sets it, and a signal handler may read it.
    static CURRENT: Cell<Option<NonNull<Name>>> = const { Cell::new(None) };
}

/// This thread runs the actor of this name from now on, or none that has one. One store.
///
/// # Safety
///
/// The name stays where it is, unchanged, until the same thread sets another or `None`.
#[inline]
pub(crate) unsafe fn set_current(name: Option<NonNull<Name>>) {
    CURRENT.set(name);
}

/// # Safety
///
/// Only in the handler of a signal that interrupts this thread, and as long as that runs: there the name is the one that the worker set.
pub(crate) unsafe fn current() -> Option<&'static Name> {
    // SAFETY: rule 4: who set it keeps it as long as it is set, and this thread does nothing else meanwhile.
    CURRENT.get().map(|name| unsafe { name.as_ref() })
}

/// A library that was loaded late may have to allocate a thread's variables when they are first touched, which a signal handler
/// must not.
pub(super) fn touch() {
    CURRENT.set(None);
}
