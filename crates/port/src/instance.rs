//! One instance of a service, and the actor that runs it.
//!
//! Hosts push into its mailbox; whoever finds it unscheduled schedules a turn. A turn serves up to 64 calls, then lets others
//! have theirs. `scheduled` is the owner word: while it is set there is one turn, running or to come, so the service is
//! never entered twice.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use thalweg_queue::Ring;
use thalweg_runtime::{Handle, Run};

use crate::call::{CallCore, Sink, is_past};
use crate::code::{Code, Failure};
use crate::handles::{self, Object};
use crate::incoming::Incoming;
use crate::service::{Dispatch, Package, Service};
use crate::stream::StreamCore;

/// Calls that may wait for one instance; more are `overloaded`.
const MAILBOX: usize = 4096;
/// Calls in a turn, so that a flood does not starve the other actors of a worker.
const CALLS_A_TURN: usize = 64;

struct Envelope {
    call: Arc<CallCore>,
    args: Vec<u8>,
}

struct Seat {
    make: Box<dyn Fn() -> Box<dyn Dispatch> + Send>,
    service: Option<Box<dyn Dispatch>>,
}

/// An instance of a service: a mailbox, and an actor behind it.
pub struct Instance {
    pub(crate) package: &'static Package,
    pub(crate) runtime: Handle,
    mailbox: Ring<Envelope>,
    scheduled: AtomicBool,
    closed: AtomicBool,
    /// The service panicked: the next call finds a fresh one.
    replaced: AtomicBool,
    incarnation: AtomicU64,
    seat: Mutex<Seat>,
    streams: Mutex<Vec<Weak<StreamCore>>>,
    epoch: u32,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance")
            .field("package", &self.package.name)
            .field("incarnation", &self.incarnation)
            .finish_non_exhaustive()
    }
}

impl Instance {
    /// An instance that makes its service with `make`, at its first call and after every panic.
    ///
    /// # Errors
    /// `overloaded`: the runtime found no threads.
    pub fn open<S: Service>(make: impl Fn() -> S + Send + 'static, runtime: Handle) -> Arc<Self> {
        Arc::new(Self {
            package: S::PACKAGE,
            runtime,
            mailbox: Ring::new(MAILBOX).expect("a constant in range"),
            scheduled: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            replaced: AtomicBool::new(false),
            incarnation: AtomicU64::new(1),
            seat: Mutex::new(Seat {
                make: Box::new(move || Box::new(make())),
                service: None,
            }),
            streams: Mutex::default(),
            epoch: handles::epoch(),
        })
    }

    /// The process's runtime, for an instance.
    ///
    /// # Errors
    /// `overloaded`: no threads; `argument`: the environment has a bad setting.
    pub fn runtime() -> Result<Handle, Failure> {
        use thalweg_runtime::{Runtime, StartError};
        Runtime::global().map_err(|error| match error {
            StartError::Setting(..) | StartError::Abort => {
                Code::Argument.because(error.to_string())
            }
            StartError::Thread(_) => Code::Overloaded.because(error.to_string()),
        })
    }

    /// What it offers.
    pub fn package(&self) -> &'static Package {
        self.package
    }

    /// Submits a call whose completion goes to `port` with `token`. Returns the call's handle.
    ///
    /// # Errors
    /// `argument`: no such method; `overloaded`; `closed`; `forked`. Nothing completes then.
    pub fn submit(
        self: &Arc<Self>,
        port: &Arc<crate::Port>,
        token: u64,
        method: u32,
        args: Vec<u8>,
        deadline: u64,
    ) -> Result<u64, Failure> {
        port.reserve()?;
        let sink = Sink::Port {
            port: Arc::clone(port),
            token,
        };
        self.send(method, args, sink, deadline)
            .inspect_err(|_| port.unreserve())
    }

    /// On an error the sink hears nothing.
    pub(crate) fn send(
        self: &Arc<Self>,
        method: u32,
        args: Vec<u8>,
        sink: Sink,
        deadline: u64,
    ) -> Result<u64, Failure> {
        if self.epoch != handles::epoch() {
            return Err(Code::Forked.because("the client was made before fork()"));
        }
        if self.closed.load(Ordering::Acquire) {
            return Err(Code::Closed.because("the client is closed"));
        }
        if method as usize >= self.package.methods.len() {
            return Err(Code::Argument.because(format!(
                "{} has {} methods, none with the number {method}",
                self.package.name,
                self.package.methods.len()
            )));
        }
        if self.mailbox.len() >= MAILBOX {
            return Err(Code::Overloaded.because(format!("{MAILBOX} calls wait for the service")));
        }
        let (call, handle) = CallCore::begin(self, method, sink, deadline)?;
        if is_past(deadline) {
            call.stop(Code::TimedOut.because("the deadline had passed when the call was made"));
            return Ok(handle);
        }
        if let Err(envelope) = self.mailbox.push(Envelope { call, args }) {
            // It filled up since the look above; the caller has a handle's worth of promise, so it ends as a completion.
            envelope
                .call
                .stop(Code::Overloaded.because(format!("{MAILBOX} calls wait for the service")));
            return Ok(handle);
        }
        self.schedule();
        Ok(handle)
    }

    fn schedule(self: &Arc<Self>) {
        // Both sides swap: if this one comes before the turn's, the turn's reads it and with it sees the push; if after, it
        // reads `false`.
        if !self.scheduled.swap(true, Ordering::AcqRel) {
            self.runtime.schedule(Arc::clone(self) as Arc<dyn Run>);
        }
    }

    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation.load(Ordering::Acquire)
    }

    /// Rule 3: its resources are stale from now on, and the next call finds a fresh one.
    pub(crate) fn replace(&self) {
        self.replaced.store(true, Ordering::Release);
        self.incarnation.fetch_add(1, Ordering::AcqRel);
    }

    /// Streams that end when the instance is closed.
    pub(crate) fn watch(&self, stream: &Arc<StreamCore>) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(stream));
    }

    /// Ends its calls and streams as cancelled, and drops the service, on its actor.
    pub fn close(self: &Arc<Self>) {
        if self.closed.swap(true, Ordering::SeqCst) || self.epoch != handles::epoch() {
            return;
        }
        let why = || Code::Cancelled.because("the client was closed");
        for object in handles::all() {
            match object {
                Object::Call(call) if Arc::ptr_eq(&call.instance, self) => call.stop(why()),
                _ => {}
            }
        }
        let streams =
            std::mem::take(&mut *self.streams.lock().unwrap_or_else(PoisonError::into_inner));
        for stream in streams.iter().filter_map(Weak::upgrade) {
            stream.end(why());
        }
        self.incarnation.fetch_add(1, Ordering::AcqRel);
        self.schedule();
    }

    fn serve(self: &Arc<Self>, seat: &mut Seat, envelope: Envelope) {
        let Envelope { call, args } = envelope;
        if self.replaced.swap(false, Ordering::AcqRel) {
            drop_quietly(seat.service.take());
        }
        if call.has_ended() {
            return;
        }
        if seat.service.is_none() {
            match catch_unwind(AssertUnwindSafe(|| (seat.make)())) {
                Ok(service) => seat.service = Some(service),
                Err(payload) => {
                    drop_quietly(payload);
                    call.stop(Code::GuestLost.because("the service panicked while it was made"));
                    return;
                }
            }
        }
        if let Some(service) = &mut seat.service {
            let incoming = Incoming::new(Arc::clone(&call), args);
            call.guard(|| service.dispatch(incoming));
        }
    }
}

/// Drops what may panic when it is dropped.
fn drop_quietly<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        std::mem::forget(payload);
    }
}

impl Run for Instance {
    fn run(self: Arc<Self>) {
        let mut seat = self.seat.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..CALLS_A_TURN {
            if let Some(envelope) = self.mailbox.pop() {
                self.serve(&mut seat, envelope);
                continue;
            }
            if self.closed.load(Ordering::Acquire) {
                drop_quietly(seat.service.take());
            }
            self.scheduled.swap(false, Ordering::AcqRel);
            // A call, or the closing, whose swap came before this one.
            let more = !self.mailbox.is_empty()
                || (self.closed.load(Ordering::Acquire) && seat.service.is_some());
            if !more || self.scheduled.swap(true, Ordering::AcqRel) {
                return;
            }
        }
        drop(seat);
        self.runtime.schedule(Arc::clone(&self) as Arc<dyn Run>);
    }
}
