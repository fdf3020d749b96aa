//! The outcome of a stream, and the service's typed error at its end.
//!
//! A function `-> result<stream<T>, E>` may fail after its stream has begun. The stream then ends
//! with the code `error` and a value of `E`, as a message with the layout of the function's error.
//! The error is stored in the service's version, and converted once for a reader with another
//! version.

use std::sync::Arc;

use thalweg_wire::{Decode, Encode, message};

use crate::call_error::CallError;
use crate::code::{Code, Failure};
use crate::stream::core::StreamCore;

/// The outcome of a stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamOutcome {
    pub(crate) why: Failure,
    /// A message, with the code `error` only.
    pub(crate) error: Option<Arc<[u8]>>,
}

impl From<Failure> for StreamOutcome {
    fn from(why: Failure) -> Self {
        Self { why, error: None }
    }
}

impl StreamOutcome {
    /// The outcome with the service's own error.
    ///
    /// # Errors
    /// `argument`: the error is too large for a message.
    pub(super) fn service_error<E: Encode + ?Sized>(error: &E) -> Result<Self, Failure> {
        let layout = <E::As as Decode>::HASH;
        let message = message::encode(error, layout, Vec::new());
        let message = message
            .map_err(|refused| Code::Argument.because(format!("the stream's error: {refused}")))?;
        Ok(Self::error_message(message))
    }

    /// The same, given the message of the error.
    pub(super) fn error_message(message: Vec<u8>) -> Self {
        Self {
            why: Code::Error.because("the service ended the stream with its error"),
            error: Some(message.into()),
        }
    }
}

impl StreamCore {
    /// The outcome with the error in the reader's version.
    pub(super) fn outcome_as_read<'a>(&'a self, outcome: &'a StreamOutcome) -> &'a StreamOutcome {
        let Some(error) = &outcome.error else {
            return outcome;
        };
        self.outcome_for_reader
            .get_or_init(|| match self.owner.convert_stream_error(error) {
                Ok(None) => outcome.clone(),
                Ok(Some(converted)) => StreamOutcome::error_message(converted),
                Err(why) => why.into(),
            })
    }

    /// The service's own error if the stream ended with the code `error`, as a message with the
    /// layout of the function's error. The reader receives it after all records. This function
    /// returns it as soon as the stream has ended.
    pub fn error(&self) -> Option<Arc<[u8]>> {
        let outcome = self.outcome.get()?;
        self.outcome_as_read(outcome).error.clone()
    }
}

/// The error type of a stream without its own errors: the stream of a function that returns no
/// `result`, of a value, or of a parameter. Such a stream ends with a [`Failure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untyped {}

/// The error type of a stream in addition to [`Failure`]: [`Untyped`], or the error type of the
/// function that returns the stream.
pub trait StreamError: sealed::Sealed + 'static {
    /// The reader's error: [`Failure`] for [`Untyped`], and [`CallError`] otherwise.
    type Ended: From<Failure>;

    #[doc(hidden)]
    fn read(error: &[u8]) -> Result<Self::Ended, Failure>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Untyped {}
    impl<E: super::Decode> Sealed for E {}
}

impl StreamError for Untyped {
    type Ended = Failure;

    fn read(_: &[u8]) -> Result<Failure, Failure> {
        Ok(Code::Error.because("the service ended the stream with its error"))
    }
}

impl<E: Decode + 'static> StreamError for E {
    type Ended = CallError<E>;

    fn read(error: &[u8]) -> Result<CallError<E>, Failure> {
        let read = message::open(error, E::HASH).and_then(|message| message.owned::<E>());
        let malformed =
            |why| Code::Version.because(format!("the stream's error is malformed: {why}"));
        read.map(CallError::Service).map_err(malformed)
    }
}

/// The outcome of a stream, or the reason why it cannot be read now, in the reader's error type.
pub(super) fn typed_error<E: StreamError>(core: &StreamCore, why: Failure) -> E::Ended {
    let error = (why.code == Code::Error).then(|| core.error()).flatten();
    read_outcome::<E>(error.as_deref(), why)
}

/// Like [`typed_error`], with the encoded error.
pub(super) fn read_outcome<E: StreamError>(error: Option<&[u8]>, why: Failure) -> E::Ended {
    match error.map(E::read) {
        None => why.into(),
        Some(Ok(ended)) => ended,
        Some(Err(malformed)) => malformed.into(),
    }
}
