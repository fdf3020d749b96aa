//! A call on asyncio, from its submission to its outcome.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyType;
use thalweg_capi::abi::TW_CANCELLED;

use crate::awaitable::{Polled, Step};
use crate::client::Client;
use crate::errors;
use crate::library::Library;
use crate::loop_port::LoopPort;
use crate::method::{Face, Method};
use crate::submission::Submission;
use crate::upstream::{Source, Tasks};

/// A submitted call. Dropping it before the call ends cancels the call.
pub struct Ticket {
    event_loop: Py<PyAny>,
    port: Arc<LoopPort>,
    token: u64,
    ended: bool,
    on_notice: Option<Py<PyAny>>,
    tasks: Tasks,
}

/// Submits one call on the running loop's port. If calls are being collected, it waits for the
/// others. A call that `gives` a handle away is submitted at once.
pub fn submit(
    py: Python<'_>,
    library: &'static Library,
    submission: &Submission<'_, '_>,
    sources: Vec<Source<'_>>,
    gives: bool,
) -> PyResult<Ticket> {
    let (event_loop, port) = LoopPort::of_running_loop(py, library)?;
    let token = port.reserve();
    if let Err(refused) = port.submit(&event_loop, submission, token, gives) {
        port.give_up(token);
        return Err(refused);
    }
    let mut ticket = Ticket {
        event_loop: event_loop.clone().unbind(),
        port,
        token,
        ended: false,
        on_notice: submission.on_notice.cloned().map(Bound::unbind),
        tasks: Tasks::default(),
    };
    if !sources.is_empty() {
        // The call gave a handle away, so it was submitted at once.
        let call = ticket.port.call_of(token).unwrap_or_default();
        ticket.tasks = Tasks::begin(&event_loop, call, sources)?;
    }
    Ok(ticket)
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.port.is_open() {
            let call = self.port.call_of(self.token);
            self.port.give_up(self.token);
            if let Some(call) = call.filter(|_| !self.ended) {
                // SAFETY: the table reports a stale call as an error, and the text is not needed.
                unsafe { (self.port.library.table.cancel)(call, std::ptr::null_mut()) };
            }
        }
    }
}

/// The step that waits for the outcome of a call.
pub struct PendingCall {
    ticket: Ticket,
    method: Py<Method>,
    client: Py<Client>,
    class: Option<Py<PyType>>,
}

impl PendingCall {
    /// Waits for `ticket`, a call of `method` on `client`. A resource in the result becomes an
    /// instance of `class`.
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
        // This runs in the awaiting task, so an exception is raised there, and dropping the step
        // cancels the call.
        if let (Some(seconds), Some(on_notice)) = (
            port.notice(self.ticket.token),
            self.ticket.on_notice.as_ref(),
        ) {
            on_notice.call1(py, (seconds,))?;
        }
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
        if let Some(refused) = port.refused(self.ticket.token) {
            return Err(refused);
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
