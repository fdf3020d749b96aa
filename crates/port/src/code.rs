//! The one list of endings.

use std::fmt::{self, Write as _};

use thalweg_wire::NoRoom;

/// How a call or a stream can end, and what a function can refuse with. The numbers never change; they are the `tw_code` of
/// the C header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Code {
    /// Done.
    Ok = 0,
    /// The service's own typed error.
    Error = 1,
    /// Cancelled by the caller, or what it belonged to was closed.
    Cancelled = 2,
    /// The deadline passed.
    TimedOut = 3,
    /// The service could not be started, or dropped the call.
    GuestLost = 4,
    /// The service panicked in this call.
    GuestPanicked = 5,
    /// No room: try again later.
    Overloaded = 6,
    /// The runtime is shutting down.
    ShutDown = 7,
    /// Closed; or a stream's regular end.
    Closed = 8,
    /// The handle's object is gone.
    Stale = 9,
    /// A wrong handle, a malformed message, a value out of range.
    Argument = 10,
    /// The two sides do not fit.
    Version = 11,
    /// The handle was made before `fork()`.
    Forked = 12,
    /// A signal arrived while waiting.
    Interrupted = 13,
    /// Nothing is there now, and waiting was not allowed.
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
    /// As the list writes it: `timed_out`.
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
        ALL.into_iter().find(|code| *code as u32 == number)
    }

    /// Whether the same call may succeed later.
    pub fn retryable(self) -> bool {
        matches!(self, Self::Overloaded | Self::Interrupted | Self::WouldPark)
    }

    /// Whether it may of a method whose second run does no harm: also where nobody knows how far the first one came.
    pub fn retryable_if_idempotent(self) -> bool {
        self.retryable() || matches!(self, Self::TimedOut | Self::GuestLost | Self::GuestPanicked)
    }

    /// That it ended so, and why, for a person.
    pub fn because(self, message: impl Into<String>) -> Failure {
        Failure {
            code: self,
            message: message.into(),
            is_idempotent: false,
        }
    }
}

/// Of what would have to wait where an actor must not.
pub(crate) fn would_park() -> Failure {
    Code::WouldPark.because("an actor must not wait here")
}

/// The failure of an allocation of `bytes` bytes. It allocates only if it can.
#[cold]
pub(crate) fn no_memory(bytes: usize) -> Failure {
    let mut message = String::new();
    if message.try_reserve_exact(64).is_ok() {
        // Writing to a string never fails.
        let _ = write!(message, "there is no memory for {bytes} bytes");
    }
    Code::Overloaded.because(message)
}

/// Of arguments that cannot be written.
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
/// `overloaded`: there is no memory for them.
#[inline]
pub(crate) fn append(buffer: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Failure> {
    buffer
        .try_reserve(bytes.len())
        .map_err(|_| no_memory(bytes.len()))?;
    buffer.extend_from_slice(bytes);
    Ok(())
}

/// An ending that is not a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which.
    pub code: Code,
    /// Why, for a person.
    pub message: String,
    /// It is of a call whose second run does no harm.
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

/// How what a closed client had under way ends.
pub(crate) fn client_closed() -> Failure {
    Code::Cancelled.because("the client was closed")
}
