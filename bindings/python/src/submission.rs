//! What of a call is the same for sync code and asyncio until it was submitted.

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
                // It waited for room, and was withdrawn.
                TW_INTERRUPTED => py.check_signals()?,
                code => return Err(refused(py, code, &error)),
            }
        }
    }

    /// The same, to be submitted with others.
    ///
    /// # Errors
    /// `TypeError` where what is to be told of notices cannot be called.
    pub fn keep(&self, token: u64) -> PyResult<Kept> {
        let TwSubmission {
            client,
            method,
            flags,
            deadline_ns,
            ..
        } = self.filled(token)?;
        Ok(Kept {
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

/// A call that waits to be submitted with others. None of them waits for room.
pub struct Kept {
    /// Of who waits for it.
    pub token: u64,
    client: TwHandle,
    method: u32,
    flags: u32,
    deadline_ns: u64,
    message: Vec<u8>,
}

impl Kept {
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

/// Submits all of `kept` on `port`, in order; of each its call's handle, or how it was refused. One that is refused stops no
/// other.
pub fn submit_all(
    py: Python<'_>,
    library: &'static Library,
    port: TwHandle,
    kept: &[Kept],
) -> Vec<PyResult<TwHandle>> {
    let mut filled: Vec<TwSubmission> = kept.iter().map(Kept::filled).collect();
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

/// Why a call was not accepted. A client of which nobody knows any more is one that was closed since its number was looked at, as by another
/// thread.
fn refused(py: Python<'_>, code: u32, error: &TwError) -> PyErr {
    match code {
        TW_STALE => errors::closed(py, "the client"),
        code => errors::from_table(py, code, error),
    }
}

/// One submission for the table; `Send`, so that it can be made with the GIL released.
struct Filled([TwSubmission; 1]);

// SAFETY: it is numbers and a pointer to the message, which its maker keeps borrowed; it belongs to no thread.
unsafe impl Send for Filled {}

impl Filled {
    /// The code, and how many were accepted.
    fn submit(&mut self, table: &TwTable, port: TwHandle, error: &mut TwError) -> (u32, u32) {
        submit(table, port, &mut self.0, error)
    }
}

/// The code, and how many of `batch` were accepted, from the first on.
fn submit(
    table: &TwTable,
    port: TwHandle,
    batch: &mut [TwSubmission],
    error: &mut TwError,
) -> (u32, u32) {
    let mut accepted = 0;
    // Calls of a loop that are unreaped at once are far below 2^32.
    let count = u32::try_from(batch.len()).unwrap_or(u32::MAX);
    // SAFETY: so many submissions, whose arguments are copied before the call returns; the rest is ours.
    let code = unsafe { (table.submit)(port, batch.as_mut_ptr(), count, &raw mut accepted, error) };
    (code, accepted)
}

fn bit(is: bool, bit: u32) -> u32 {
    if is { bit } else { 0 }
}
