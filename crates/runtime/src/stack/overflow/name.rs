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

/// Returns the name of the actor that this thread runs. The name exists until the thread does
/// anything else.
pub(crate) type RunningName = fn() -> Option<NonNull<Name>>;

thread_local! {
    // Neither lazily initialised nor dropped, because a signal handler may read it.
    static RUNNING_NAME: Cell<Option<RunningName>> = const { Cell::new(None) };
}

/// Sets how a signal handler of this thread finds the running actor's name. It is called at any
/// time, so it must be async-signal-safe.
pub(crate) fn set_running_name(running_name: Option<RunningName>) {
    RUNNING_NAME.set(running_name);
}

/// Returns the name of the running actor.
///
/// # Safety
///
/// Call it only in the handler of a signal that interrupts this thread, and use the result only
/// while the handler runs. Then the name is that of the actor that the worker runs.
pub(crate) unsafe fn current() -> Option<&'static Name> {
    let name = RUNNING_NAME.get()?()?;
    // SAFETY: the name exists, and this thread does nothing else meanwhile.
    Some(unsafe { name.as_ref() })
}

/// Touches the thread-local variable. In a library that was loaded late, the first access may
/// allocate, which a signal handler must not do.
pub(super) fn touch() {
    RUNNING_NAME.set(RUNNING_NAME.get());
}
