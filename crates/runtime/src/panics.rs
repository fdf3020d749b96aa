//! What an actor's panic leaves behind: message, place and backtrace, which only the process's panic hook gets to see.
//!
//! The hook that is set when the first runtime starts notes them down for the actor that panics, and asks the hook from before, by default the
//! standard library's, which prints. An application that wants silence sets its own before or after: what it sets after takes ours out, and
//! then a report has the message only.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Mutex, Once, PoisonError};

use thalweg_queue::Quiet;

use crate::worker;

/// What a panicking actor left. Clones are one and the same.
#[derive(Clone)]
pub struct Panic {
    inner: Arc<Inner>,
}

struct Inner {
    message: Option<String>,
    noted: Option<Noted>,
    payload: Mutex<Option<Box<dyn Any + Send>>>,
}

/// What the hook saw.
struct Noted {
    place: String,
    backtrace: Option<Backtrace>,
}

thread_local! {
    static NOTED: RefCell<Option<Noted>> = const { RefCell::new(None) };
}

/// Notes down what actors throw from now on. Once for the process.
pub(crate) fn set_hook() {
    static SET: Once = Once::new();
    SET.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if worker::current().is_some_and(|worker| worker.running().is_some()) {
                let place = info
                    .location()
                    .map_or_else(String::new, ToString::to_string);
                // Costs next to nothing unless RUST_BACKTRACE or RUST_LIB_BACKTRACE asks for it.
                let backtrace = Backtrace::capture();
                let backtrace =
                    (backtrace.status() == BacktraceStatus::Captured).then_some(backtrace);
                // A panic within the runtime's own borrow would find it taken, and is not noted.
                let _ = NOTED.try_with(|noted| {
                    if let Ok(mut noted) = noted.try_borrow_mut() {
                        *noted = Some(Noted { place, backtrace });
                    }
                });
            }
            before(info);
        }));
    });
}

impl Panic {
    /// Of what was just caught on this thread.
    pub(crate) fn caught(payload: Box<dyn Any + Send>) -> Self {
        // Another actor of this thread could panic before the note is taken.
        let _quiet = Quiet::begin();
        let text = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned());
        let message = text.or_else(|| payload.downcast_ref::<String>().cloned());
        let noted = NOTED.with(RefCell::take);
        Self {
            inner: Arc::new(Inner {
                message,
                noted,
                payload: Mutex::new(Some(payload)),
            }),
        }
    }

    /// The message, where the payload is one.
    pub fn message(&self) -> Option<&str> {
        self.inner.message.as_deref()
    }

    /// Where it was: file, line and column. `None`: it was thrown past the panic hook, as by [`std::panic::resume_unwind`].
    pub fn location(&self) -> Option<&str> {
        Some(&self.inner.noted.as_ref()?.place)
    }

    /// How it came there, where `RUST_BACKTRACE` asks for it.
    pub fn backtrace(&self) -> Option<&Backtrace> {
        self.inner.noted.as_ref()?.backtrace.as_ref()
    }

    /// The payload, as [`std::panic::resume_unwind`] takes it; once.
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
