//! A running call in Rust: its caller waits for it or awaits it.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use thalweg_queue::{AdaptiveSpin, clock};
use thalweg_runtime::{WakeReason, wait};
use thalweg_wire::{Decode, Handle, Malformed, Rule, message};

use crate::call::CallRef;
use crate::call::notice::NoticeCallback;
use crate::call_batch::CallBatch;
use crate::call_error::{CallError, NoError};
use crate::client::OwnedHandle;
use crate::code::{Code, Failure, would_park};
use crate::completion::Completion;
use crate::handles::{self, Kind};
use crate::instance::guard::InstanceGuard;
use crate::instance::submit::Sent;
use crate::owned;
use crate::owned::ResourceClient;
use crate::package::Method;
use crate::stream::{FutureReader, StreamError, StreamReader};

const NO_HANDLE: Malformed = Malformed {
    rule: Rule::Handles,
    at: message::HEADER,
};

/// The result of a call, before it is decoded.
#[derive(Debug)]
pub struct Reply {
    completion: Completion,
    guard: Option<Arc<InstanceGuard>>,
    method: &'static Method,
}

impl Reply {
    /// Decodes a value.
    ///
    /// # Errors
    /// The message does not have the layout of the method's result.
    pub fn value<T: Decode>(&mut self) -> Result<T, Malformed> {
        value(&mut self.completion, self.method.ok, &self.guard)
    }

    fn handle(&mut self) -> Result<u64, Malformed> {
        message::open(&self.completion.data, self.method.ok)?.owned::<Handle>()?;
        self.completion.take(0).map_err(|_| NO_HANDLE)
    }

    /// The instance of the call. A host's answer belongs to no instance.
    fn guard(&self) -> Result<Arc<InstanceGuard>, Malformed> {
        self.guard.clone().ok_or(NO_HANDLE)
    }

    /// Decodes a resource.
    ///
    /// # Errors
    /// The errors of [`value`](Self::value).
    pub fn own(&mut self) -> Result<OwnedHandle, Malformed> {
        let guard = self.guard()?;
        let handle = self.handle()?;
        Ok(OwnedHandle::new(handle, guard))
    }

    /// Decodes a resource, as its typed client.
    ///
    /// # Errors
    /// The errors of [`value`](Self::value).
    pub fn resource<R: ResourceClient>(&mut self) -> Result<R, Malformed> {
        self.own().map(R::from_own)
    }

    /// Decodes a future.
    ///
    /// # Errors
    /// The errors of [`value`](Self::value).
    pub fn future<T: Decode, E: StreamError>(&mut self) -> Result<FutureReader<T, E>, Malformed> {
        self.stream().map(FutureReader::from)
    }

    /// Decodes a stream.
    ///
    /// # Errors
    /// The errors of [`value`](Self::value).
    pub fn stream<T: Decode, E: StreamError>(&mut self) -> Result<StreamReader<T, E>, Malformed> {
        let guard = self.guard()?;
        let handle = self.handle()?;
        let entry = handles::remove(handle).map_err(|_| NO_HANDLE)?;
        let core = entry.get(Kind::Stream).map_err(|_| NO_HANDLE)?;
        Ok(StreamReader::with_guard(core, guard))
    }
}

/// Decodes the value of a completion. The value owns the handles afterwards.
fn value<T: Decode>(
    completion: &mut Completion,
    layout: u64,
    guard: &Option<Arc<InstanceGuard>>,
) -> Result<T, Malformed> {
    let message = message::open(&completion.data, layout)?;
    if !T::HAS_HANDLES {
        return message.owned();
    }
    let handles = message.handles().len() as u32;
    let guard = guard.as_ref().ok_or(NO_HANDLE)?;
    let value = owned::for_caller(guard, || message.owned::<T>())?;
    for index in 0..handles {
        // The check of the value guarantees that each handle exists once.
        let _ = completion.take(index);
    }
    Ok(value)
}

/// Decodes the result of a call that ended, or returns its outcome as an error.
pub(crate) fn read<T, E: Decode>(
    mut completion: Completion,
    guard: Option<Arc<InstanceGuard>>,
    method: &'static Method,
    read: fn(&mut Reply) -> Result<T, Malformed>,
) -> Result<T, CallError<E>> {
    let malformed = |error: Malformed| {
        let mut failure = match error.rule {
            // The service has already done its work.
            Rule::Memory => Code::GuestLost.because("there is no memory for the result"),
            _ => Code::Version.because(format!("the answer is malformed: {error}")),
        };
        failure.is_idempotent = method.options.is_idempotent;
        CallError::Ended(failure)
    };
    match completion.code {
        Code::Ok => {
            let mut reply = Reply {
                completion,
                guard,
                method,
            };
            read(&mut reply).map_err(malformed)
        }
        Code::Error => {
            let error = value::<E>(&mut completion, method.error, &guard);
            Err(CallError::Service(error.map_err(malformed)?))
        }
        code => {
            let message = std::mem::take(&mut completion.message);
            let mut failure = code.because(message);
            failure.is_idempotent = method.options.is_idempotent;
            Err(CallError::Ended(failure))
        }
    }
}

enum PendingState {
    Sent(CallRef),
    /// The call belongs to a batch, which may already be submitted.
    Batched(CallRef, Arc<CallBatch>),
    /// A brief call that has ended.
    Ended(Completion),
    Refused(Failure),
    Done,
}

/// A running call. Wait for it in an actor or on a thread, or await it on any executor. Dropping it
/// cancels the call.
pub struct Pending<T, E = NoError> {
    state: PendingState,
    guard: Option<Arc<InstanceGuard>>,
    method: &'static Method,
    read: fn(&mut Reply) -> Result<T, Malformed>,
    notice: Option<Box<NoticeCallback>>,
    error: PhantomData<fn() -> E>,
}

impl<T, E> fmt::Debug for Pending<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("method", &self.method.name)
            .finish_non_exhaustive()
    }
}

thread_local! {
    static SPIN: RefCell<AdaptiveSpin> = const { RefCell::new(AdaptiveSpin::new()) };
}

impl<T, E: Decode> Pending<T, E> {
    #[inline(always)]
    pub(crate) fn sent(
        guard: Option<Arc<InstanceGuard>>,
        batch: Option<Arc<CallBatch>>,
        sent: Sent,
        method: &'static Method,
        read: fn(&mut Reply) -> Result<T, Malformed>,
    ) -> Self {
        let state = match (sent, batch) {
            (Sent::Ended(completion), _) => PendingState::Ended(completion),
            (Sent::Call(call), None) => PendingState::Sent(call),
            (Sent::Call(call), Some(batch)) => PendingState::Batched(call, batch),
        };
        Self {
            state,
            guard,
            method,
            read,
            notice: None,
            error: PhantomData,
        }
    }

    pub(crate) fn refused(
        guard: Option<Arc<InstanceGuard>>,
        failure: Failure,
        method: &'static Method,
        read: fn(&mut Reply) -> Result<T, Malformed>,
    ) -> Self {
        Self {
            state: PendingState::Refused(failure),
            guard,
            method,
            read,
            notice: None,
            error: PhantomData,
        }
    }

    /// Sets a callback for progress notices. It receives the time since the call began. It is
    /// called at the interval that the method's policy file sets as `notice_interval`, while a
    /// thread or task waits for the call and the call has not ended. Without an interval it is
    /// never called. It runs on the waiting thread or task and does not affect the call.
    #[must_use]
    pub fn on_notice(mut self, callback: impl FnMut(Duration) + Send + 'static) -> Self {
        self.notice = NoticeCallback::new(self.method, callback);
        self
    }

    /// Requests that the call ends as cancelled. Wait for the call to learn its outcome.
    pub fn cancel(&self) {
        cancel(&self.state);
    }

    /// The result owns the guard afterwards.
    fn read(&mut self, completion: Completion) -> Result<T, CallError<E>> {
        read(completion, self.guard.take(), self.method, self.read)
    }

    /// Waits for the outcome. A waiting actor does not block its worker.
    ///
    /// # Errors
    /// The service's error, or another outcome of the call. `would_park` where an actor must not
    /// wait, as in [`native`](thalweg_runtime::native); the call is then cancelled.
    pub fn wait(mut self) -> Result<T, CallError<E>> {
        loop {
            if let Some(result) = self.wait_until(None) {
                return result;
            }
        }
    }

    /// Waits for the outcome like [`wait`](Self::wait), but at most for `timeout`. Returns `None`
    /// if the call has not ended. The call continues, and you can wait again, await it,
    /// [`cancel`](Self::cancel) it, or drop it, which cancels it. A timeout of zero never waits.
    ///
    /// This limits the wait, not the call. A client's `with_timeout` limits the call.
    ///
    /// # Errors
    /// The errors of [`wait`](Self::wait), but the call continues where an actor must not wait.
    /// `argument` if the result was already returned.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<Result<T, CallError<E>>> {
        self.wait_until(Some(clock::deadline(timeout)))
    }

    /// Returns `None` at the deadline.
    fn wait_until(&mut self, deadline: Option<u64>) -> Option<Result<T, CallError<E>>> {
        if let PendingState::Batched(call, batch) = &self.state {
            batch.submit();
            self.state = PendingState::Sent(call.clone());
        }
        let call = match &self.state {
            PendingState::Sent(call) | PendingState::Batched(call, _) => call,
            _ => return Some(self.result_without_call()),
        };
        let cell = &call.result;
        let completion = loop {
            if let Some(completion) = cell.take() {
                break completion;
            }
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                cell.disarm();
                return None;
            }
            if !wait::is_actor() && SPIN.with_borrow_mut(|spin| spin.until(|| cell.is_filled())) {
                continue;
            }
            if !wait::can_park() {
                return Some(Err(would_park().into()));
            }
            let due = self.notice.as_mut().map(|notice| notice.notify_if_due());
            let until = deadline.into_iter().chain(due).min();
            if !cell.arm(wait::waker()) {
                continue;
            }
            let woke = if wait::is_actor() {
                wait::park(until)
            } else {
                SPIN.with_borrow_mut(|spin| spin.sleep(|| wait::park(until)))
            };
            if woke == WakeReason::Stopping {
                return Some(Err(Code::ShutDown.because("the runtime stops").into()));
            }
        };
        Some(self.end(completion))
    }

    /// The result of a call that has ended or never began.
    #[inline]
    fn result_without_call(&mut self) -> Result<T, CallError<E>> {
        match std::mem::replace(&mut self.state, PendingState::Done) {
            PendingState::Ended(completion) => self.read(completion),
            PendingState::Refused(failure) => Err(failure.into()),
            _ => Err(already_taken()),
        }
    }

    /// Drops the reference to the call, so that the result is its last user. Returns the result.
    #[inline]
    fn end(&mut self, completion: Completion) -> Result<T, CallError<E>> {
        if self.notice.is_some() {
            self.stop_notices();
        }
        match std::mem::replace(&mut self.state, PendingState::Done) {
            PendingState::Sent(call) => drop(call),
            other => drop_state(other),
        }
        self.read(completion)
    }
}

#[cold]
fn drop_state(state: PendingState) {
    drop(state);
}

fn already_taken<E>() -> CallError<E> {
    Code::Argument
        .because("the call's result was already taken")
        .into()
}

impl PendingState {
    fn call(&self) -> Option<&CallRef> {
        match self {
            Self::Sent(call) | Self::Batched(call, _) => Some(call),
            Self::Ended(_) | Self::Refused(_) | Self::Done => None,
        }
    }
}

fn cancel(state: &PendingState) {
    if let Some(call) = state.call()
        && !call.has_ended()
    {
        call.cancel();
    }
}

impl<T, E> Pending<T, E> {
    /// Cancels the call, whose result is not read any more.
    #[cold]
    fn give_up(&mut self) {
        cancel(&self.state);
        self.stop_notices();
        if let Some(call) = self.state.call() {
            call.result.abandon();
        }
    }

    #[cold]
    fn stop_notices(&mut self) {
        if let (Some(call), Some(notice)) = (self.state.call(), &mut self.notice) {
            notice.stop(call);
        }
    }
}

impl<T, E: Decode> Future for Pending<T, E> {
    type Output = Result<T, CallError<E>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let PendingState::Batched(call, batch) = &this.state {
            batch.submit();
            this.state = PendingState::Sent(call.clone());
        }
        let completion = match &this.state {
            PendingState::Sent(call) | PendingState::Batched(call, _) => {
                let cell = &call.result;
                cell.take().or_else(|| {
                    cell.arm(context.waker().clone());
                    cell.take()
                })
            }
            _ => return Poll::Ready(this.result_without_call()),
        };
        match completion {
            Some(completion) => Poll::Ready(this.end(completion)),
            None => {
                if let (Some(call), Some(notice)) = (this.state.call(), &mut this.notice) {
                    notice.notify_and_rearm(call, context.waker());
                }
                Poll::Pending
            }
        }
    }
}

impl<T, E> Drop for Pending<T, E> {
    #[inline]
    fn drop(&mut self) {
        if !matches!(self.state, PendingState::Done) {
            self.give_up();
        }
    }
}
