//! A value that comes later: a stream that ends after one record.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use thalweg_wire::{Decode, Encode};

use crate::call::Call;
use crate::code::{Code, Failure};
use crate::service::{Policy, StreamOptions};
use crate::stream::{StreamReader, StreamWriter};

/// There is one record.
const ONE: StreamOptions = StreamOptions {
    policy: Policy::Block,
    capacity: 1,
    ..StreamOptions::UNSAID
};

/// The service's end: says what the value is, once. Dropped without a word, its reader has `guest_lost`.
#[derive(Debug)]
pub struct FutureWriter<T>(StreamWriter<T>);

impl<T: Decode> FutureWriter<T> {
    /// Says what the value is. Never waits.
    ///
    /// # Errors
    /// `closed`: nobody waits for it any more; how else it ended, if it has; `argument`: the value is larger than 64 MiB.
    pub fn set<V: Encode<As = T> + ?Sized>(self, value: &V) -> Result<(), Failure> {
        self.0.send(value).map(drop)
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
pub struct FutureReader<T>(StreamReader<T>);

/// What a stream without a record says.
fn lost() -> Failure {
    Code::GuestLost.because("the service dropped the future without a value")
}

impl<T: Decode> FutureReader<T> {
    /// Waits for the value.
    ///
    /// # Errors
    /// `guest_lost`: there is none; `cancelled`, `timed_out`, `guest_panicked`: what became of the call that it belongs to; `would_park`.
    pub fn wait(mut self) -> Result<T, Failure> {
        self.0.next().unwrap_or_else(|| Err(lost()))
    }

    /// The same, and waits no longer than until `deadline` ([`thalweg_queue::clock`]; 0: not at all).
    ///
    /// # Errors
    /// As [`wait`](Self::wait). After `timed_out`, `interrupted`, and `would_park` where it does not wait, it may be waited for again.
    pub fn wait_until(&mut self, deadline: u64) -> Result<T, Failure> {
        let batch = self.0.next_batch(1, deadline)?;
        let value = batch
            .as_ref()
            .and_then(|batch| batch.iter().next().map(T::owned));
        value.ok_or_else(lost)
    }

    /// The stream that it is.
    pub fn into_stream(self) -> StreamReader<T> {
        self.0
    }
}

impl<T> From<StreamReader<T>> for FutureReader<T> {
    fn from(stream: StreamReader<T>) -> Self {
        Self(stream)
    }
}

impl<T: Decode> Future for FutureReader<T> {
    type Output = Result<T, Failure>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let next = Pin::new(&mut self.get_mut().0).poll_next(context);
        next.map(|value| value.unwrap_or_else(|| Err(lost())))
    }
}

impl Call {
    /// A value that comes later: what says it, and what to return. It fails with the call's deadline, and when the call is stopped.
    pub fn future<T: Decode>(&self) -> (FutureWriter<T>, FutureReader<T>) {
        let (writer, reader) = self.stream_with(ONE);
        (FutureWriter(writer), FutureReader(reader))
    }
}
