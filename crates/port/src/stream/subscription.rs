//! Passing a stream's records to a callback, in Rust.

use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Arc;

use thalweg_wire::Decode;

use crate::code::{Code, Failure};
use crate::stream::counts::{Counts, Reason};
use crate::stream::outcome::{StreamError, Untyped, read_outcome};
use crate::stream::{Callback, CallbackEvent, Guard, OpenBatch, Stats, StreamCore, Views};

/// The argument of a callback.
pub enum Event<'a, T, E: StreamError = Untyped> {
    /// Records, which are valid until the callback returns.
    Records(Records<'a, T>),
    /// The last call.
    Ended {
        /// The outcome; `Ok` is the regular end. For a function `-> result<stream<T>, E>` the error
        /// may be the service's own.
        result: Result<(), E::Ended>,
        /// Number of records that are missing after the last one.
        lost: u64,
        /// Why they are missing; `None` if none are.
        reason: Option<Reason>,
    },
}

impl<T: fmt::Debug, E: StreamError> fmt::Debug for Event<'_, T, E>
where
    E::Ended: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Records(records) => f.debug_tuple("Records").field(records).finish(),
            Self::Ended {
                result,
                lost,
                reason,
            } => f
                .debug_struct("Ended")
                .field("result", result)
                .field("lost", lost)
                .field("reason", reason)
                .finish(),
        }
    }
}

/// Some records of a stream, in place, for a callback.
#[derive(Debug)]
pub struct Records<'a, T> {
    batch: &'a OpenBatch,
    record: PhantomData<fn() -> T>,
}

impl<'a, T> Records<'a, T> {
    pub(super) fn new(batch: &'a OpenBatch) -> Self {
        Self {
            batch,
            record: PhantomData,
        }
    }

    /// Number of records; never 0.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u32 {
        self.batch.count
    }

    /// Sequence number of the first record, from 0.
    pub fn first_sequence(&self) -> u64 {
        self.batch.first_sequence
    }

    /// Number of records that are missing directly before the first one.
    pub fn lost_before(&self) -> u64 {
        self.batch.lost_before
    }

    /// Whether it is a record of the control lane:
    /// [`StreamWriter::control`](crate::StreamWriter::control). Control records have their own
    /// sequence numbers.
    pub fn is_control(&self) -> bool {
        self.batch.control
    }

    /// Why records are missing before the first one. If there are several reasons, the first one.
    /// `None` if none are missing.
    pub fn lost_reason(&self) -> Option<Reason> {
        self.batch.reason
    }
}

impl<'a, T: Decode> Records<'a, T> {
    /// The records, in order.
    #[inline]
    pub fn iter(&self) -> Views<'a, T> {
        self.batch.read(0, self.batch.count)
    }
}

/// A callback that receives a stream's records:
/// [`StreamReader::subscribe`](crate::StreamReader::subscribe). Dropping this closes the stream and
/// does not wait.
#[derive(Debug)]
pub struct Subscription<T, E = Untyped> {
    core: Arc<StreamCore>,
    /// Keeps the instance open, on the caller's side.
    _guard: Option<Arc<dyn Guard>>,
    types: PhantomData<fn() -> (T, E)>,
}

/// Wraps a typed callback for the core.
fn erase_types<T: Decode, E: StreamError>(
    mut callback: impl FnMut(Event<'_, T, E>) -> ControlFlow<()> + Send + 'static,
) -> Callback {
    Box::new(move |event| {
        callback(match event {
            CallbackEvent::Records(batch) => Event::Records(Records::new(batch)),
            CallbackEvent::Ended {
                why,
                error,
                lost,
                reason,
            } => Event::Ended {
                result: match why.code {
                    Code::Closed => Ok(()),
                    _ => Err(read_outcome::<E>(error, why.clone())),
                },
                lost,
                reason,
            },
        })
    })
}

impl<T: Decode, E: StreamError> Subscription<T, E> {
    pub(super) fn new(
        core: Arc<StreamCore>,
        guard: Option<Arc<dyn Guard>>,
        callback: impl FnMut(Event<'_, T, E>) -> ControlFlow<()> + Send + 'static,
    ) -> Result<Self, Failure> {
        // From here on, an error drops `new` and so closes the stream.
        let new = Self {
            core,
            _guard: guard,
            types: PhantomData,
        };
        new.replace(callback)?;
        Ok(new)
    }

    /// Replaces the callback. The previous one is dropped at once, or after its running call. No
    /// call of it begins after this has returned.
    ///
    /// # Errors
    /// `stale`: the stream is closed.
    pub fn replace(
        &self,
        callback: impl FnMut(Event<'_, T, E>) -> ControlFlow<()> + Send + 'static,
    ) -> Result<(), Failure> {
        self.core.subscribe(|| erase_types(callback))
    }
}

impl<T, E> Subscription<T, E> {
    /// Counts of the stream's records so far.
    pub fn counts(&self) -> Counts {
        self.core.counts()
    }

    /// Statistics of all streams of this client's method since the client was opened.
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Waits until the callback is finished: its last call has returned, and it was dropped.
    ///
    /// # Errors
    /// `timed_out` at `deadline` ([`thalweg_queue::clock`]; 0: do not wait, `u64::MAX`: no
    /// deadline), `interrupted` by a signal. `would_park` inside the callback, and where an actor
    /// must not wait.
    pub fn join(&self, deadline: u64) -> Result<(), Failure> {
        self.core.join(deadline)
    }

    /// Closes the stream. Inside the callback it returns at once. Elsewhere it waits for the
    /// running call, and no further call begins.
    pub fn close(self) {
        self.core.close_and_wait();
    }
}

impl<T, E> Drop for Subscription<T, E> {
    fn drop(&mut self) {
        self.core.close();
    }
}
