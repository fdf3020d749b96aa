//! The way into an instance's mailbox.
//!
//! A [`MailboxWriter`] is who puts calls into it one after the other: it schedules the instance once for up to [`CALLS_PER_TURN`] of them. Until it does, nobody
//! else would; so nothing that may wait comes between two of them, but the wait for room, before which it schedules.

use std::sync::Arc;

use super::{CALLS_PER_TURN, Instance};
use crate::call::{Call, CallRef, Destination, is_past};
use crate::code::{Code, Failure, append, no_memory};
use crate::completion::{CallBuffer, close_unread_streams};
use crate::notice::notice_interval;
use crate::port::Port;
use crate::service::Bounds;

/// What a submission asks for besides its call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmitOptions {
    /// The call says each interval of its method that it still runs ([`Kind::StillRunning`](crate::Kind::StillRunning)). It takes two places of the port,
    /// until it has ended and the last notice was reaped. `argument` where the method's policy file has no `notice_interval`.
    pub notices: bool,
    /// Where the service's bounds say so ([`Bounds::waits`]) the submission waits for room, until the call's deadline, and parks its thread or actor.
    /// Otherwise, and where they do not, it is `overloaded`.
    pub waits: bool,
}

/// Submissions of calls of one instance to one port, one after the other: the instance is scheduled once for up to 64 of them, and at the latest when this is
/// dropped. So do nothing between two of them that waits.
#[derive(Debug)]
pub struct Submitter<'a> {
    writer: MailboxWriter<'a>,
    port: &'a Arc<Port>,
}

impl<'a> Submitter<'a> {
    /// Of calls of `instance` whose completions go to `port`.
    pub fn new(instance: &'a Arc<Instance>, port: &'a Arc<Port>) -> Self {
        let writer = MailboxWriter::new(instance);
        Self { writer, port }
    }

    /// Submits a call whose completion has `token`. Returns the call's handle.
    ///
    /// # Errors
    /// `argument`: no such method, or it has no notices; `overloaded`; `closed`; `forked`; of one that waited for room also `interrupted`, `would_park` and
    /// `shut_down`. Nothing completes then.
    pub fn submit(
        &mut self,
        token: u64,
        method: u32,
        args: &[u8],
        deadline: u64,
        options: SubmitOptions,
    ) -> Result<u64, Failure> {
        let (instance, port) = (self.writer.instance, self.port);
        let method = instance.library_method(method)?;
        let interval = match options.notices {
            false => None,
            true => {
                instance.admit(method)?;
                Some(notice_interval(&instance.package.methods[method as usize])?)
            }
        };
        port.reserve_below(instance.package.bounds.bytes)?;
        if interval.is_some() {
            port.reserve().inspect_err(|_| port.unreserve())?;
        }
        let to = Destination::Port { port, token };
        let write = |mut buffer: Vec<u8>| {
            append(&mut buffer, &instance.convert_arguments(method, args)?)?;
            Ok(buffer)
        };
        let begin = |call: &CallRef| (call.handle(), interval.map(|_| call.clone()));
        let unsealed_entries = self
            .writer
            .start(method, write, to, deadline, options.waits, begin);
        let (handle, noticed) = unsealed_entries.inspect_err(|_| {
            port.unreserve();
            if interval.is_some() {
                port.unreserve();
            }
        })?;
        if let (Some(call), Some(interval)) = (noticed, interval) {
            call.send_notices(port, interval);
        }
        Ok(handle)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct MailboxWriter<'a> {
    instance: &'a Arc<Instance>,
    /// A turn that nobody else will ask for.
    needs_schedule: bool,
    /// Put since the last turn was asked for.
    push: usize,
}

impl<'a> MailboxWriter<'a> {
    pub(crate) fn new(instance: &'a Arc<Instance>) -> Self {
        Self {
            instance,
            needs_schedule: false,
            push: 0,
        }
    }

    fn schedule(&mut self) {
        self.push = 0;
        if std::mem::take(&mut self.needs_schedule) {
            #[cfg(test)]
            self.instance
                .schedules
                .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            self.instance.schedule();
        }
    }

    /// Makes a call whose arguments `write` puts into a buffer; `extract` is what the caller keeps of it. On an error nothing is completed.
    pub(crate) fn start<R>(
        &mut self,
        method: u32,
        write: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, Failure>,
        to: Destination<'_>,
        deadline: u64,
        waits: bool,
        extract: impl FnOnce(&CallRef) -> R,
    ) -> Result<R, Failure> {
        let (extracted, buffer) = self.instance.begin(method, write, to, deadline, extract)?;
        if let Some(buffer) = buffer
            && let Err((buffer, failure)) = self.push_or_wait(buffer, waits)
            && buffer.call().core.withdraw()
        {
            return Err(failure);
        }
        Ok(extracted)
    }

    /// Puts a call into the mailbox, or waits for room, where it `waits` and so do the bounds. A call that has ended meanwhile is as good as posted: its end
    /// was heard of.
    ///
    /// # Errors
    /// Why it could not, with the parcel.
    pub(crate) fn push_or_wait(
        &mut self,
        buffer: CallBuffer,
        waits: bool,
    ) -> Result<(), (CallBuffer, Failure)> {
        match self.push(buffer) {
            Ok(()) => Ok(()),
            Err((buffer, MailboxFull::Calls | MailboxFull::Bytes))
                if waits && self.instance.package.bounds.waits =>
            {
                self.schedule();
                let instance = self.instance;
                let waited = instance.mailbox_waiters.wait(buffer, |buffer| {
                    self.push(buffer).map_err(|(buffer, _)| buffer)
                });
                self.schedule();
                waited
            }
            Err((buffer, full)) => {
                let failure = full.failure(&self.instance.package.bounds);
                Err((buffer, failure))
            }
        }
    }

    /// Or it comes back, with why.
    #[inline]
    fn push(&mut self, buffer: CallBuffer) -> Result<(), (CallBuffer, MailboxFull)> {
        let instance = self.instance;
        self.needs_schedule |= instance
            .push(buffer)
            .or_else(|(buffer, failure)| match instance.sweep() {
                true => instance.push(buffer),
                false => Err((buffer, failure)),
            })?;
        self.push += 1;
        if self.push >= CALLS_PER_TURN {
            self.schedule();
        }
        Ok(())
    }
}

impl Drop for MailboxWriter<'_> {
    fn drop(&mut self) {
        self.schedule();
    }
}

/// Why an instance's mailbox takes no more.
#[derive(Clone, Copy)]
enum MailboxFull {
    Calls,
    Bytes,
    /// The list cannot grow.
    Memory(usize),
}

impl MailboxFull {
    #[cold]
    fn failure(self, bounds: &Bounds) -> Failure {
        let Bounds { calls, bytes, .. } = bounds;
        Code::Overloaded.because(match self {
            Self::Calls => format!("{calls} calls wait for the service"),
            Self::Bytes => {
                format!("more than {bytes} bytes of arguments would wait for the service")
            }
            Self::Memory(bytes) => return no_memory(bytes),
        })
    }
}

impl Instance {
    /// Submits a call whose completion goes to `port` with `token`, and never waits. Returns the call's handle. [`Submitter`] submits several, and in other ways.
    ///
    /// # Errors
    /// `argument`: no such method; `overloaded`; `closed`; `forked`. Nothing completes then.
    pub fn submit(
        self: &Arc<Self>,
        port: &Arc<Port>,
        token: u64,
        method: u32,
        args: &[u8],
        deadline: u64,
    ) -> Result<u64, Failure> {
        Submitter::new(self, port).submit(token, method, args, deadline, SubmitOptions::default())
    }

    /// Makes a call whose arguments `write` puts into a buffer, and which its caller waits for. On an error nothing is completed.
    pub(crate) fn send(
        self: &Arc<Self>,
        method: u32,
        write: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, Failure>,
        deadline: u64,
    ) -> Result<CallRef, Failure> {
        MailboxWriter::new(self).start(
            method,
            write,
            Destination::Waiter,
            deadline,
            true,
            CallRef::clone,
        )
    }

    /// A call and what is to be put into the mailbox of it; nothing where it is too late for that. `extract` is what the caller keeps of the call.
    #[inline]
    pub(crate) fn begin<R>(
        self: &Arc<Self>,
        method: u32,
        write: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, Failure>,
        to: Destination<'_>,
        deadline: u64,
        extract: impl FnOnce(&CallRef) -> R,
    ) -> Result<(R, Option<CallBuffer>), Failure> {
        self.admit(method)?;
        let options = &self.package.methods[method as usize].options;
        let deadline = options.limit_deadline(deadline);
        let (calls, mut outcome) = self.take_spare()?;
        match write(std::mem::take(&mut outcome.data)) {
            Ok(args) => outcome.data = args,
            Err(failure) => {
                self.recycle(calls, outcome);
                return Err(failure);
            }
        }
        let core = match calls.begin(method, to, deadline) {
            Ok(core) => core,
            Err((calls, failure)) => {
                self.recycle(calls, outcome);
                return Err(failure);
            }
        };
        let extracted = extract(&core);
        let buffer = CallBuffer::new(outcome, Call { core });
        if !is_past(deadline) {
            return Ok((extracted, Some(buffer)));
        }
        close_unread_streams(&buffer.data);
        let core = &buffer.call().core;
        core.stop(Code::TimedOut.because("the deadline had passed when the call was made"));
        Ok((extracted, None))
    }

    /// Whether a turn is to be scheduled now. Or it comes back, with why.
    fn push(&self, buffer: CallBuffer) -> Result<bool, (CallBuffer, MailboxFull)> {
        let Bounds { calls, bytes, .. } = self.package.bounds;
        let mut mailbox = thalweg_queue::quiet::lock(&self.mailbox.0);
        if mailbox.calls.len() >= calls as usize {
            return Err((buffer, MailboxFull::Calls));
        }
        if mailbox.calls.try_reserve(1).is_err() {
            let more = (mailbox.calls.len() + 1) * size_of::<CallBuffer>();
            return Err((buffer, MailboxFull::Memory(more)));
        }
        if !self.queued_bytes.try_add(&buffer.data, bytes) {
            return Err((buffer, MailboxFull::Bytes));
        }
        mailbox.calls.push_back(buffer);
        Ok(mailbox.claim_schedule())
    }
}
