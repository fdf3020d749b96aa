//! A call before its submission, shared by sync and asyncio calls.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use thalweg_capi::abi::{
    TW_INTERRUPTED, TW_OK, TW_STALE, TW_SUBMIT_BLOCK, TW_SUBMIT_NOTICES, TwError, TwHandle,
    TwSubmission, TwTable,
};

use crate::errors;
use crate::library::Library;

/// One call.
pub struct Submission<'a, 'py> {
    /// The client.
    pub client: TwHandle,
    /// The number of the method.
    pub method: u32,
    /// The deadline of the call.
    pub deadline_ns: u64,
    /// Called with the seconds since the submission, at each notice interval of the method.
    pub on_notice: Option<&'a Bound<'py, PyAny>>,
    /// If there is no capacity, the thread waits for it with the GIL released.
    pub waits: bool,
    /// The message with the arguments.
    pub message: &'a [u8],
}

impl Submission<'_, '_> {
    /// Submits the call on `port` and returns its handle.
    ///
    /// # Errors
    /// The errors of the table; `TypeError` if `on_notice` is not callable.
    pub fn submit(
        &self,
        py: Python<'_>,
        library: &'static Library,
        port: TwHandle,
        token: u64,
    ) -> PyResult<TwHandle> {
        let mut filled = Filled([self.filled(token)?]);
        loop {
            let mut error = errors::blank();
            let mut submit = || filled.submit(library.table, port, &mut error);
            let (code, accepted) = if self.waits {
                py.detach(submit)
            } else {
                submit()
            };
            match code {
                _ if accepted == 1 => return Ok(filled.0[0].call),
                // The call was waiting for capacity and was withdrawn.
                TW_INTERRUPTED => py.check_signals()?,
                code => return Err(refused(py, code, &error)),
            }
        }
    }

    /// Prepares the call, to be submitted together with others.
    ///
    /// # Errors
    /// `TypeError` if `on_notice` is not callable.
    pub fn keep(&self, token: u64) -> PyResult<PreparedCall> {
        let TwSubmission {
            client,
            method,
            flags,
            deadline_ns,
            ..
        } = self.filled(token)?;
        Ok(PreparedCall {
            token,
            client,
            method,
            flags,
            deadline_ns,
            message: self.message.to_vec(),
        })
    }

    fn filled(&self, token: u64) -> PyResult<TwSubmission> {
        if self.on_notice.is_some_and(|told| !told.is_callable()) {
            return Err(PyTypeError::new_err("on_notice cannot be called"));
        }
        Ok(TwSubmission {
            token,
            client: self.client,
            method: self.method,
            flags: bit(self.on_notice.is_some(), TW_SUBMIT_NOTICES)
                | bit(self.waits, TW_SUBMIT_BLOCK),
            args: self.message.as_ptr(),
            args_size: self.message.len() as u64,
            deadline_ns: self.deadline_ns,
            call: 0,
        })
    }
}

/// A call that will be submitted together with others. Such a call never waits for capacity.
pub struct PreparedCall {
    /// The token of the waiting task.
    pub token: u64,
    client: TwHandle,
    method: u32,
    flags: u32,
    deadline_ns: u64,
    message: Vec<u8>,
}

impl PreparedCall {
    fn filled(&self) -> TwSubmission {
        TwSubmission {
            token: self.token,
            client: self.client,
            method: self.method,
            flags: self.flags,
            args: self.message.as_ptr(),
            args_size: self.message.len() as u64,
            deadline_ns: self.deadline_ns,
            call: 0,
        }
    }
}

/// Submits all of `kept` on `port`, in order. The result has the handle or the error of each call.
/// A refused call does not affect the others.
pub fn submit_all(
    py: Python<'_>,
    library: &'static Library,
    port: TwHandle,
    kept: &[PreparedCall],
) -> Vec<PyResult<TwHandle>> {
    let mut filled: Vec<TwSubmission> = kept.iter().map(PreparedCall::filled).collect();
    let mut done = Vec::with_capacity(kept.len());
    while done.len() < filled.len() {
        let left = &mut filled[done.len()..];
        let mut error = errors::blank();
        let (code, accepted) = submit(library.table, port, left, &mut error);
        done.extend(
            left[..accepted as usize]
                .iter()
                .map(|submission| Ok(submission.call)),
        );
        if code != TW_OK && done.len() < filled.len() {
            done.push(Err(refused(py, code, &error)));
        }
    }
    done
}

/// Why a call was not accepted. A client that the table does not know was closed since its handle
/// was read, for example by another thread.
fn refused(py: Python<'_>, code: u32, error: &TwError) -> PyErr {
    match code {
        TW_STALE => errors::closed(py, "the client"),
        code => errors::from_table(py, code, error),
    }
}

/// One submission for the table. It is `Send`, so that it can be submitted with the GIL released.
struct Filled([TwSubmission; 1]);

// SAFETY: it consists of numbers and a pointer to the message, which its creator keeps borrowed. It
// belongs to no thread.
unsafe impl Send for Filled {}

impl Filled {
    /// Returns the code and the number of accepted submissions.
    fn submit(&mut self, table: &TwTable, port: TwHandle, error: &mut TwError) -> (u32, u32) {
        submit(table, port, &mut self.0, error)
    }
}

/// Returns the code and the number of submissions of `batch` that were accepted, from the first on.
fn submit(
    table: &TwTable,
    port: TwHandle,
    batch: &mut [TwSubmission],
    error: &mut TwError,
) -> (u32, u32) {
    let mut accepted = 0;
    // The number of outstanding calls of a loop is far below 2^32.
    let count = u32::try_from(batch.len()).unwrap_or(u32::MAX);
    // SAFETY: the array has `count` submissions, whose arguments are copied before the call
    // returns. The other pointers are ours.
    let code = unsafe { (table.submit)(port, batch.as_mut_ptr(), count, &raw mut accepted, error) };
    (code, accepted)
}

fn bit(is: bool, bit: u32) -> u32 {
    if is { bit } else { 0 }
}
