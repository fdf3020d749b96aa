//! The completion of one call, reaped from a port.

use pyo3::prelude::*;
use thalweg_capi::abi::{
    TW_COMPLETION_HOST_CALL, TW_COMPLETION_NOTICE, TW_OK, TwCompletion, TwHandle,
};

use crate::errors;
use crate::library::Library;
use crate::message::Region;

/// A reaped completion. Dropping it releases it, with the handles in it that were not taken.
pub struct Completion {
    library: &'static Library,
    raw: TwCompletion,
}

// SAFETY: a completion may be read and released on any thread.
unsafe impl Send for Completion {}

impl Completion {
    /// Takes ownership of a completion that `port_reap` wrote.
    pub fn new(library: &'static Library, raw: TwCompletion) -> Self {
        Self { library, raw }
    }

    /// An empty completion for `port_reap` to fill.
    pub fn blank() -> TwCompletion {
        TwCompletion {
            token: 0,
            call: 0,
            kind: 0,
            code: 0,
            data: std::ptr::null(),
            data_size: 0,
            message: std::ptr::null(),
            message_size: 0,
            retryable: 0,
            owner: 0,
        }
    }

    /// The token of the submission.
    pub fn token(&self) -> u64 {
        self.raw.token
    }

    /// The call's handle.
    pub fn call(&self) -> TwHandle {
        self.raw.call
    }

    /// Whether this is a call of a host import. The code is then the number of the import.
    pub fn is_host_call(&self) -> bool {
        self.raw.kind == TW_COMPLETION_HOST_CALL
    }

    /// For a progress notice: the seconds since the call was submitted.
    pub fn notice(&self) -> Option<f64> {
        if self.raw.kind != TW_COMPLETION_NOTICE {
            return None;
        }
        let elapsed = self.data().array(0).map_or(0, u64::from_le_bytes);
        #[expect(clippy::cast_precision_loss, reason = "seconds, to 15 digits")]
        let seconds = elapsed as f64 / 1e9;
        Some(seconds)
    }

    /// How the call ended.
    pub fn code(&self) -> u32 {
        self.raw.code
    }

    /// Whether the same call may succeed later.
    pub fn retryable(&self) -> bool {
        self.raw.retryable != 0
    }

    /// The message of the result or of the error payload. A reader must keep the completion alive.
    pub fn data(&self) -> Region {
        let size = usize::try_from(self.raw.data_size).unwrap_or(0);
        // SAFETY: `data` has `data_size` bytes until `release`, which `drop` calls.
        unsafe { Region::new(self.raw.data, size) }
    }

    /// The library's text about the outcome; may be empty.
    pub fn message(&self) -> String {
        if self.raw.message.is_null() {
            return String::new();
        }
        // SAFETY: `message` has `message_size` bytes until `release`.
        let bytes = unsafe {
            std::slice::from_raw_parts(
                self.raw.message.cast::<u8>(),
                self.raw.message_size as usize,
            )
        };
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Takes handle number `place` out. The caller must close it.
    pub fn take_handle(&mut self, py: Python<'_>, place: u32) -> PyResult<TwHandle> {
        let (mut handle, mut error) = (0, errors::blank());
        // SAFETY: the completion is not released yet, and the other pointers are ours.
        let code = unsafe {
            (self.library.table.take_handle)(
                &raw mut self.raw,
                place,
                &raw mut handle,
                &raw mut error,
            )
        };
        if code == TW_OK {
            Ok(handle)
        } else {
            Err(errors::from_table(py, code, &error))
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        // SAFETY: the completion was reaped, and is released only here.
        unsafe { (self.library.table.release)(&raw mut self.raw) }
    }
}
