//! Host calls in Rust: a service calls its host and waits for the answer.

use thalweg_wire::{Encode, Malformed, message};

use crate::call::{Call, CallRef, Destination, nested_failure};
use crate::code::{Code, Failure, unencodable};
use crate::instance::Instance;
use crate::instance::host::Host;
use crate::instance::submit::{MailboxWriter, Sent};
use crate::pending::{Pending, Reply};

impl Call {
    /// Calls the host import with this number. The call is submitted when this returns.
    pub fn ask<P: Encode, T, E>(
        &self,
        import: u32,
        params: &P,
        read: fn(&mut Reply) -> Result<T, Malformed>,
    ) -> Pending<T, E>
    where
        E: thalweg_wire::Decode,
    {
        let layouts = &self.core.package.imports[import as usize];
        let write = |buffer: &mut Vec<u8>| {
            message::encode_into(params, layouts.params, buffer).map_err(unencodable)
        };
        match self.core.start_host_call(import, write) {
            Ok(call) => Pending::sent(None, None, Sent::Call(call), layouts, read),
            Err(why) => Pending::refused(None, why, layouts, read),
        }
    }
}

impl CallRef {
    /// Calls the host import with this number, whose parameters `write` writes.
    pub(crate) fn start_host_call(
        &self,
        import: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Failure>,
    ) -> Result<CallRef, Failure> {
        let caller = self;
        caller.check_stopped().map_err(|why| nested_failure(&why))?;
        let deadline = caller.deadline();
        let instance = Instance::of_call(caller);
        let host_call = match instance.host.get() {
            None => return Err(Code::Closed.because("the client has no host")),
            Some(Host::Client(host)) => {
                let mark = |call: &CallRef| {
                    call.set_origin(caller.handle());
                    call.clone()
                };
                let mut writer = MailboxWriter::new(host.instance());
                writer.start(import, write, Destination::Waiter, deadline, true, mark)?
            }
            Some(Host::Port { port, token }) => {
                instance.send_to_port(import, write, deadline, &port, token)?
            }
            Some(Host::Caller { token }) => {
                let none = || Code::Closed.because("no host is available to answer this call");
                let port = caller.port().ok_or_else(none)?;
                instance.send_to_port(import, write, deadline, &port, token)?
            }
        };
        caller.core().adopt(caller.generation(), &host_call);
        Ok(host_call)
    }
}
