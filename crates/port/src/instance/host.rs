//! Host imports: calls from a service to its host.
//!
//! ```text
//!   service                       core                            host
//!   Call::ask --------------> a call of the same instance ---> Port: `Kind::HostCall`, to reap
//!   Pending  <--------------- its one outcome <---------- `answer_host_call`, deadline, cancel
//!                                                       or ---> Client: a service with the imports
//! ```
//!
//! A host call is part of the call during which the service makes it: it must end by that call's
//! deadline, and is cancelled with it.

use std::sync::{Arc, Mutex};

use thalweg_queue::no_preempt::lock;

use super::Instance;
use super::guard::InstanceGuard;
use crate::call::{Call, CallOwner, CallRef, Destination, host_closed, is_past};
use crate::code::{Code, Failure, append};
use crate::completion::{CallBuffer, Completion, Kind, Outcome};
use crate::handles;
use crate::port::Port;
use crate::spare::SpareKey;

/// What answers the host calls of an instance's service.
#[derive(Clone, Debug)]
pub(crate) enum Host {
    /// Another service, in Rust.
    Client(Arc<InstanceGuard>),
    /// The thread that reaps this port.
    Port { port: Arc<Port>, token: u64 },
    /// The thread that reaps the port of the call during which the service makes the host call.
    Caller { token: u64 },
}

/// The host of an instance, if it has one.
#[derive(Debug, Default)]
pub(crate) struct HostBinding(Mutex<Option<Host>>);

impl HostBinding {
    pub(crate) fn get(&self) -> Option<Host> {
        lock(&self.0).clone()
    }

    /// Returns the previous host. Dropping it may close a client, so the caller drops it without
    /// the lock.
    pub(crate) fn replace(&self, host: Option<Host>) -> Option<Host> {
        std::mem::replace(&mut *lock(&self.0), host)
    }
}

impl Instance {
    /// Sends the host calls of this service to `port`, with `token`: see [`Kind::HostCall`].
    /// [`answer_host_call`] ends them.
    ///
    /// # Errors
    /// `argument`: the service has no imports. `closed`, `forked`.
    pub fn set_host_port(&self, port: &Arc<Port>, token: u64) -> Result<(), Failure> {
        self.check_open()?;
        port.check_open()?;
        let port = Arc::clone(port);
        self.set_host(Host::Port { port, token })
    }

    /// Sends each host call, with `token`, to the port of the call during which the service makes
    /// it. The thread that reaps that port answers it.
    ///
    /// # Errors
    /// The errors of [`set_host_port`](Self::set_host_port).
    pub fn set_host_to_caller(&self, token: u64) -> Result<(), Failure> {
        self.check_open()?;
        self.set_host(Host::Caller { token })
    }

    pub(crate) fn set_host(&self, host: Host) -> Result<(), Failure> {
        if self.package.imports.is_empty() {
            return Err(Code::Argument.because(format!("{} has no imports", self.package.name)));
        }
        let before = self.host.replace(Some(host));
        // Not under the lock: dropping the previous host may close a client.
        drop(before);
        Ok(())
    }
}

impl Instance {
    pub(crate) fn send_to_port(
        self: &Arc<Self>,
        import: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Failure>,
        deadline: u64,
        port: &Arc<Port>,
        token: u64,
    ) -> Result<CallRef, Failure> {
        port.check_unreaped(self.package.limits.max_queued_bytes)?;
        port.reserve()?;
        let spare = self.take_spare(SpareKey::WAITERS);
        let mut spare = spare.inspect_err(|_| port.unreserve())?;
        let begun = write(&mut spare.data).and_then(|()| {
            let number = self.convert_host_call(import, &mut spare.data)?;
            spare.core().begin(import, Destination::Host, deadline)?;
            Ok(number)
        });
        let number = match begun {
            Ok(number) => number,
            Err(failure) => {
                port.unreserve();
                self.recycle(spare);
                return Err(failure);
            }
        };
        let (call, mut outcome) = spare.into_parts();
        outcome.number = number;
        if is_past(deadline) {
            port.unreserve();
            call.stop(Code::TimedOut.because("the deadline had passed when the host was called"));
            return Ok(call);
        }
        (outcome.kind, outcome.token) = (Kind::HostCall, token);
        outcome.handle = call.handle();
        port.add_host_call(call.handle());
        port.complete(Completion(CallBuffer::without_call(outcome)));
        if port.check_open().is_err() {
            // The port closed at the same time.
            call.stop(host_closed());
        }
        Ok(call)
    }
}

fn find_host_call(call: u64) -> Result<CallRef, Failure> {
    let entry = handles::find(call)?;
    match CallRef::of_entry(&entry, call) {
        Some(host_call) if host_call.is_host_call() => Ok(host_call),
        _ => Err(Code::Argument.because(format!(
            "handle {call:#x} is {}, not a host call",
            entry.kind.name()
        ))),
    }
}

/// Ends a host call. `data` is the message of the result with `Ok`, the message of the error with
/// `Error`, and otherwise a text with the reason.
///
/// # Errors
/// `stale`: the call has already ended. `argument`: the handle is not a host call, or the text is
/// not UTF-8. `overloaded`: there is not enough memory for the data; the call continues.
pub fn answer_host_call(call: u64, code: Code, data: &[u8]) -> Result<(), Failure> {
    let host_call = find_host_call(call)?;
    let mut outcome = Outcome::spare();
    match code {
        Code::Ok | Code::Error => {
            outcome.code = code;
            append(&mut outcome.data, data)?;
            Instance::of_call(&host_call).convert_host_answer(host_call.method(), &mut outcome);
        }
        code => {
            let text = std::str::from_utf8(data)
                .map_err(|_| Code::Argument.because("the text is not UTF-8"))?;
            outcome.fail(code.because(text));
        }
    }
    if CallBuffer::new(outcome, Call { core: host_call }).deliver() {
        Ok(())
    } else {
        Err(Code::Stale.because("the call has ended"))
    }
}

/// The deadline of a host call in nanoseconds of [`thalweg_queue::clock`]; `u64::MAX` if it has
/// none.
///
/// # Errors
/// The errors of [`answer_host_call`].
pub fn host_call_deadline(call: u64) -> Result<u64, Failure> {
    Ok(find_host_call(call)?.deadline())
}
