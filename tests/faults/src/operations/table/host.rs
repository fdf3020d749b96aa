//! The objects of a host: a client with its port, a completion, the end of a stream. Each is closed
//! or released once.

use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use thalweg::Code;
use thalweg_capi::abi::{
    TW_BATCH_END, TW_FOREVER, TW_OK, TW_STALE, TwBatch, TwCompletion, TwError, TwHandle,
    TwSubmission, TwTable,
};

use super::super::Problem;
use crate::service::LIBRARY;

pub(super) fn table() -> &'static TwTable {
    LIBRARY.table()
}

const NO_ERROR: TwError = TwError {
    code: 0,
    retryable: 0,
    message: [0; 248],
};

pub(super) fn problem(code: u32, retryable: bool, text: String) -> Problem {
    let name = Code::from_number(code).map_or("unknown", Code::name);
    Problem {
        code: name.to_owned(),
        retryable,
        text,
    }
}

/// Calls a function of the table that returns a status and fills in an error.
pub(super) fn ask(function: impl FnOnce(*mut TwError) -> u32) -> Result<(), Problem> {
    let mut error = NO_ERROR;
    let code = function(&raw mut error);
    if code == TW_OK {
        return Ok(());
    }
    let text = error.message.iter().take_while(|c| **c != 0);
    let text = text.map(|c| *c as u8).collect();
    let text = String::from_utf8(text).map_err(Problem::violation)?;
    if error.code != code {
        return Err(Problem::violation(format!(
            "the status is {code}, the error's code {}: {text}",
            error.code
        )));
    }
    Err(problem(code, error.retryable != 0, text))
}

/// A client and a port.
pub(super) struct Host {
    pub(super) client: TwHandle,
    pub(super) port: TwHandle,
}

impl Host {
    pub(super) fn open(capacity: u32) -> Result<Self, Problem> {
        let mut host = Self { client: 0, port: 0 };
        // SAFETY: the pointers and the error refer to local variables. The same is true for every
        // call below.
        unsafe {
            ask(|error| (table().client_open)(&raw mut host.client, error))?;
            ask(|error| (table().port_open)(capacity, &raw mut host.port, error))?;
        }
        Ok(host)
    }

    /// Closes both. This must work once in any state.
    pub(super) fn close(&mut self) -> Result<(), Problem> {
        let (client, port) = (self.client, self.port);
        (self.client, self.port) = (0, 0);
        // SAFETY: see `open`.
        unsafe {
            ask(|error| (table().client_close)(client, error))?;
            ask(|error| (table().port_close)(port, error))?;
            for closed in [
                (table().client_close)(client, null_mut()),
                (table().port_close)(port, null_mut()),
            ] {
                if closed != TW_STALE {
                    return Err(Problem::violation(format!("closed twice: {closed}")));
                }
            }
        }
        Ok(())
    }

    pub(super) fn submit(&self, method: u32, args: &[u8], deadline_ns: u64) -> Result<(), Problem> {
        let accepted = self.submit_many(method, args, deadline_ns, 1)?;
        match accepted {
            1 => Ok(()),
            other => Err(Problem::violation(format!(
                "{other} were accepted, without an error"
            ))),
        }
    }

    /// Submits several calls. Returns how many were accepted, or an error if none was.
    pub(super) fn submit_many(
        &self,
        method: u32,
        args: &[u8],
        deadline_ns: u64,
        many: usize,
    ) -> Result<u32, Problem> {
        let one = |token| TwSubmission {
            token,
            client: self.client,
            method,
            flags: 0,
            args: args.as_ptr(),
            args_size: args.len() as u64,
            deadline_ns,
            call: 0,
        };
        let mut submissions: [TwSubmission; MANY] = std::array::from_fn(|i| one(i as u64));
        let mut accepted = 0;
        // SAFETY: see `open`.
        let asked = ask(|error| unsafe {
            (table().submit)(
                self.port,
                submissions.as_mut_ptr(),
                many.min(MANY) as u32,
                &raw mut accepted,
                error,
            )
        });
        match asked {
            Err(why) if accepted == 0 => Err(why),
            _ => Ok(accepted),
        }
    }

    /// The next completion.
    pub(super) fn next(&self) -> Result<Answer, Problem> {
        let mut place = MaybeUninit::<TwCompletion>::uninit();
        let mut count = 0;
        loop {
            // SAFETY: see `open`. The completion is valid if the count is 1.
            unsafe {
                ask(|error| (table().port_wait)(self.port, TW_FOREVER, error))?;
                ask(|error| {
                    (table().port_reap)(self.port, place.as_mut_ptr(), 1, &raw mut count, error)
                })?;
                if count == 1 {
                    return Ok(Answer(place.assume_init()));
                }
            }
        }
    }

    pub(super) fn call(
        &self,
        method: u32,
        args: &[u8],
        deadline_ns: u64,
    ) -> Result<Answer, Problem> {
        self.submit(method, args, deadline_ns)?;
        let answer = self.next()?;
        answer.check()?;
        Ok(answer)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: see `open`. A closed handle is stale, which is an error.
        unsafe {
            (table().client_close)(self.client, null_mut());
            (table().port_close)(self.port, null_mut());
        }
    }
}

/// The number of calls in a batch.
pub(super) const MANY: usize = 64;

/// A completion, until it is released.
pub(super) struct Answer(TwCompletion);

impl Answer {
    pub(super) fn check(&self) -> Result<(), Problem> {
        if self.0.code == TW_OK {
            return Ok(());
        }
        let text = match self.0.message.is_null() {
            true => String::new(),
            // SAFETY: the completion owns the message until it is released.
            false => unsafe {
                let size = self.0.message_size as usize;
                let bytes = std::slice::from_raw_parts(self.0.message.cast::<u8>(), size);
                String::from_utf8_lossy(bytes).into_owned()
            },
        };
        Err(problem(self.0.code, self.0.retryable != 0, text))
    }

    pub(super) fn data(&self) -> &[u8] {
        if self.0.data.is_null() {
            return &[];
        }
        // SAFETY: the completion owns the data until it is released.
        unsafe { std::slice::from_raw_parts(self.0.data, self.0.data_size as usize) }
    }

    pub(super) fn stream(&mut self) -> Result<Stream, Problem> {
        let mut stream = 0;
        // SAFETY: see `Host::open`.
        ask(|error| unsafe { (table().take_handle)(&raw mut self.0, 0, &raw mut stream, error) })?;
        Ok(Stream(stream))
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // SAFETY: it is released once.
        unsafe { (table().release)(&raw mut self.0) };
    }
}

/// One end of a stream, until it is closed.
pub(super) struct Stream(pub(super) TwHandle);

impl Stream {
    /// Reads to the end. Returns the number of records.
    pub(super) fn count(&self) -> Result<u64, Problem> {
        let mut count = 0;
        loop {
            let mut batch = NO_BATCH;
            // SAFETY: see `Host::open`.
            let acquired = ask(|error| unsafe {
                (table().stream_acquire)(self.0, 64, TW_FOREVER, &raw mut batch, error)
            });
            match acquired {
                Ok(()) => {
                    count += u64::from(batch.count) + batch.lost_before;
                    // SAFETY: see `Host::open`.
                    ask(|error| unsafe { (table().stream_release)(self.0, batch.count, error) })?;
                }
                Err(why) if why.code == "closed" && batch.flags & TW_BATCH_END != 0 => {
                    return Ok(count + batch.lost_before);
                }
                Err(why) => return Err(why),
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: it is closed once.
        unsafe { (table().stream_close)(self.0, null_mut()) };
    }
}

const NO_BATCH: TwBatch = TwBatch {
    base: null(),
    slots: null(),
    count: 0,
    stride: 0,
    first_seq: 0,
    lost_before: 0,
    gap_reason: 0,
    flags: 0,
    size: 0,
};
