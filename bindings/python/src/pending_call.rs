//! A call of asyncio between its submission and its end.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyType;
use thalweg_capi::abi::{TW_CANCELLED, TwHandle, TwSubmission};

use crate::awaitable::{Polled, Step};
use crate::client::{Caller, Client};
use crate::loop_port::LoopPort;
use crate::method::{Face, Method};
use crate::upstream::{Source, Tasks};
use crate::{errors, thread_port};

/// A submitted call. Dropping it before the end cancels the call.
pub struct Ticket {
    event_loop: Py<PyAny>,
    port: Arc<LoopPort>,
    token: u64,
    call: TwHandle,
    ended: bool,
    tasks: Tasks,
}

/// Submits one call on the running loop's port.
pub fn submit(
    py: Python<'_>,
    caller: &Caller<'_>,
    method: u32,
    message: &[u8],
    deadline_ns: u64,
    sources: Vec<Source<'_>>,
) -> PyResult<Ticket> {
    let (event_loop, port) = LoopPort::of_running_loop(py, caller.library)?;
    let token = port.reserve();
    let mut submission = TwSubmission {
        token,
        client: caller.number,
        method,
        flags: 0,
        args: message.as_ptr(),
        args_size: message.len() as u64,
        deadline_ns,
        call: 0,
    };
    if let Err(refused) = thread_port::submit(py, caller.library, port.port, &mut submission) {
        port.give_up(token);
        return Err(refused);
    }
    let mut ticket = Ticket {
        event_loop: event_loop.clone().unbind(),
        port,
        token,
        call: submission.call,
        ended: false,
        tasks: Tasks::default(),
    };
    ticket.tasks = Tasks::begin(&event_loop, ticket.call, sources)?;
    Ok(ticket)
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.port.is_open() {
            self.port.give_up(self.token);
            if !self.ended {
                // SAFETY: a stale call is an error of the table, and its words are of no use here.
                unsafe { (self.port.library.table.cancel)(self.call, std::ptr::null_mut()) };
            }
        }
    }
}

/// The step that waits for a call's end.
pub struct PendingCall {
    ticket: Ticket,
    method: Py<Method>,
    client: Py<Client>,
    class: Option<Py<PyType>>,
}

impl PendingCall {
    /// Waits for `ticket`, a call of `method` on `client`; a resource that comes back becomes a `class`.
    pub fn new(
        ticket: Ticket,
        method: Py<Method>,
        client: Py<Client>,
        class: Option<Py<PyType>>,
    ) -> Self {
        Self {
            ticket,
            method,
            client,
            class,
        }
    }
}

impl Step for PendingCall {
    fn poll<'py>(&mut self, py: Python<'py>) -> PyResult<Polled<'py>> {
        let port = &self.ticket.port;
        if let Some(completion) = port.arrived(self.ticket.token) {
            self.ticket.ended = true;
            if let Some(raised) = self.ticket.tasks.raised(py) {
                return Err(raised);
            }
            let class = self.class.as_ref().map(|class| class.bind(py));
            let value =
                self.method
                    .get()
                    .finish(completion, self.client.bind(py), class, Face::Async)?;
            return Ok(Polled::Done(value));
        }
        if !port.is_open() {
            return Err(errors::ended(
                py,
                TW_CANCELLED,
                "the event loop of the call is closed",
                false,
            ));
        }
        Ok(Polled::Wait(port.future(
            self.ticket.event_loop.bind(py),
            self.ticket.token,
        )?))
    }
}
