//! The result of a function of the table: a `tw_code`, and a `tw_error`.

use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use thalweg_port::{Code, Failure};

use crate::abi::TwError;

/// Runs the body of a function of the table, or of another function that a library exports. Catches
/// an unwind, and fills in `error` unless it is null.
///
/// # Safety
/// `error` is null, or points to a `tw_error` that no other thread uses.
pub unsafe fn enter(error: *mut TwError, body: impl FnOnce() -> Result<(), Failure>) -> u32 {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        // Dropping the payload may panic.
        std::mem::forget(payload);
        Err(Code::GuestLost.because("a defect in Thalweg itself: it panicked in this call"))
    });
    let Err(failure) = result else {
        return Code::Ok as u32;
    };
    if !error.is_null() {
        // SAFETY: the caller guarantees that it is valid.
        unsafe { error.write(to_tw_error(&failure)) };
    }
    failure.code as u32
}

/// Truncates the message at a character boundary to fit.
pub fn to_tw_error(failure: &Failure) -> TwError {
    let mut error = TwError {
        code: failure.code as u32,
        retryable: failure.retryable().into(),
        message: [0; 248],
    };
    // The last byte is the terminator.
    let end = failure.message.floor_char_boundary(error.message.len() - 1);
    for (to, from) in error.message.iter_mut().zip(failure.message[..end].bytes()) {
        *to = from as c_char;
    }
    error
}

/// `TW_ARGUMENT`, with this message.
pub fn argument(message: impl Into<String>) -> Failure {
    Code::Argument.because(message)
}
