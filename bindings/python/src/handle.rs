//! A handle of the table as an object of Python owns it.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use thalweg_capi::abi::{TW_OK, TwHandle};

use crate::library::Library;
use crate::{errors, fork};

/// A handle, the library it is of and the process it was made in. 0 once it is closed or given away.
pub struct Owned {
    /// Whose.
    pub library: &'static Library,
    number: AtomicU64,
    epoch: u64,
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

    /// Of a stream: asks `port` for a completion with `token` as soon as it has something, or room. True: it has now.
    ///
    /// # Errors
    /// As [`Self::number`], and what the table says.
    pub fn arm(&self, py: Python<'_>, port: TwHandle, token: u64) -> PyResult<bool> {
        let stream = self.number(py)?;
        let (mut ready, mut error) = (0, errors::blank());
        let table = self.library.table;
        // SAFETY: the pointers are ours; a closed or stale handle is an error of the table.
        let code =
            unsafe { (table.stream_arm)(stream, port, token, &raw mut ready, &raw mut error) };
        if code == TW_OK {
            Ok(ready != 0)
        } else {
            Err(errors::from_table(py, code, &error))
        }
    }

    /// Of a stream: closes it, unless that was done before. It posts and does not wait.
    pub fn close_stream(&self) {
        if let Some(stream) = self.take() {
            // SAFETY: a handle is a number; a stale one is an error of the table.
            unsafe { (self.library.table.stream_close)(stream, std::ptr::null_mut()) };
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
