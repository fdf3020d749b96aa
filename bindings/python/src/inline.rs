//! Inline and brief methods. They run on this thread with the GIL held, because they do not wait.

use pyo3::prelude::*;
use thalweg_capi::abi::{TW_OK, TwError};

use crate::awaitable::{Polled, Step};
use crate::client::Caller;
use crate::completion::Completion;
use crate::errors;

/// Calls an inline method and returns its completion.
pub fn call(
    py: Python<'_>,
    caller: &Caller<'_>,
    method: u32,
    message: &[u8],
    deadline_ns: u64,
) -> PyResult<Completion> {
    let mut error = errors::blank();
    attempt(caller, method, message, deadline_ns, &mut error)
        .map_err(|code| errors::from_table(py, code, &error))
}

/// Calls a brief method and returns its completion. `None`: the call was not made, and must be
/// submitted.
pub fn call_if_idle(
    caller: &Caller<'_>,
    method: u32,
    message: &[u8],
    deadline_ns: u64,
) -> Option<Completion> {
    attempt(caller, method, message, deadline_ns, &mut errors::blank()).ok()
}

fn attempt(
    caller: &Caller<'_>,
    method: u32,
    message: &[u8],
    deadline_ns: u64,
    error: &mut TwError,
) -> Result<Completion, u32> {
    let mut ended = Completion::blank();
    // SAFETY: the function reads the message before it returns, and the other pointers are ours.
    let code = unsafe {
        (caller.library.table.call_inline)(
            caller.number,
            method,
            message.as_ptr(),
            message.len() as u64,
            deadline_ns,
            &raw mut ended,
            error,
        )
    };
    if code == TW_OK {
        Ok(Completion::new(caller.library, ended))
    } else {
        Err(code)
    }
}

/// An awaitable that has its value already.
pub struct Ready(pub Option<PyResult<Py<PyAny>>>);

impl Step for Ready {
    fn poll<'py>(&mut self, py: Python<'py>) -> PyResult<Polled<'py>> {
        match self.0.take() {
            Some(value) => Ok(Polled::Done(value?.into_bound(py))),
            None => Err(errors::argument(py, "this was awaited before")),
        }
    }
}
