//! Submission of calls to an instance's mailbox.
//!
//! A [`MailboxWriter`] pushes calls and schedules the instance once for up to [`CALLS_PER_TURN`] of
//! them. No other thread schedules the instance for these calls. A writer must therefore not wait
//! between two calls, except for capacity in the mailbox, and it schedules the instance before that
//! wait.
//!
//! A writer that expects several calls pushes them together ([`PushBatch`]).

use std::mem::ManuallyDrop;
use std::sync::Arc;

use thalweg_runtime::log::{Level, Limit};

use super::push_batch::PushBatch;
use super::{CALLS_PER_TURN, Instance};
use crate::call::notice::notice_interval;
use crate::call::{BorrowedBytes, CallOwner, CallRef, Destination, is_past};
use crate::code::{Code, Failure, append};
use crate::completion::{CallBuffer, Completion};
use crate::message_handles::close_unread_streams;
use crate::package::Package;
use crate::port::Port;
use crate::spare::SpareCall;

/// Options of a submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmitOptions {
    /// Requests progress notices ([`Kind::StillRunning`](crate::Kind::StillRunning)) at the
    /// interval of the method. The call uses two slots of the port until it has ended and the last
    /// notice was reaped. The submission fails with `argument` if the method's policy file has no
    /// `notice_interval`.
    pub notices: bool,
    /// Waits for capacity in the mailbox until the call's deadline, and parks the thread or actor,
    /// if the service's bounds allow it
    /// ([`blocks_on_overflow`](crate::QueueLimits::blocks_on_overflow)). Otherwise a submission to a
    /// full mailbox fails with `overloaded`.
    pub waits: bool,
}

/// A call that was made.
pub(crate) enum Sent {
    /// It runs, or has ended.
    Call(CallRef),
    /// It was brief and has ended.
    Ended(Completion),
}

/// Submits calls of one instance to one port, one after the other. The instance is scheduled once
/// for up to 64 of them, and at the latest when this is dropped. Do not wait for anything between
/// two submissions.
#[derive(Debug)]
pub struct Submitter<'a> {
    writer: MailboxWriter<'a>,
    port: &'a Arc<Port>,
    /// Reserved slots of the port that no call uses yet.
    slots: u32,
}

impl<'a> Submitter<'a> {
    /// A submitter for calls of `instance` whose completions go to `port`.
    pub fn new(instance: &'a Arc<Instance>, port: &'a Arc<Port>) -> Self {
        Self::for_calls(instance, port, 1)
    }

    /// A submitter for `count` calls, which are submitted faster if they are expected. They reach the
    /// service at the latest when the last one was submitted, or when this is dropped.
    ///
    /// ```
    /// use thalweg_port::{Instance, Port, SubmitOptions, Submitter};
    ///
    /// fn submit_all(
    ///     instance: &std::sync::Arc<Instance>,
    ///     port: &std::sync::Arc<Port>,
    ///     calls: &[Vec<u8>],
    /// ) -> Result<(), thalweg_port::Failure> {
    ///     let mut submitter = Submitter::for_calls(instance, port, calls.len());
    ///     for (token, args) in (0..).zip(calls) {
    ///         submitter.submit(token, 0, args, u64::MAX, SubmitOptions::default())?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn for_calls(instance: &'a Arc<Instance>, port: &'a Arc<Port>, count: usize) -> Self {
        Self {
            writer: MailboxWriter::for_calls(instance, count),
            port,
            slots: 0,
        }
    }

    /// Submits a call whose completion has `token`. Returns the call's handle.
    ///
    /// # Errors
    /// `argument`: there is no such method, or it has no notices. `overloaded`, `closed`, `forked`.
    /// A submission that waits for capacity may also fail with `interrupted`, `would_park` or
    /// `shut_down`. A submission that fails produces no completion.
    pub fn submit(
        &mut self,
        token: u64,
        method: u32,
        args: &[u8],
        deadline: u64,
        options: SubmitOptions,
    ) -> Result<u64, Failure> {
        self.submit_parts(token, method, args, None, deadline, options)
    }

    /// Like [`submit`](Self::submit), for a message in two parts. The second part is not copied. Each
    /// string and each list of the message is in one part, and the header with the root is in the
    /// first one. The bytes of the second part are not counted against the limit of the mailbox.
    ///
    /// If the method is inline or the caller has another version of the package, both parts are
    /// copied.
    ///
    /// # Errors
    /// The errors of [`submit`](Self::submit).
    ///
    /// # Safety
    /// If the call is accepted, `tail` stays valid and unchanged until its completion was reaped, or
    /// [`Port::close`] has returned.
    pub unsafe fn submit_borrowed(
        &mut self,
        token: u64,
        method: u32,
        (head, tail): (&[u8], &[u8]),
        deadline: u64,
        options: SubmitOptions,
    ) -> Result<u64, Failure> {
        if !tail.is_empty() && self.writer.instance.reads_parts(method) {
            let borrowed = Some(BorrowedBytes::new(tail));
            return self.submit_parts(token, method, head, borrowed, deadline, options);
        }
        let mut args = Vec::new();
        append(&mut args, head)?;
        append(&mut args, tail)?;
        self.submit(token, method, &args, deadline, options)
    }

    #[inline]
    fn submit_parts(
        &mut self,
        token: u64,
        method: u32,
        args: &[u8],
        borrowed: Option<BorrowedBytes>,
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
        port.check_unreaped(instance.package.limits.max_queued_bytes)?;
        match self.slots {
            0 => self.slots = port.reserve_up_to(self.writer.wanted())?,
            _ => port.check_open()?,
        }
        if interval.is_some() {
            port.reserve()?;
        }
        let to = Destination::Port { port, token };
        let write =
            |buffer: &mut Vec<u8>| append(buffer, &instance.convert_arguments(method, args)?);
        let begin = |call: &CallRef| {
            if let Some(borrowed) = borrowed {
                call.set_borrowed(borrowed);
            }
            (call.handle(), interval.map(|_| call.clone()))
        };
        let unsealed_entries = self
            .writer
            .start(method, write, to, deadline, options.waits, begin);
        let (handle, noticed) = unsealed_entries.inspect_err(|_| {
            if interval.is_some() {
                port.unreserve();
            }
        })?;
        self.slots -= 1;
        if let (Some(call), Some(interval)) = (noticed, interval) {
            call.send_notices(port, interval);
        }
        Ok(handle)
    }
}

impl Drop for Submitter<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.slots > 0 {
            self.port.unreserve_all(self.slots);
        }
    }
}

/// Pushes calls into a mailbox; see the module documentation.
pub(crate) struct MailboxWriter<'a> {
    instance: &'a Arc<Instance>,
    /// A turn must be scheduled, and no other thread will do it.
    needs_schedule: bool,
    /// Number of calls that were pushed since the last turn was scheduled.
    unscheduled: usize,
    /// Present if several calls are expected. Not dropped: the writer empties it when it is dropped.
    batch: Option<ManuallyDrop<PushBatch>>,
}

impl std::fmt::Debug for MailboxWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MailboxWriter")
            .field("instance", self.instance)
            .field("unscheduled", &self.unscheduled)
            .finish_non_exhaustive()
    }
}

impl<'a> MailboxWriter<'a> {
    #[inline(always)]
    pub(crate) fn new(instance: &'a Arc<Instance>) -> Self {
        Self {
            instance,
            needs_schedule: false,
            unscheduled: 0,
            batch: None,
        }
    }

    /// A writer for `count` calls.
    #[inline(always)]
    pub(crate) fn for_calls(instance: &'a Arc<Instance>, count: usize) -> Self {
        Self {
            batch: (count > 1).then(|| ManuallyDrop::new(PushBatch::new(count))),
            ..Self::new(instance)
        }
    }

    /// How many calls are pushed together.
    #[inline(always)]
    fn wanted(&self) -> u32 {
        self.batch.as_ref().map_or(1, |batch| batch.wanted())
    }

    #[inline]
    fn schedule(&mut self) {
        self.unscheduled = 0;
        if let Some(batch) = &mut self.batch {
            self.needs_schedule |= batch.push(self.instance);
        }
        if std::mem::take(&mut self.needs_schedule) {
            self.instance.schedule_submitted();
        }
    }

    /// Makes a call whose arguments `write` puts into a buffer. `extract` returns what the caller
    /// keeps of the call. A call that fails here has no completion.
    #[inline(always)]
    pub(crate) fn start<R>(
        &mut self,
        method: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Failure>,
        to: Destination<'_>,
        deadline: u64,
        waits: bool,
        extract: impl FnOnce(&CallRef) -> R,
    ) -> Result<R, Failure> {
        let instance = self.instance;
        let (extracted, buffer) = instance.begin(method, write, to, deadline, extract)?;
        if let Some(buffer) = buffer
            && let Err((buffer, failure)) = self.push_or_wait(buffer, waits)
            && buffer.call().core.withdraw()
        {
            return Err(failure);
        }
        Ok(extracted)
    }

    /// Pushes a call into the mailbox, or waits for capacity if both `waits` and the bounds allow
    /// it. A call that has already ended counts as pushed, because its outcome was delivered.
    ///
    /// # Errors
    /// The reason, with the buffer.
    #[inline]
    pub(crate) fn push_or_wait(
        &mut self,
        buffer: CallBuffer,
        waits: bool,
    ) -> Result<(), (CallBuffer, Failure)> {
        match self.push(buffer) {
            Ok(()) => Ok(()),
            Err((buffer, full)) => self.wait_for_capacity(buffer, full, waits),
        }
    }

    #[cold]
    fn wait_for_capacity(
        &mut self,
        buffer: CallBuffer,
        full: MailboxFull,
        waits: bool,
    ) -> Result<(), (CallBuffer, Failure)> {
        let instance = self.instance;
        let may_wait = waits && instance.package.limits.blocks_on_overflow;
        if !may_wait || matches!(full, MailboxFull::Calls(0)) {
            return Err((buffer, full.failure(instance.package)));
        }
        self.schedule();
        let waited = instance.mailbox_waiters.wait(buffer, |buffer| {
            self.push(buffer).map_err(|(buffer, _)| buffer)
        });
        self.schedule();
        waited
    }

    /// Returns the buffer and the reason if the mailbox is full.
    #[inline(always)]
    fn push(&mut self, buffer: CallBuffer) -> Result<(), (CallBuffer, MailboxFull)> {
        self.needs_schedule |= match self.try_push(buffer) {
            Ok(must_schedule) => must_schedule,
            Err(refused) => self.sweep_and_push(refused)?,
        };
        self.unscheduled += 1;
        if self.unscheduled >= CALLS_PER_TURN {
            self.schedule();
        }
        Ok(())
    }

    /// Returns whether the caller must schedule a turn, or the buffer and the reason if the mailbox
    /// is full.
    #[inline(always)]
    fn try_push(&mut self, buffer: CallBuffer) -> Result<bool, (CallBuffer, MailboxFull)> {
        match &mut self.batch {
            None => self.instance.push(buffer),
            Some(batch) => batch.add(self.instance, buffer),
        }
    }

    #[cold]
    fn sweep_and_push(
        &mut self,
        (buffer, full): (CallBuffer, MailboxFull),
    ) -> Result<bool, (CallBuffer, MailboxFull)> {
        // Calls that were not pushed may have ended.
        self.schedule();
        match self.instance.sweep() {
            true => self.try_push(buffer),
            false => Err((buffer, full)),
        }
    }
}

impl Drop for MailboxWriter<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.schedule();
        if let Some(batch) = &mut self.batch {
            batch.give_back(self.instance);
        }
    }
}

/// Why an instance's mailbox is full.
#[derive(Clone, Copy)]
pub(super) enum MailboxFull {
    /// It has this many calls, its maximum. 0: it accepts no call.
    Calls(u32),
    Bytes,
}

impl MailboxFull {
    #[cold]
    fn failure(self, package: &Package) -> Failure {
        static REFUSED: Limit = Limit::new();
        let max_queued_bytes = package.limits.max_queued_bytes;
        let failure = match self {
            Self::Calls(0) => return Code::Closed.because("the client accepts no more calls"),
            Self::Calls(calls) => {
                Code::Overloaded.because(format!("{calls} calls wait for the service"))
            }
            Self::Bytes => Code::Overloaded.because(format!(
                "more than {max_queued_bytes} bytes of arguments would wait for the service"
            )),
        };
        REFUSED.write(
            Level::Warning,
            "service",
            format_args!("{} refuses a call: {}", package.name, failure.message),
        );
        failure
    }
}

impl Instance {
    /// Submits a call whose completion goes to `port` with `token`. Never waits. Returns the call's
    /// handle. Use [`Submitter`] for several calls or for options.
    ///
    /// # Errors
    /// `argument`: there is no such method. `overloaded`, `closed`, `forked`. A submission that
    /// fails produces no completion.
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

    /// Whether the service can read the arguments of this method in two parts.
    fn reads_parts(&self, method: u32) -> bool {
        let method = self.package.methods.get(method as usize);
        let is_inline = method.is_none_or(|method| method.options.is_inline);
        self.versions.get().is_none() && !is_inline
    }

    /// Makes a call whose caller waits for it. `write` puts the arguments into a buffer. A call that
    /// fails here has no completion.
    pub(crate) fn send(
        self: &Arc<Self>,
        method: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Failure>,
        deadline: u64,
    ) -> Result<Sent, Failure> {
        if let Some(turn) = self.claim_turn(method) {
            return turn.call(method, write, deadline).map(Sent::Ended);
        }
        let to = Destination::Waiter;
        let (call, buffer) = self.begin(method, write, to, deadline, CallRef::clone)?;
        if let Some(buffer) = buffer {
            match self.push(buffer) {
                Ok(true) => self.schedule_submitted(),
                Ok(false) => {}
                Err(refused) => self.push_refused(refused)?,
            }
        }
        Ok(Sent::Call(call))
    }

    /// Pushes a call that did not find capacity, which may wait for it.
    ///
    /// # Errors
    /// There is no capacity. The call did not begin.
    #[cold]
    fn push_refused(
        self: &Arc<Self>,
        (buffer, full): (CallBuffer, MailboxFull),
    ) -> Result<(), Failure> {
        let mut writer = MailboxWriter::new(self);
        let pushed = match writer.sweep_and_push((buffer, full)) {
            Ok(must_schedule) => {
                writer.needs_schedule = must_schedule;
                Ok(())
            }
            Err((buffer, full)) => writer.wait_for_capacity(buffer, full, true),
        };
        match pushed {
            Err((buffer, failure)) if buffer.call().core.withdraw() => Err(failure),
            _ => Ok(()),
        }
    }

    /// Schedules a turn for calls that were pushed.
    #[inline(always)]
    fn schedule_submitted(self: &Arc<Self>) {
        #[cfg(test)]
        self.schedules
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.schedule();
    }

    /// Begins a call. Returns the value of `extract` and the buffer to push into the mailbox. There
    /// is no buffer if the deadline has already passed.
    #[inline(always)]
    pub(crate) fn begin<R>(
        self: &Arc<Self>,
        method: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Failure>,
        to: Destination<'_>,
        deadline: u64,
        extract: impl FnOnce(&CallRef) -> R,
    ) -> Result<(R, Option<CallBuffer>), Failure> {
        self.begin_in(
            self.take_spare(to.spare_key())?,
            method,
            write,
            to,
            deadline,
            extract,
        )
    }

    /// The same in memory that the caller has.
    #[inline(always)]
    pub(super) fn begin_in<R>(
        self: &Arc<Self>,
        mut spare: SpareCall,
        method: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Failure>,
        to: Destination<'_>,
        deadline: u64,
        extract: impl FnOnce(&CallRef) -> R,
    ) -> Result<(R, Option<CallBuffer>), Failure> {
        if let Err(failure) = self.admit(method) {
            self.recycle(spare);
            return Err(failure);
        }
        let options = &self.package.methods[method as usize].options;
        let deadline = options.limit_deadline(deadline);
        let begun = write(&mut spare.data).and_then(|()| spare.core().begin(method, to, deadline));
        if let Err(failure) = begun {
            self.recycle(spare);
            return Err(failure);
        }
        let buffer = spare.into_buffer();
        let extracted = extract(&buffer.call().core);
        if !is_past(deadline) {
            return Ok((extracted, Some(buffer)));
        }
        close_unread_streams(&buffer.data);
        let core = &buffer.call().core;
        core.stop(Code::TimedOut.because("the deadline had passed when the call was made"));
        Ok((extracted, None))
    }

    /// Returns whether the caller must schedule a turn, or the buffer and the reason if the mailbox
    /// is full.
    #[inline(always)]
    fn push(self: &Arc<Self>, buffer: CallBuffer) -> Result<bool, (CallBuffer, MailboxFull)> {
        if let Err(capacity) = self.mailbox.reserve(1) {
            return Err((buffer, MailboxFull::Calls(capacity)));
        }
        if let Err(full) = self.add_bytes(&buffer) {
            self.free_places(1);
            return Err((buffer, full));
        }
        Ok(self.mailbox.push(buffer))
    }

    /// Counts the arguments of a call that has a place in the mailbox.
    #[inline(always)]
    pub(super) fn add_bytes(&self, buffer: &CallBuffer) -> Result<(), MailboxFull> {
        let max_queued_bytes = self.package.limits.max_queued_bytes;
        match self.queued_bytes.try_add(&buffer.data, max_queued_bytes) {
            true => Ok(()),
            false => Err(MailboxFull::Bytes),
        }
    }

    /// Frees places that no call uses.
    #[cold]
    pub(super) fn free_places(self: &Arc<Self>, places: u32) {
        self.mailbox.free(places as usize);
        if self.mailbox.is_finished() {
            // A port may wait for the call before it ends.
            self.schedule_if_idle();
        }
    }
}
