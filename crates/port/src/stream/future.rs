//! A value that comes later: a stream that ends after one record.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use thalweg_wire::{Decode, Encode};

use crate::call::Call;
use crate::code::{Code, Failure};
use crate::service::{Policy, StreamOptions};
use crate::stream::{StreamError, StreamReader, StreamWriter, Untyped};

/// There is one record.
const ONE: StreamOptions = StreamOptions {
    policy: Policy::Block,
    capacity: 1,
    ..StreamOptions::DEFAULT
};

/// What the reader of a future gets that was dropped without a value.
const NO_VALUE: &str = "the service dropped the future without a value";

/// The service's end: says what the value is, once. Dropped without a value, its reader has `guest_lost`.
#[derive(Debug)]
pub struct FutureWriter<T, E = Untyped>(StreamWriter<T, E>);

impl<T: Decode, E: Decode> FutureWriter<T, E> {
    /// Ends the future with the service's own error, of the type that the function `-> result<future<T>, E>` has:
    /// [`StreamWriter::fail`].
    ///
    /// # Errors
    /// As there.
    pub fn fail<V: Encode<As = E> + ?Sized>(self, error: &V) -> Result<(), Failure> {
        self.0.fail(error)
    }
}

impl<T: Decode, E> FutureWriter<T, E> {
    /// Says what the value is. Never waits.
    ///
    /// # Errors
    /// `closed`: nobody waits for it any more; how else it ended, if it has; `argument`: the value is larger than 64 MiB, and the reader
    /// has `guest_lost`.
    pub fn set<V: Encode<As = T> + ?Sized>(self, value: &V) -> Result<(), Failure> {
        self.0.send(value)?;
        // A reader that has the value may be gone already.
        let _ = self.0.finish();
        Ok(())
    }

    /// Whether anybody still waits for it.
    ///
    /// # Errors
    /// `closed`: nobody; how it ended, if it has.
    pub fn check(&self) -> Result<(), Failure> {
        self.0.check()
    }
}

/// The caller's end: wait for it, in an actor or on a thread, or await it on any executor. Dropping it tells the service that nobody
/// waits.
#[derive(Debug)]
pub struct FutureReader<T, E = Untyped>(StreamReader<T, E>);

/// What a stream without a record says.
fn lost() -> Failure {
    Code::GuestLost.because(NO_VALUE)
}

impl<T: Decode, E: StreamError> FutureReader<T, E> {
    /// Waits for the value.
    ///
    /// # Errors
    /// `guest_lost`: there is none; `cancelled`, `timed_out`, `guest_panicked`: what became of the call that it belongs to; `would_park`.
    pub fn wait(mut self) -> Result<T, E::Ended> {
        self.0.next().unwrap_or_else(|| Err(lost().into()))
    }

    /// The same, and waits no longer than until `deadline` ([`thalweg_queue::clock`]; 0: not at all).
    ///
    /// # Errors
    /// As [`wait`](Self::wait). After `timed_out`, `interrupted`, and `would_park` where it does not wait, it may be waited for again.
    pub fn wait_until(&mut self, deadline: u64) -> Result<T, E::Ended> {
        let batch = self.0.next_batch(1, deadline)?;
        let value = batch
            .as_ref()
            .and_then(|batch| batch.iter().next().map(T::owned));
        value.ok_or_else(|| lost().into())
    }

    /// The stream that it is.
    pub fn into_stream(self) -> StreamReader<T, E> {
        self.0
    }
}

impl<T, E> From<StreamReader<T, E>> for FutureReader<T, E> {
    fn from(stream: StreamReader<T, E>) -> Self {
        Self(stream)
    }
}

impl<T: Decode, E: StreamError> Future for FutureReader<T, E> {
    type Output = Result<T, E::Ended>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let next = Pin::new(&mut self.get_mut().0).poll_next(context);
        next.map(|value| value.unwrap_or_else(|| Err(lost().into())))
    }
}

impl Call {
    /// A value that comes later: what says it, and what to return. It fails with the call's deadline, and when the call is stopped.
    pub fn future<T: Decode, E: StreamError>(&self) -> (FutureWriter<T, E>, FutureReader<T, E>) {
        let (writer, reader) = self.stream_with(ONE);
        (
            FutureWriter(writer.with_drop_reason(NO_VALUE)),
            FutureReader(reader),
        )
    }
}
