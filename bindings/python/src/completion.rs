//! The end of one call, as it came out of a port.

use pyo3::prelude::*;
use thalweg_capi::abi::{
    TW_COMPLETION_HOST_CALL, TW_COMPLETION_NOTICE, TW_OK, TwCompletion, TwHandle,
};

use crate::errors;
use crate::library::Library;
use crate::message::Region;

/// A reaped completion; released when it is dropped, with the handles in it that were not taken.
pub struct Completion {
    library: &'static Library,
    raw: TwCompletion,
}

// SAFETY: a completion may be read and released on any thread; the table has no thread of its own for it.
unsafe impl Send for Completion {}

impl Completion {
    /// Takes over what `port_reap` wrote.
    pub fn new(library: &'static Library, raw: TwCompletion) -> Self {
        Self { library, raw }
    }

    /// A completion for `port_reap` to write.
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

    /// What the submission carried.
    pub fn token(&self) -> u64 {
        self.raw.token
    }

    /// The call's handle.
    pub fn call(&self) -> TwHandle {
        self.raw.call
    }

    /// Whether a service asks its host: the code is the import's number.
    pub fn is_host_call(&self) -> bool {
        self.raw.kind == TW_COMPLETION_HOST_CALL
    }

    /// It says only that the call still runs, so many seconds after it was submitted.
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

    /// The same call may succeed later.
    pub fn retryable(&self) -> bool {
        self.raw.retryable != 0
    }

    /// The message of result or error payload. Readers keep the completion alive.
    pub fn data(&self) -> Region {
        let size = usize::try_from(self.raw.data_size).unwrap_or(0);
        // SAFETY: `data` has `data_size` bytes until `release`, which `drop` calls.
        unsafe { Region::new(self.raw.data, size) }
    }

    /// What the library says about the ending; may be empty.
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

    /// Takes handle number `place` out; it is the caller's to close.
    pub fn take_handle(&mut self, py: Python<'_>, place: u32) -> PyResult<TwHandle> {
        let (mut handle, mut error) = (0, errors::blank());
        // SAFETY: the completion is not released; the rest is ours.
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
        // SAFETY: reaped, and released only here.
        unsafe { (self.library.table.release)(&raw mut self.raw) }
    }
}
