//! The single list of outcomes.

use std::fmt::{self, Write as _};

use thalweg_runtime::preempt::NoWait;
use thalweg_wire::NoRoom;

/// How a call or a stream can end, and why a function can fail. The numbers never change. They are
/// the values of `tw_code` in the C header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Code {
    /// Success.
    Ok = 0,
    /// The service's own typed error.
    Error = 1,
    /// Cancelled by the caller, or the client, port or call that it belonged to was closed.
    Cancelled = 2,
    /// The deadline passed.
    TimedOut = 3,
    /// The service could not be started, or dropped the call without an answer.
    GuestLost = 4,
    /// The service panicked in this call.
    GuestPanicked = 5,
    /// A queue, a table or the memory is full: try again later.
    Overloaded = 6,
    /// The runtime is shutting down.
    ShutDown = 7,
    /// The object is closed; also the regular end of a stream.
    Closed = 8,
    /// The object of the handle is gone.
    Stale = 9,
    /// A wrong handle, a malformed message, or a value out of range.
    Argument = 10,
    /// The versions of the two sides are not compatible.
    Version = 11,
    /// The handle was created before `fork()`.
    Forked = 12,
    /// A signal arrived while waiting.
    Interrupted = 13,
    /// Nothing is available, and waiting was not allowed.
    WouldPark = 14,
}

const ALL: [Code; 15] = [
    Code::Ok,
    Code::Error,
    Code::Cancelled,
    Code::TimedOut,
    Code::GuestLost,
    Code::GuestPanicked,
    Code::Overloaded,
    Code::ShutDown,
    Code::Closed,
    Code::Stale,
    Code::Argument,
    Code::Version,
    Code::Forked,
    Code::Interrupted,
    Code::WouldPark,
];

impl Code {
    /// The name of the code: `timed_out`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::GuestLost => "guest_lost",
            Self::GuestPanicked => "guest_panicked",
            Self::Overloaded => "overloaded",
            Self::ShutDown => "shut_down",
            Self::Closed => "closed",
            Self::Stale => "stale",
            Self::Argument => "argument",
            Self::Version => "version",
            Self::Forked => "forked",
            Self::Interrupted => "interrupted",
            Self::WouldPark => "would_park",
        }
    }

    /// The code with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        // The numbers are those of the positions.
        ALL.get(number as usize).copied()
    }

    /// Whether the same call may succeed later.
    pub fn retryable(self) -> bool {
        matches!(self, Self::Overloaded | Self::Interrupted | Self::WouldPark)
    }

    /// Whether the same call of an idempotent method may succeed later. This includes outcomes for
    /// which it is unknown how far the call had progressed.
    pub fn retryable_if_idempotent(self) -> bool {
        self.retryable() || matches!(self, Self::TimedOut | Self::GuestLost | Self::GuestPanicked)
    }

    /// A failure with this code and a message for humans.
    pub fn because(self, message: impl Into<String>) -> Failure {
        Failure {
            code: self,
            message: message.into(),
            is_idempotent: false,
        }
    }
}

/// The failure of an operation that would have to wait where it must not.
pub(crate) fn would_park() -> Failure {
    match NoWait::current() {
        Some(method) => must_not_wait(method),
        None => Code::WouldPark.because("an actor must not wait here"),
    }
}

/// The failure of a [brief](crate::MethodOptions::is_brief) method that waits.
#[cold]
pub(crate) fn must_not_wait(method: &str) -> Failure {
    Code::WouldPark.because(format!("{method} is brief: it must not wait"))
}

/// The failure of an allocation of `bytes` bytes. It allocates its message only if there is memory.
#[cold]
pub(crate) fn no_memory(bytes: usize) -> Failure {
    let mut message = String::new();
    if message.try_reserve_exact(64).is_ok() {
        // Writing to a string cannot fail.
        let _ = write!(message, "there is no memory for {bytes} bytes");
    }
    Code::Overloaded.because(message)
}

/// The failure of arguments that cannot be encoded.
#[cold]
pub(crate) fn unencodable(error: NoRoom) -> Failure {
    match error.needed {
        Some(bytes) => no_memory(bytes as usize),
        None => Code::Argument.because(format!("the arguments: {error}")),
    }
}

/// Appends `bytes` to `buffer`.
///
/// # Errors
/// `overloaded`: there is not enough memory.
#[inline]
pub(crate) fn append(buffer: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Failure> {
    buffer
        .try_reserve(bytes.len())
        .map_err(|_| no_memory(bytes.len()))?;
    buffer.extend_from_slice(bytes);
    Ok(())
}

/// An outcome without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The code.
    pub code: Code,
    /// The reason, for humans.
    pub message: String,
    /// The failed call's method is idempotent.
    pub is_idempotent: bool,
}

impl Failure {
    /// Whether the same call may succeed later.
    pub fn retryable(&self) -> bool {
        match self.is_idempotent {
            true => self.code.retryable_if_idempotent(),
            false => self.code.retryable(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}

impl std::error::Error for Failure {}

/// The failure of calls and streams whose client was closed.
pub(crate) fn client_closed() -> Failure {
    Code::Cancelled.because("the client was closed")
}
