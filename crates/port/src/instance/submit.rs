//! The way into an instance's mailbox.
//!
//! A [`Burst`] is who puts calls into it one after the other: it schedules the instance once for up to [`CALLS_A_TURN`] of them. Until it does, nobody
//! else would; so nothing that may wait comes between two of them, but the wait for room, before which it schedules.

use std::sync::Arc;

use super::{CALLS_A_TURN, Instance};
use crate::call::{Call, CallRef, To, is_past};
use crate::code::{Code, Failure, append, no_memory};
use crate::completion::Port;
use crate::notice::interval;
use crate::parcel::{Parcel, close_unread};
use crate::service::Bounds;

/// What a submission asks for besides its call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// The call says each interval of its method that it still runs ([`Kind::StillRunning`](crate::Kind::StillRunning)). It takes two places of the port,
    /// until it has ended and the last notice was reaped. `argument` where the method's policy file has no `notice`.
    pub notices: bool,
    /// Where the service's bounds say so ([`Bounds::waits`]) the submission waits for room, until the call's deadline, and parks its thread or actor.
    /// Otherwise, and where they do not, it is `overloaded`.
    pub waits: bool,
}

/// Submissions of calls of one instance to one port, one after the other: the instance is scheduled once for up to 64 of them, and at the latest when this is
/// dropped. So do nothing between two of them that waits.
#[derive(Debug)]
pub struct Submitter<'a> {
    burst: Burst<'a>,
    port: &'a Arc<Port>,
}

impl<'a> Submitter<'a> {
    /// Of calls of `instance` whose completions go to `port`.
    pub fn new(instance: &'a Arc<Instance>, port: &'a Arc<Port>) -> Self {
        let burst = Burst::new(instance);
        Self { burst, port }
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
        wishes: Wishes,
    ) -> Result<u64, Failure> {
        let (instance, port) = (self.burst.instance, self.port);
        let method = instance.method(method)?;
        let every = match wishes.notices {
            false => None,
            true => {
                instance.admit(method)?;
                Some(interval(&instance.package.methods[method as usize])?)
            }
        };
        port.reserve_below(instance.package.bounds.bytes)?;
        if every.is_some() {
            port.reserve().inspect_err(|_| port.unreserve())?;
        }
        let to = To::Port { port, token };
        let write = |mut buffer: Vec<u8>| {
            append(&mut buffer, &instance.arguments(method, args)?)?;
            Ok(buffer)
        };
        let begin = |call: &CallRef| (call.handle(), every.map(|_| call.clone()));
        let begun = self
            .burst
            .start(method, write, to, deadline, wishes.waits, begin);
        let (handle, told) = begun.inspect_err(|_| {
            port.unreserve();
            if every.is_some() {
                port.unreserve();
            }
        })?;
        if let (Some(call), Some(every)) = (told, every) {
            call.tell_each(port, every);
        }
        Ok(handle)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Burst<'a> {
    instance: &'a Arc<Instance>,
    /// A turn that nobody else will ask for.
    is_due: bool,
    /// Put since the last turn was asked for.
    put: usize,
}

impl<'a> Burst<'a> {
    pub(crate) fn new(instance: &'a Arc<Instance>) -> Self {
        Self {
            instance,
            is_due: false,
            put: 0,
        }
    }

    fn schedule(&mut self) {
        self.put = 0;
        if std::mem::take(&mut self.is_due) {
            #[cfg(test)]
            self.instance
                .schedules
                .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            self.instance.schedule();
        }
    }

    /// Makes a call whose arguments `write` puts into a buffer; `note` is what the caller keeps of it. On an error nothing is completed.
    pub(crate) fn start<R>(
        &mut self,
        method: u32,
        write: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, Failure>,
        to: To<'_>,
        deadline: u64,
        waits: bool,
        note: impl FnOnce(&CallRef) -> R,
    ) -> Result<R, Failure> {
        let (noted, parcel) = self.instance.begin(method, write, to, deadline, note)?;
        if let Some(parcel) = parcel
            && let Err((parcel, why)) = self.post(parcel, waits)
            && parcel.call().core.withdraw()
        {
            return Err(why);
        }
        Ok(noted)
    }

    /// Puts a call into the mailbox, or waits for room, where it `waits` and so do the bounds. A call that has ended meanwhile is as good as posted: its end
    /// was heard of.
    ///
    /// # Errors
    /// Why it could not, with the parcel.
    pub(crate) fn post(&mut self, parcel: Parcel, waits: bool) -> Result<(), (Parcel, Failure)> {
        match self.put(parcel) {
            Ok(()) => Ok(()),
            Err((parcel, Full::Calls | Full::Bytes))
                if waits && self.instance.package.bounds.waits =>
            {
                self.schedule();
                let instance = self.instance;
                let waited = instance.room.wait(parcel, |parcel| {
                    self.put(parcel).map_err(|(parcel, _)| parcel)
                });
                self.schedule();
                waited
            }
            Err((parcel, full)) => {
                let why = full.why(&self.instance.package.bounds);
                Err((parcel, why))
            }
        }
    }

    /// Or it comes back, with why.
    #[inline]
    fn put(&mut self, parcel: Parcel) -> Result<(), (Parcel, Full)> {
        let instance = self.instance;
        self.is_due |= instance
            .put(parcel)
            .or_else(|(parcel, why)| match instance.sweep() {
                true => instance.put(parcel),
                false => Err((parcel, why)),
            })?;
        self.put += 1;
        if self.put >= CALLS_A_TURN {
            self.schedule();
        }
        Ok(())
    }
}

impl Drop for Burst<'_> {
    fn drop(&mut self) {
        self.schedule();
    }
}

/// Why an instance's mailbox takes no more.
#[derive(Clone, Copy)]
enum Full {
    Calls,
    Bytes,
    /// The list cannot grow.
    Memory(usize),
}

impl Full {
    #[cold]
    fn why(self, bounds: &Bounds) -> Failure {
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
        Submitter::new(self, port).submit(token, method, args, deadline, Wishes::default())
    }

    /// Makes a call whose arguments `write` puts into a buffer, and which its caller waits for. On an error nothing is completed.
    pub(crate) fn send(
        self: &Arc<Self>,
        method: u32,
        write: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, Failure>,
        deadline: u64,
    ) -> Result<CallRef, Failure> {
        Burst::new(self).start(method, write, To::Waiter, deadline, true, CallRef::clone)
    }

    /// A call and what is to be put into the mailbox of it; nothing where it is too late for that. `note` is what the caller keeps of the call.
    #[inline]
    pub(crate) fn begin<R>(
        self: &Arc<Self>,
        method: u32,
        write: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, Failure>,
        to: To<'_>,
        deadline: u64,
        note: impl FnOnce(&CallRef) -> R,
    ) -> Result<(R, Option<Parcel>), Failure> {
        self.admit(method)?;
        let options = &self.package.methods[method as usize].options;
        let deadline = options.limit(deadline);
        let (calls, mut ending) = self.spare()?;
        match write(std::mem::take(&mut ending.data)) {
            Ok(args) => ending.data = args,
            Err(failure) => {
                self.keep(calls, ending);
                return Err(failure);
            }
        }
        let core = match calls.begin(method, to, deadline) {
            Ok(core) => core,
            Err((calls, failure)) => {
                self.keep(calls, ending);
                return Err(failure);
            }
        };
        let noted = note(&core);
        let parcel = Parcel::new(ending, Call { core });
        if !is_past(deadline) {
            return Ok((noted, Some(parcel)));
        }
        close_unread(&parcel.data);
        let core = &parcel.call().core;
        core.stop(Code::TimedOut.because("the deadline had passed when the call was made"));
        Ok((noted, None))
    }

    /// Whether a turn is to be scheduled now. Or it comes back, with why.
    fn put(&self, parcel: Parcel) -> Result<bool, (Parcel, Full)> {
        let Bounds { calls, bytes, .. } = self.package.bounds;
        let mut mailbox = thalweg_queue::quiet::lock(&self.mailbox.0);
        if mailbox.calls.len() >= calls as usize {
            return Err((parcel, Full::Calls));
        }
        if mailbox.calls.try_reserve(1).is_err() {
            let more = (mailbox.calls.len() + 1) * size_of::<Parcel>();
            return Err((parcel, Full::Memory(more)));
        }
        if !self.waiting.admit(&parcel.data, bytes) {
            return Err((parcel, Full::Bytes));
        }
        mailbox.calls.push_back(parcel);
        Ok(mailbox.is_to_be_scheduled())
    }
}
