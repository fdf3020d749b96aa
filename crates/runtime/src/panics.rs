//! Panic reports: the message, location and backtrace of an actor's panic. Only the process's panic
//! hook receives the location and the backtrace.
//!
//! The first runtime installs a hook, which records them for the panicking actor and then calls the
//! previous hook (by default that of the standard library, which prints). An application that wants
//! no output can install its own hook before or after. A hook that it installs later replaces this
//! one; reports then contain only the message.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Mutex, Once, PoisonError};

use thalweg_queue::NoPreemptGuard;

/// A panic of an actor. Clones share one report.
#[derive(Clone)]
pub struct Panic {
    inner: Arc<Inner>,
}

struct Inner {
    message: Option<String>,
    record: Option<PanicRecord>,
    payload: Mutex<Option<Box<dyn Any + Send>>>,
}

/// The data that the hook recorded.
struct PanicRecord {
    location: String,
    backtrace: Option<Backtrace>,
}

thread_local! {
    static LAST_PANIC: RefCell<Option<PanicRecord>> = const { RefCell::new(None) };
}

/// Installs the hook, once per process. `runs_actor` returns whether the current thread runs an
/// actor.
pub(crate) fn set_hook(runs_actor: fn() -> bool) {
    static SET: Once = Once::new();
    SET.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if runs_actor() {
                let location = info
                    .location()
                    .map_or_else(String::new, ToString::to_string);
                // This costs almost nothing unless RUST_BACKTRACE or RUST_LIB_BACKTRACE is set.
                let backtrace = Backtrace::capture();
                let backtrace =
                    (backtrace.status() == BacktraceStatus::Captured).then_some(backtrace);
                // A panic during the runtime's own borrow of the cell finds it borrowed, and is not
                // recorded.
                let _ = LAST_PANIC.try_with(|record| {
                    if let Ok(mut record) = record.try_borrow_mut() {
                        *record = Some(PanicRecord {
                            location,
                            backtrace,
                        });
                    }
                });
            }
            before(info);
        }));
    });
}

impl Panic {
    /// Creates the report of the panic that was just caught on this thread.
    pub(crate) fn caught(payload: Box<dyn Any + Send>) -> Self {
        // Another actor of this thread could panic before the record is taken.
        let _no_preempt = NoPreemptGuard::enter();
        let text = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned());
        let message = text.or_else(|| payload.downcast_ref::<String>().cloned());
        let record = LAST_PANIC.with(RefCell::take);
        Self {
            inner: Arc::new(Inner {
                message,
                record,
                payload: Mutex::new(Some(payload)),
            }),
        }
    }

    /// Returns the message, if the payload is a string.
    pub fn message(&self) -> Option<&str> {
        self.inner.message.as_deref()
    }

    /// Returns the file, line and column of the panic. `None` if the panic did not pass through the
    /// hook, for example if it was raised by [`std::panic::resume_unwind`].
    pub fn location(&self) -> Option<&str> {
        Some(&self.inner.record.as_ref()?.location)
    }

    /// Returns the backtrace, if `RUST_BACKTRACE` or `RUST_LIB_BACKTRACE` enables it.
    pub fn backtrace(&self) -> Option<&Backtrace> {
        self.inner.record.as_ref()?.backtrace.as_ref()
    }

    /// Takes the payload, for example for [`std::panic::resume_unwind`]. Only the first call
    /// returns it.
    pub fn take_payload(&self) -> Option<Box<dyn Any + Send>> {
        let mut payload = self
            .inner
            .payload
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        payload.take()
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Panic")
            .field("message", &self.message())
            .field("location", &self.location())
            .finish()
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the actor panicked")?;
        if let Some(location) = self.location() {
            write!(f, " at {location}")?;
        }
        if let Some(message) = self.message() {
            write!(f, ": {message}")?;
        }
        Ok(())
    }
}
