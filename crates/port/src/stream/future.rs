//! Futures: streams that end after one record.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use thalweg_wire::{Decode, Encode};

use crate::code::{Code, Failure};
use crate::package::{Overflow, StreamOptions};
use crate::stream::{StreamError, StreamReader, StreamWriter, Untyped};

/// Options for a single record.
pub(crate) const ONE_RECORD: StreamOptions = StreamOptions {
    overflow: Overflow::Block,
    capacity: 1,
    ..StreamOptions::DEFAULT
};

/// The error message of a future that was dropped without a value.
const NO_VALUE: &str = "the service dropped the future without a value";

/// The service's end of a future. It sets the value once. If it is dropped without a value, the
/// reader gets `guest_lost`.
#[derive(Debug)]
pub struct FutureWriter<T, E = Untyped>(StreamWriter<T, E>);

impl<T: Decode, E: Decode> FutureWriter<T, E> {
    /// Ends the future with the service's own error, which has the error type of the function `->
    /// result<future<T>, E>`. See [`StreamWriter::fail`].
    ///
    /// # Errors
    /// The errors of [`StreamWriter::fail`].
    pub fn fail<V: Encode<As = E> + ?Sized>(self, error: &V) -> Result<(), Failure> {
        self.0.fail(error)
    }
}

impl<T: Decode, E> FutureWriter<T, E> {
    /// Sets the value. Never waits.
    ///
    /// # Errors
    /// `closed`: the reader is gone. Another outcome, if the future has already ended. `argument`:
    /// the value is larger than 64 MiB; the reader gets `guest_lost`.
    pub fn set<V: Encode<As = T> + ?Sized>(self, value: &V) -> Result<(), Failure> {
        self.0.send(value)?;
        // The reader may be gone after it received the value.
        let _ = self.0.finish();
        Ok(())
    }

    /// Checks whether a reader still waits for the value.
    ///
    /// # Errors
    /// `closed`: the reader is gone. Another outcome, if the future has already ended.
    pub fn check(&self) -> Result<(), Failure> {
        self.0.check()
    }
}

/// The caller's end of a future. Wait for it in an actor or on a thread, or await it on any
/// executor. Dropping it notifies the service that no reader is left.
#[derive(Debug)]
pub struct FutureReader<T, E = Untyped>(StreamReader<T, E>);

/// The outcome of a future without a value.
fn lost() -> Failure {
    Code::GuestLost.because(NO_VALUE)
}

impl<T: Decode, E: StreamError> FutureReader<T, E> {
    /// Waits for the value.
    ///
    /// # Errors
    /// `guest_lost`: there is no value. `cancelled`, `timed_out`, `guest_panicked`: the outcome of
    /// the call that it belongs to. `would_park`.
    pub fn wait(mut self) -> Result<T, E::Ended> {
        self.0.next().unwrap_or_else(|| Err(lost().into()))
    }

    /// Like [`wait`](Self::wait), but waits at most until `deadline` ([`thalweg_queue::clock`]; 0:
    /// do not wait).
    ///
    /// # Errors
    /// The errors of [`wait`](Self::wait), and `timed_out` and `interrupted`. After these two, and
    /// after `would_park` with the deadline 0, you can wait again.
    pub fn wait_until(&mut self, deadline: u64) -> Result<T, E::Ended> {
        let batch = self.0.next_batch(1, deadline)?;
        let value = batch
            .as_ref()
            .and_then(|batch| batch.iter().next().map(T::owned));
        value.ok_or_else(|| lost().into())
    }

    /// The underlying stream.
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

/// The two ends of a future, from those of a stream with the options [`ONE_RECORD`].
pub(crate) fn into_future<T: Decode, E: StreamError>(
    (writer, reader): (StreamWriter<T, E>, StreamReader<T, E>),
) -> (FutureWriter<T, E>, FutureReader<T, E>) {
    (
        FutureWriter(writer.with_drop_reason(NO_VALUE)),
        FutureReader(reader),
    )
}
