//! The name of the actor that a thread is running, for reports of overflows and stalls.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;

/// The name of an actor. Reports cut it after about 400 bytes. Clones share one string: each turn
/// of a behaviour actor has a clone.
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
    // Neither lazily initialised nor dropped: one store sets it, and a signal handler may read it.
    static CURRENT: Cell<Option<NonNull<Name>>> = const { Cell::new(None) };
}

/// Sets the name of the actor that this thread runs, or `None`. Costs one store.
///
/// # Safety
///
/// The name is neither moved nor changed until the same thread sets another name or `None`.
#[inline]
pub(crate) unsafe fn set_current(name: Option<NonNull<Name>>) {
    CURRENT.set(name);
}

/// Returns the name of the running actor.
///
/// # Safety
///
/// Call it only in the handler of a signal that interrupts this thread, and use the result only
/// while the handler runs. Then the name is the one that the worker set.
pub(crate) unsafe fn current() -> Option<&'static Name> {
    // SAFETY: rule 4. The code that set the name keeps it until it is cleared, and this thread does
    // nothing else meanwhile.
    CURRENT.get().map(|name| unsafe { name.as_ref() })
}

/// Touches the thread-local variable. In a library that was loaded late, the first access may
/// allocate, which a signal handler must not do.
pub(super) fn touch() {
    CURRENT.set(None);
}
