//! The errors of a call in Rust.

use std::fmt;

use thalweg_wire::{Bytes, Checker, Decode, Encode, Encoder, Malformed, Rule, Shape};

use crate::code::Failure;

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError<E> {
    /// The service's own error.
    Service(E),
    /// Any other outcome.
    Ended(Failure),
}

impl<E: fmt::Debug> fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(error) => write!(f, "the service's error: {error:?}"),
            Self::Ended(failure) => failure.fmt(f),
        }
    }
}

impl<E: fmt::Debug> std::error::Error for CallError<E> {}

impl<E> From<Failure> for CallError<E> {
    fn from(failure: Failure) -> Self {
        Self::Ended(failure)
    }
}

/// The error type of a function without an error. It has no values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoError {}

impl Encode for NoError {
    type As = Self;

    fn encode(&self, _: &mut Encoder<'_>, _: u32) {
        match *self {}
    }
}

impl Decode for NoError {
    const SIZE: u32 = 0;
    const ALIGN: u32 = 1;
    const SHAPE: Shape = Shape::Text("!");
    const DEPTH: u32 = 0;
    type View<'a> = Self;

    fn check(_: &mut Checker<'_>, at: u32) -> Result<(), Malformed> {
        Err(Malformed {
            rule: Rule::Layout,
            at,
        })
    }

    fn view<'a>(_: Bytes<'a>, _: u32) -> Self {
        unreachable!("a value of this type cannot pass the check")
    }

    fn owned(view: Self) -> Self {
        view
    }

    fn as_view(&self) -> Self {
        *self
    }
}
