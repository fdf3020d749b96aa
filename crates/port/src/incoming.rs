//! A call as the service's generated code sees it: parameters to read, and an answer to give.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use thalweg_runtime::log::{Level, Limit};
use thalweg_wire::{Decode, Encode, Handle, Malformed, Rule, message};

use crate::call::{Call, CallCore};
use crate::code::{Code, Failure, append};
use crate::completion::{CallBuffer, Outcome};
use crate::end_stream::EndStream;
use crate::handles::{self, Kind, Lent};
use crate::message_handles::close_unread_streams;
use crate::nested::DropCause;
use crate::package::Method;
use crate::resource;
use crate::stream::{FutureReader, StreamError, StreamReader, Upstream};
use crate::task::{Task, TaskKind};

/// The message of a call that the service dropped.
pub(crate) const UNANSWERED: &str = "the service dropped the call without an answer";

/// Reports a call that the service dropped.
#[cold]
pub(crate) fn log_unanswered(method: &str) {
    static DROPPED: Limit = Limit::new();
    DROPPED.write(
        Level::Warning,
        "service",
        format_args!("{method}: {UNANSWERED}"),
    );
}

/// Why a call is refused before it reaches the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub(crate) Failure);

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        if malformed.rule == Rule::Memory {
            return Self(Code::Overloaded.because("there is no memory for the arguments"));
        }
        Self(Code::Argument.because(format!("the arguments are malformed: {malformed}")))
    }
}

/// A call to answer. If it is dropped without an answer, it ends as `guest_lost`, or as
/// `guest_panicked` if the service panicked.
#[derive(Debug)]
pub struct Incoming {
    /// Contains the arguments; `None` once the call is answered.
    buffer: Option<CallBuffer>,
}

impl Incoming {
    pub(crate) fn new(buffer: CallBuffer) -> Self {
        Self {
            buffer: Some(buffer),
        }
    }

    /// The buffer, whose owner ends the call.
    #[inline]
    pub(crate) fn into_buffer(mut self) -> CallBuffer {
        self.buffer.take().expect("answering consumes the call")
    }

    #[inline]
    fn buffer(&self) -> &CallBuffer {
        self.buffer.as_ref().expect("answering consumes the call")
    }

    #[inline]
    fn core(&self) -> &Arc<CallCore> {
        self.call().core.core()
    }

    /// The method's number.
    pub fn method(&self) -> u32 {
        self.core().method()
    }

    /// The call, for the service's methods.
    #[inline]
    pub fn call(&self) -> &Call {
        self.buffer().call()
    }

    #[inline]
    fn layouts(&self) -> &'static Method {
        // The submission has checked the number.
        &self.core().package.methods[self.method() as usize]
    }

    /// Decodes the parameters after checking the size, the hash, the bounds and UTF-8.
    ///
    /// # Errors
    /// The arguments are malformed.
    pub fn params<P: Decode>(&self) -> Result<P, Refusal> {
        match message::open(&self.buffer().data, self.layouts().params) {
            Ok(message) => Ok(message.owned::<P>()?),
            Err(malformed) => self.borrowed_params(malformed),
        }
    }

    /// The parameters if the buffer has only the first part of the message. `malformed` is the error
    /// otherwise, also for a call that was stopped, whose outcome is delivered.
    #[cold]
    fn borrowed_params<P: Decode>(&self, malformed: Malformed) -> Result<P, Refusal> {
        let (head, layout) = (&self.buffer().data, self.layouts().params);
        let read = |tail: &[u8]| message::owned_of_parts(head, tail, layout);
        let params = self.core().read_borrowed(read).unwrap_or(Err(malformed));
        Ok(params?)
    }

    /// Lends the call to foreign code that serves it by number, and returns the number.
    /// [`take_back`](Self::take_back) accepts it once. The arguments stay where they are until
    /// then, also after the call has ended. Those that the caller has lent are copied.
    ///
    /// # Errors
    /// `overloaded`: the maximum number of handles is open, or there is not enough memory for one
    /// more. The call has ended with this failure. `stale`: the call has ended.
    pub fn lend(self) -> Result<u64, Failure> {
        let mut buffer = self.into_buffer();
        if message::open_any(&buffer.data).is_err() {
            buffer = join_arguments(buffer).ok_or_else(handles::stale)?;
        }
        buffer.lend().map_err(|(mut buffer, failure)| {
            buffer.fail(failure.clone());
            buffer.deliver();
            failure
        })
    }

    /// Takes back a [lent](Self::lend) call.
    ///
    /// # Errors
    /// `stale`: it was already taken back. `argument`, `forked`: the number does not belong to this
    /// process.
    pub fn take_back(number: u64) -> Result<Self, Failure> {
        CallBuffer::take_back(number).map(Self::new)
    }

    /// Calls `f` with the parameters of a [lent](Self::lend) call, after the same checks as in
    /// [`params`](Self::params), and with the memory of the message that contains them. A NUL follows
    /// the message. Until the call is taken back, foreign code may read the message there, and write
    /// to the bytes of a list.
    ///
    /// # Errors
    /// The errors of [`take_back`](Self::take_back). `argument`: the arguments are malformed.
    /// `overloaded`: there is no memory for the NUL.
    pub fn with_lent<P: Decode, R>(
        number: u64,
        f: impl FnOnce(P::View<'_>, Range<*mut u8>) -> R,
    ) -> Result<R, Failure> {
        handles::with_lent(Lent::Incoming, number, |outcome: &mut Outcome| {
            let call = &outcome.call.as_ref().expect("a lent call has one").core;
            let layouts = &call.package.methods[call.method() as usize];
            // Only the first time can this move the message.
            append(&mut outcome.data, b"\0")?;
            outcome.data.pop();
            let memory = outcome.data.as_mut_ptr_range();
            let view = message::open(&outcome.data, layouts.params).and_then(|m| m.view::<P>());
            match view {
                Ok(view) => Ok(f(view, memory)),
                Err(malformed) => Err(Refusal::from(malformed).0),
            }
        })?
    }

    /// The resource of a `borrow` parameter.
    ///
    /// # Errors
    /// `stale`, `argument`.
    pub fn borrow<R: Any + Send + Sync>(&self, handle: Handle) -> Result<Arc<R>, Refusal> {
        resource::borrow(&*self.core().instance, handle).map_err(Refusal)
    }

    /// The resource of an `own` parameter. The handle is stale afterwards.
    ///
    /// # Errors
    /// `stale`, `argument`. The handle stays valid in both cases.
    pub fn own<R: Any + Send + Sync>(&self, handle: Handle) -> Result<Arc<R>, Refusal> {
        resource::own(&*self.core().instance, handle).map_err(Refusal)
    }

    /// A stream parameter. It belongs to the call afterwards.
    ///
    /// # Errors
    /// `stale`. `argument`: the handle is not a stream, or the stream has elements of another type.
    pub fn upstream<T: Decode>(&self, stream: Upstream<T>) -> Result<Upstream<T>, Refusal> {
        let (stream, core) = stream.look_up().map_err(Refusal)?;
        core.set_owner(Arc::clone(self.core()) as _);
        let ends: Arc<dyn EndStream> = core;
        self.core().adopt_stream(&ends);
        Ok(stream)
    }

    /// Decodes the parameters, calls the service with `call`, and sends its result with `reply`. If
    /// the parameters or a resource among them is refused, the call ends without `reply`.
    pub fn serve<P: Decode, T>(
        self,
        call: impl FnOnce(&Self, P) -> Result<T, Refusal>,
        reply: impl FnOnce(Self, T),
    ) {
        match self.params().and_then(|params| call(&self, params)) {
            Ok(result) => reply(self, result),
            Err(refusal) => self.refuse(refusal),
        }
    }

    /// The same for a function that can fail: `reply` sends a result, and an error is sent as the
    /// typed error.
    pub fn try_serve<P: Decode, T, E: Encode>(
        self,
        call: impl FnOnce(&Self, P) -> Result<Result<T, E>, Refusal>,
        reply: impl FnOnce(Self, T),
    ) {
        self.serve(call, |incoming, result| {
            incoming.reply_result(result, reply)
        });
    }

    /// The same as [`serve`](Self::serve) for an `async func`.
    pub fn serve_async<P: Decode, T: Send + 'static>(
        self,
        call: impl FnOnce(&Self, P) -> Result<Task<T>, Refusal>,
        reply: fn(Self, T),
    ) {
        self.serve(call, |incoming, task| incoming.run(task, reply));
    }

    /// The same as [`try_serve`](Self::try_serve) for an `async func`.
    pub fn try_serve_async<P: Decode, T: Send + 'static, E: Encode + Send + 'static>(
        self,
        call: impl FnOnce(&Self, P) -> Result<Task<Result<T, E>>, Refusal>,
        reply: fn(Self, T),
    ) {
        self.serve(call, |incoming, task| {
            incoming.run(task, move |incoming, result| {
                incoming.reply_result(result, reply)
            });
        });
    }

    /// Ends the call with the outcome that `fill` writes into the buffer.
    fn finish_with(mut self, fill: impl FnOnce(&mut CallBuffer)) {
        if let Some(mut buffer) = self.buffer.take() {
            fill(&mut buffer);
            buffer.deliver();
        }
    }

    fn fail(self, failure: Failure) {
        self.finish_with(|buffer| buffer.fail(failure));
    }

    /// Ends the call without the service.
    pub fn refuse(self, refusal: Refusal) {
        close_unread_streams(&self.buffer().data);
        self.fail(refusal.0);
    }

    fn send<T: Encode + ?Sized>(self, code: Code, layout: u64, value: &T) {
        // The arguments were read. Their memory is reused for the answer.
        self.finish_with(|buffer| {
            buffer.answer(code, layout, value);
            buffer.convert_for_caller();
        });
    }

    /// Answers with a value.
    pub fn reply<T: Encode + ?Sized>(self, value: &T) {
        let layout = self.layouts().ok;
        self.send(Code::Ok, layout, value);
    }

    /// Answers with the typed error.
    pub fn reply_error<E: Encode + ?Sized>(self, error: &E) {
        let layout = self.layouts().error;
        self.send(Code::Error, layout, error);
    }

    /// Answers with a value that is not needed afterwards.
    pub fn reply_value<T: Encode>(self, value: T) {
        self.reply(&value);
    }

    fn reply_result<T, E: Encode>(self, result: Result<T, E>, reply: impl FnOnce(Self, T)) {
        match result {
            Ok(value) => reply(self, value),
            Err(error) => self.reply_error(&error),
        }
    }

    /// Answers with a handle.
    fn reply_handle(self, inserted: Result<u64, Failure>) {
        match inserted {
            Ok(handle) => self.reply(&Handle(handle)),
            Err(failure) => self.fail(failure),
        }
    }

    /// Answers with a new resource, `own<r>`.
    pub fn reply_own<R: Any + Send + Sync>(self, resource: R) {
        let resource = self.core().new_resource(Arc::new(resource));
        self.reply_handle(resource.insert());
    }

    /// Answers with the reading end of a stream.
    pub fn reply_stream<T: Decode, E: StreamError>(self, stream: StreamReader<T, E>) {
        self.reply_handle(handles::insert(Kind::Stream, stream.into_core()));
    }

    /// Answers with the reading end of a future.
    pub fn reply_future<T: Decode, E: StreamError>(self, future: FutureReader<T, E>) {
        self.reply_stream(future.into_stream());
    }

    /// Runs the rest of an `async func`. `finish` then sends its result as the answer.
    pub fn run<T: Send + 'static>(
        self,
        task: Task<T>,
        finish: impl FnOnce(Self, T) + Send + 'static,
    ) {
        match task.0 {
            TaskKind::Ready(value) => finish(self, value),
            TaskKind::Work(work) => {
                // The receiver of the result must not find the call in use, so no other reference
                // to it is kept.
                let core = Arc::clone(self.core());
                let here = Arc::clone(&core);
                here.instance.runtime().spawn_queued(move || {
                    let generation = core.open_state.generation();
                    core.run_guarded(generation, || {
                        let value = work(self.call());
                        finish(self, value);
                    });
                });
            }
        }
    }
}

/// Copies a second part of the arguments behind the first one, because foreign code may read them
/// after the call has ended. `None`: the call has ended.
pub(crate) fn join_arguments(mut buffer: CallBuffer) -> Option<CallBuffer> {
    let mut args = std::mem::take(&mut buffer.data);
    let core = &buffer.call().core;
    let joined = core.read_borrowed(|tail| append(&mut args, tail));
    // A stop removes the second part.
    let is_stopped = core.check_stopped().is_err();
    buffer.data = args;
    match joined {
        Some(Err(failure)) => {
            buffer.fail(failure);
            buffer.deliver();
        }
        None if is_stopped => close_unread_streams(&buffer.data),
        _ => return Some(buffer),
    }
    None
}

impl Drop for Incoming {
    #[inline]
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            end_unanswered(buffer);
        }
    }
}

#[cold]
fn end_unanswered(mut buffer: CallBuffer) {
    match DropCause::now(buffer.call().core.handle()) {
        DropCause::OwnPanic => {}
        DropCause::OtherPanic(why) => {
            close_unread_streams(&buffer.data);
            buffer.call().core.stop(why);
        }
        DropCause::Intended => {
            close_unread_streams(&buffer.data);
            let core = &buffer.call().core;
            // A service may drop a call that was stopped.
            if core.check_stopped().is_ok() {
                log_unanswered(core.method_name());
            }
            buffer.fail(Code::GuestLost.because(UNANSWERED));
            buffer.deliver();
        }
    }
}
