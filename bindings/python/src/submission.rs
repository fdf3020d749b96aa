//! What of a call is the same for sync code and asyncio until it was submitted.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use thalweg_capi::abi::{TW_NOTICES, TwHandle, TwSubmission};

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
        let mut submission = TwSubmission {
            token,
            client: self.client,
            method: self.method,
            flags: if self.on_notice.is_some() {
                TW_NOTICES
            } else {
                0
            },
            args: self.message.as_ptr(),
            args_size: self.message.len() as u64,
            deadline_ns: self.deadline_ns,
            call: 0,
        };
        let (mut accepted, mut error) = (0, errors::blank());
        // SAFETY: one submission, whose arguments are copied before the call returns; the rest is ours.
        let code = unsafe {
            (library.table.submit)(
                port,
                &raw mut submission,
                1,
                &raw mut accepted,
                &raw mut error,
            )
        };
        if accepted == 1 {
            Ok(submission.call)
        } else {
            Err(errors::from_table(py, code, &error))
        }
    }
}
