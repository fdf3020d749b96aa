//! What of a call is the same for sync code and asyncio until it was submitted.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use thalweg_capi::abi::{
    TW_INTERRUPTED, TW_NOTICES, TW_WAIT, TwError, TwHandle, TwSubmission, TwTable,
};

use crate::errors;
use crate::library::Library;

/// One call.
pub struct Submission<'a, 'py> {
    /// Of which client.
    pub client: TwHandle,
    /// Its number.
    pub method: u32,
    /// By then it has ended.
    pub deadline_ns: u64,
    /// What is told the seconds since, each interval of the method that it still runs.
    pub on_notice: Option<&'a Bound<'py, PyAny>>,
    /// Where there is no room, the thread waits for some, with the GIL released.
    pub waits: bool,
    /// The arguments' message.
    pub message: &'a [u8],
}

impl Submission<'_, '_> {
    /// Submits it on `port`; the call's handle.
    ///
    /// # Errors
    /// What the table refuses with; `TypeError` where what is to be told of notices cannot be called.
    pub fn submit(
        &self,
        py: Python<'_>,
        library: &'static Library,
        port: TwHandle,
        token: u64,
    ) -> PyResult<TwHandle> {
        if self.on_notice.is_some_and(|told| !told.is_callable()) {
            return Err(PyTypeError::new_err("on_notice cannot be called"));
        }
        let mut filled = Filled(TwSubmission {
            token,
            client: self.client,
            method: self.method,
            flags: bit(self.on_notice.is_some(), TW_NOTICES) | bit(self.waits, TW_WAIT),
            args: self.message.as_ptr(),
            args_size: self.message.len() as u64,
            deadline_ns: self.deadline_ns,
            call: 0,
        });
        loop {
            let mut error = errors::blank();
            let mut submit = || filled.submit(library.table, port, &mut error);
            let (code, accepted) = if self.waits {
                py.detach(submit)
            } else {
                submit()
            };
            match code {
                _ if accepted == 1 => return Ok(filled.0.call),
                // It waited for room, and was withdrawn.
                TW_INTERRUPTED => py.check_signals()?,
                code => return Err(errors::from_table(py, code, &error)),
            }
        }
    }
}

/// One submission for the table; `Send`, so that it can be made with the GIL released.
struct Filled(TwSubmission);

// SAFETY: it is numbers and a pointer to the message, which its maker keeps borrowed; it belongs to no thread.
unsafe impl Send for Filled {}

impl Filled {
    /// The code, and how many were accepted.
    fn submit(&mut self, table: &TwTable, port: TwHandle, error: &mut TwError) -> (u32, u32) {
        let mut accepted = 0;
        // SAFETY: one submission, whose arguments are copied before the call returns; the rest is ours.
        let code = unsafe { (table.submit)(port, &raw mut self.0, 1, &raw mut accepted, error) };
        (code, accepted)
    }
}

fn bit(is: bool, bit: u32) -> u32 {
    if is { bit } else { 0 }
}
