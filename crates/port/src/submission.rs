//! Calls whose completions go to a port.

use std::sync::Arc;

use crate::call::{CallRef, To};
use crate::code::Failure;
use crate::completion::Port;
use crate::instance::Instance;
use crate::notice::interval;

/// A call that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    /// Comes back with its completion.
    pub token: u64,
    /// The method's number.
    pub method: u32,
    /// Its arguments, a message, which is copied.
    pub args: &'a [u8],
    /// By then it has ended ([`thalweg_queue::clock`]; `u64::MAX`: whenever it does).
    pub deadline: u64,
    /// It tells, each interval of its method, that it still runs ([`Kind::StillRunning`](crate::Kind::StillRunning)). It takes two places of the port, until it has ended and
    /// the last notice was reaped.
    pub notices: bool,
    /// Where the [bounds](crate::Bounds::waits) say so, who submits waits for room until the deadline. Otherwise it is `overloaded`.
    pub waits: bool,
}

impl<'a> Submission<'a> {
    /// Without notices, and without waiting.
    pub fn new(token: u64, method: u32, args: &'a [u8], deadline: u64) -> Self {
        Self {
            token,
            method,
            args,
            deadline,
            notices: false,
            waits: false,
        }
    }
}

/// The turn that who makes calls has to schedule: once for all of them, when this is dropped.
pub(crate) struct Turn<'a> {
    instance: &'a Arc<Instance>,
    pub(crate) is_due: bool,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(instance: &'a Arc<Instance>) -> Self {
        Self {
            instance,
            is_due: false,
        }
    }

    /// Schedules it now, if it is to be.
    pub(crate) fn begin(&mut self) {
        if std::mem::take(&mut self.is_due) {
            self.instance.schedule();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.begin();
    }
}

/// Submits calls, and wakes the service once for all of them.
pub struct SubmitBatch<'a> {
    instance: &'a Arc<Instance>,
    port: &'a Arc<Port>,
    turn: Turn<'a>,
}

impl std::fmt::Debug for SubmitBatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubmitBatch")
            .field("instance", self.instance)
            .finish_non_exhaustive()
    }
}

impl SubmitBatch<'_> {
    /// Submits one. Returns the call's handle.
    ///
    /// # Errors
    /// As of [`Instance::submit`]; those before it are made all the same. `argument`, too: the policy file of a method that is to tell that it still runs has no `notice`; of a call that
    /// waits for room `would_park`, `interrupted` and `shut_down`.
    pub fn submit(&mut self, submission: &Submission<'_>) -> Result<u64, Failure> {
        self.instance
            .submit_in(&mut self.turn, self.port, submission)
    }
}

impl Instance {
    /// Submits a call whose completion goes to `port` with `token`. Returns the call's handle. Never waits: an event loop can do it.
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
        let submission = Submission::new(token, method, args, deadline);
        self.submit_in(&mut Turn::new(self), port, &submission)
    }

    /// For calls that are submitted one after the other: the service is woken once, when the batch is dropped, or when one of them has to wait for room.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use thalweg_port::{Failure, Instance, Port, Submission};
    /// fn ask_all(service: &Arc<Instance>, port: &Arc<Port>, args: &[&[u8]]) -> Result<(), Failure> {
    ///     let mut batch = service.batch(port);
    ///     for (token, args) in (0..).zip(args) {
    ///         batch.submit(&Submission::new(token, 0, args, u64::MAX))?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn batch<'a>(self: &'a Arc<Self>, port: &'a Arc<Port>) -> SubmitBatch<'a> {
        SubmitBatch {
            instance: self,
            port,
            turn: Turn::new(self),
        }
    }

    #[inline(always)]
    fn submit_in(
        self: &Arc<Self>,
        turn: &mut Turn<'_>,
        port: &Arc<Port>,
        submission: &Submission<'_>,
    ) -> Result<u64, Failure> {
        let &Submission {
            token,
            method,
            args,
            deadline,
            notices,
            waits,
        } = submission;
        if notices {
            return self.submit_with_notices(turn, port, submission);
        }
        port.reserve_below(self.package().bounds.bytes)?;
        let to = To::Port { port, token };
        self.start(turn, method, copy(args), to, deadline, waits, |call| {
            call.handle()
        })
        .inspect_err(|_| port.unreserve())
    }

    #[cold]
    fn submit_with_notices(
        self: &Arc<Self>,
        turn: &mut Turn<'_>,
        port: &Arc<Port>,
        submission: &Submission<'_>,
    ) -> Result<u64, Failure> {
        let &Submission {
            token,
            method,
            args,
            deadline,
            waits,
            ..
        } = submission;
        self.admit(method)?;
        let every = interval(&self.package().methods[method as usize])?;
        port.reserve_below(self.package().bounds.bytes)?;
        port.reserve().inspect_err(|_| port.unreserve())?;
        let to = To::Port { port, token };
        let call = self
            .start(
                turn,
                method,
                copy(args),
                to,
                deadline,
                waits,
                CallRef::clone,
            )
            .inspect_err(|_| (0..2).for_each(|_| port.unreserve()))?;
        call.tell_each(port, every);
        Ok(call.handle())
    }
}

fn copy(args: &[u8]) -> impl FnOnce(Vec<u8>) -> Result<Vec<u8>, Failure> {
    |mut buffer| {
        buffer.extend_from_slice(args);
        Ok(buffer)
    }
}
