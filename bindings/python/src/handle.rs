//! A handle of the table as an object of Python owns it.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use thalweg_capi::abi::TwHandle;

use crate::library::Library;
use crate::{errors, fork};

/// A handle, the library it is of and the process it was made in. 0 once it is closed or given away.
pub struct Owned {
    /// Whose.
    pub library: &'static Library,
    number: AtomicU64,
    epoch: u32,
    what: &'static str,
}

impl Owned {
    /// Takes over `number`; `what` names it in messages: "the stream".
    pub fn new(library: &'static Library, number: TwHandle, what: &'static str) -> Self {
        Self {
            library,
            number: AtomicU64::new(number),
            epoch: fork::epoch(),
            what,
        }
    }

    /// The number, for a call of the table.
    ///
    /// # Errors
    /// `thalweg.Closed`, `thalweg.Forked`.
    pub fn number(&self, py: Python<'_>) -> PyResult<TwHandle> {
        match self.number.load(Ordering::Relaxed) {
            _ if self.epoch != fork::epoch() => Err(errors::forked(py, self.what)),
            0 => Err(errors::closed(py, self.what)),
            number => Ok(number),
        }
    }

    /// Takes the number out, to close it or because it was given away. None where that was done before, or in
    /// another process: then there is nothing to close.
    pub fn take(&self) -> Option<TwHandle> {
        let number = self.number.swap(0, Ordering::Relaxed);
        (number != 0 && self.epoch == fork::epoch()).then_some(number)
    }

    /// Closed or given away.
    pub fn is_closed(&self) -> bool {
        self.number.load(Ordering::Relaxed) == 0
    }
}
