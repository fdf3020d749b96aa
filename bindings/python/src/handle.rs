//! A handle of the table that a Python object owns.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use thalweg_capi::abi::{TW_OK, TwHandle};

use crate::library::Library;
use crate::{errors, fork};

/// A handle, its library, and the process that created it. 0 once it is closed or given away.
pub struct Owned {
    /// The library of the handle.
    pub library: &'static Library,
    number: AtomicU64,
    epoch: u64,
    what: &'static str,
}

impl Owned {
    /// Takes ownership of `number`. `what` names it in messages: "the stream".
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

    /// For a stream: asks `port` for a completion with `token` as soon as the stream has a record,
    /// or capacity. True if it has now.
    ///
    /// # Errors
    /// As [`Self::number`], and the errors of the table.
    pub fn arm(&self, py: Python<'_>, port: TwHandle, token: u64) -> PyResult<bool> {
        let stream = self.number(py)?;
        let (mut ready, mut error) = (0, errors::blank());
        let table = self.library.table;
        // SAFETY: the pointers are ours. The table reports a closed or stale handle as an error.
        let code =
            unsafe { (table.stream_arm)(stream, port, token, &raw mut ready, &raw mut error) };
        if code == TW_OK {
            Ok(ready != 0)
        } else {
            Err(errors::from_table(py, code, &error))
        }
    }

    /// For a stream: closes it, unless it was closed before. This posts a message and does not
    /// wait.
    pub fn close_stream(&self) {
        if let Some(stream) = self.take() {
            // SAFETY: a handle is a number, and the table reports a stale one as an error.
            unsafe { (self.library.table.stream_close)(stream, std::ptr::null_mut()) };
        }
    }

    /// Takes the number out, to close the handle or because it was given away. `None` if that was
    /// done before, or in another process: then there is nothing to close.
    pub fn take(&self) -> Option<TwHandle> {
        let number = self.number.swap(0, Ordering::Relaxed);
        (number != 0 && self.epoch == fork::epoch()).then_some(number)
    }

    /// Whether the handle was closed or given away.
    pub fn is_closed(&self) -> bool {
        self.number.load(Ordering::Relaxed) == 0
    }
}
