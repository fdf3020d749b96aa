//! A call as the service's glue sees it: parameters to read, an answer to give.

use std::any::Any;
use std::sync::Arc;

use thalweg_wire::{Decode, Encode, Handle, Malformed, message};

use crate::call::{Call, CallCore};
use crate::code::{Code, Failure};
use crate::handles::{self, Object, Resource};
use crate::service::Method;
use crate::stream::StreamReader;
use crate::task::{State, Task};

/// Arguments of at most so many bytes lend their memory to the answer.
const MOST_REUSED: usize = 4096;

/// Why a call is refused before the service sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(Failure);

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        Self(Code::Argument.because(format!("the arguments are malformed: {malformed}")))
    }
}

/// One call to answer. Dropped without an answer it ends as `guest_lost`, or as `guest_panicked` where the
/// service panicked.
#[derive(Debug)]
pub struct Incoming {
    call: Call,
    args: Vec<u8>,
}

impl Incoming {
    pub(crate) fn new(core: Arc<CallCore>, args: Vec<u8>) -> Self {
        Self {
            call: Call { core },
            args,
        }
    }

    /// The method's number.
    pub fn method(&self) -> u32 {
        self.call.core.method
    }

    /// The call, for the service's methods.
    pub fn call(&self) -> &Call {
        &self.call
    }

    fn layouts(&self) -> &'static Method {
        // The number was checked at the submission.
        &self.call.core.instance.package.methods[self.method() as usize]
    }

    /// Reads the parameters: everything is checked, size, hash, bounds, UTF-8.
    ///
    /// # Errors
    /// What is malformed.
    pub fn params<P: Decode>(&self) -> Result<P, Refusal> {
        Ok(message::open(&self.args, self.layouts().params)?.owned::<P>()?)
    }

    fn resource(object: Object, handle: Handle) -> Result<Resource, Refusal> {
        match object {
            Object::Resource(resource) => Ok(resource),
            other => Err(Refusal(Code::Argument.because(format!(
                "handle {:#x} is {}, not a resource",
                handle.0,
                other.kind()
            )))),
        }
    }

    fn value<R: Any + Send + Sync>(&self, resource: Resource) -> Result<Arc<R>, Refusal> {
        let instance = &self.call.core.instance;
        if !Arc::ptr_eq(&resource.instance, instance) {
            return Err(Refusal(
                Code::Argument.because("the resource is another client's"),
            ));
        }
        if resource.incarnation != instance.incarnation() {
            return Err(Refusal(
                Code::Stale.because("the service was restarted since the resource was made"),
            ));
        }
        resource
            .value
            .downcast()
            .map_err(|_| Refusal(Code::Argument.because("the resource is of another type")))
    }

    /// The resource that a `borrow` names.
    ///
    /// # Errors
    /// `stale`, `argument`.
    pub fn borrow<R: Any + Send + Sync>(&self, handle: Handle) -> Result<Arc<R>, Refusal> {
        let object = handles::find(handle.0).map_err(Refusal)?;
        self.value(Self::resource(object, handle)?)
    }

    /// The resource that an `own` names; the handle is stale from now on.
    ///
    /// # Errors
    /// `stale`, `argument`; the handle is as it was then.
    pub fn own<R: Any + Send + Sync>(&self, handle: Handle) -> Result<Arc<R>, Refusal> {
        let value = self.borrow(handle)?;
        handles::remove(handle.0).map_err(Refusal)?;
        Ok(value)
    }

    /// Ends the call without the service.
    pub fn refuse(self, refusal: Refusal) {
        let Failure { code, message } = refusal.0;
        self.call.core.end(code, Vec::new(), message);
    }

    fn send<T: Encode + ?Sized>(&mut self, code: Code, layout: u64, value: &T) {
        // The arguments were read; their memory goes back with the answer, unless it would be kept for little.
        let mut buffer = std::mem::take(&mut self.args);
        if buffer.capacity() > MOST_REUSED {
            buffer = Vec::new();
        }
        match message::encode(value, layout, buffer) {
            Ok(data) => self.call.core.end(code, data, String::new()),
            Err(error) => {
                let why = format!("the result cannot be sent: {error}");
                self.call.core.end(Code::GuestLost, Vec::new(), why)
            }
        };
    }

    /// Answers with a value.
    pub fn reply<T: Encode + ?Sized>(mut self, value: &T) {
        self.send(Code::Ok, self.layouts().ok, value);
    }

    /// Answers with the typed error.
    pub fn reply_error<E: Encode + ?Sized>(mut self, error: &E) {
        self.send(Code::Error, self.layouts().error, error);
    }

    fn reply_object(mut self, object: Object) {
        match handles::insert(object) {
            Ok(handle) => self.send(Code::Ok, self.layouts().ok, &Handle(handle)),
            Err(Failure { code, message }) => {
                self.call.core.end(code, Vec::new(), message);
            }
        }
    }

    /// Answers with a new resource, `own<r>`.
    pub fn reply_own<R: Any + Send + Sync>(self, resource: R) {
        let instance = Arc::clone(&self.call.core.instance);
        self.reply_object(Object::Resource(Resource {
            incarnation: instance.incarnation(),
            instance,
            value: Arc::new(resource),
        }));
    }

    /// Answers with a stream's reading end.
    pub fn reply_stream<T: Decode>(self, stream: StreamReader<T>) {
        self.reply_object(Object::Stream(stream.into_core()));
    }

    /// Does the rest of an `async func`'s work, then `finish` answers with what came out.
    pub fn run<T: Send + 'static>(self, task: Task<T>, finish: fn(Self, T)) {
        match task.0 {
            State::Ready(value) => finish(self, value),
            State::Later(work) => {
                let call = self.call.clone();
                call.spawn(move |call| {
                    let value = work(call);
                    finish(self, value);
                });
            }
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // While a panic unwinds, `CallCore::guard` further up knows its message and ends the call.
        if !std::thread::panicking() && !self.call.core.has_ended() {
            self.call.core.end(
                Code::GuestLost,
                Vec::new(),
                "the service dropped the call without an answer".to_owned(),
            );
        }
    }
}
