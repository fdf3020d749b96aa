//! How a function of the table ends: a status, and a text for a person.

use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use thalweg_port::{Code, Failure};

use crate::abi::TwError;

/// Runs the body of an exported function: nothing unwinds out of it, and `error`, if there is one, is filled.
///
/// # Safety
/// `error` is null or points to a `tw_error` that nobody else uses meanwhile.
pub(crate) unsafe fn enter(error: *mut TwError, body: impl FnOnce() -> Result<(), Failure>) -> u32 {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        // What was thrown may itself panic when dropped.
        std::mem::forget(payload);
        Err(Code::GuestLost.because("a defect in Thalweg itself: it panicked in this call"))
    });
    let Err(failure) = result else {
        return Code::Ok as u32;
    };
    if !error.is_null() {
        // SAFETY: the caller's promise.
        unsafe { error.write(describe(&failure)) };
    }
    failure.code as u32
}

pub(crate) fn describe(failure: &Failure) -> TwError {
    let mut error = TwError {
        code: failure.code as u32,
        retryable: failure.retryable().into(),
        message: [0; 248],
    };
    // One byte is the terminator's.
    let end = failure.message.floor_char_boundary(error.message.len() - 1);
    for (to, from) in error.message.iter_mut().zip(failure.message[..end].bytes()) {
        *to = from as c_char;
    }
    error
}

pub(crate) fn argument(message: impl Into<String>) -> Failure {
    Code::Argument.because(message)
}

/// What an out pointer points to.
///
/// # Safety
/// `pointer` is null or valid for writes, and nobody else uses what it points to meanwhile.
pub(crate) unsafe fn out<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_mut() }.ok_or_else(|| argument(format!("{name} is a null pointer")))
}
