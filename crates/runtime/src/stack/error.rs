//! The error type of stack allocation.

use std::fmt;
use std::io;

/// Why a stack could not be allocated.
#[derive(Debug)]
#[non_exhaustive]
pub enum StackError {
    /// The worker's share of [`Config::max_stacks`](crate::Config::max_stacks) is in use.
    TooMany {
        /// The worker's share.
        max: usize,
    },
    /// The system refused memory: it has none left, or a limit of the process is reached
    /// (`RLIMIT_AS`, the control group's limit, strict overcommit).
    Memory {
        /// The requested size.
        bytes: usize,
        /// The error of the system.
        error: io::Error,
    },
    /// On this kernel each guard needs two mappings. Stacks may use half of the mappings that Linux
    /// allows a process.
    Mappings {
        /// The maximum number of stacks in the process, of all sizes together.
        max: usize,
    },
    /// The system refused a guard for a reason other than memory.
    Guard {
        /// The error of the system.
        error: io::Error,
    },
}

impl Clone for StackError {
    fn clone(&self) -> Self {
        // All of these errors come from the system.
        let again = |error: &io::Error| {
            let number = error.raw_os_error();
            number.map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
        };
        match self {
            Self::TooMany { max } => Self::TooMany { max: *max },
            Self::Memory { bytes, error } => Self::Memory {
                bytes: *bytes,
                error: again(error),
            },
            Self::Mappings { max } => Self::Mappings { max: *max },
            Self::Guard { error } => Self::Guard {
                error: again(error),
            },
        }
    }
}

impl StackError {
    /// The error of the system call that has just failed.
    pub(super) fn memory(bytes: usize) -> Self {
        Self::Memory {
            bytes,
            error: io::Error::last_os_error(),
        }
    }

    /// The error of an allocation that failed.
    pub(super) fn out_of_memory(bytes: usize) -> Self {
        Self::Memory {
            bytes,
            error: io::Error::from_raw_os_error(libc::ENOMEM),
        }
    }

    /// Whether a retry can succeed after another stack or other memory has been returned.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Memory { error, .. } => {
                matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::EAGAIN))
            }
            Self::TooMany { .. } | Self::Mappings { .. } => true,
            Self::Guard { .. } => false,
        }
    }
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { bytes, error } => {
                write!(f, "no memory for stacks ({bytes} bytes): {error}")
            }
            Self::TooMany { max } => {
                write!(f, "all {max} stacks of the worker are in use")
            }
            Self::Mappings { max } => write!(
                f,
                "the process has {max} stacks, which is the maximum for vm.max_map_count on a kernel before 6.13"
            ),
            Self::Guard { error } => write!(f, "no guard for a stack: {error}"),
        }
    }
}

impl std::error::Error for StackError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Memory { error, .. } | Self::Guard { error } => Some(error),
            Self::TooMany { .. } | Self::Mappings { .. } => None,
        }
    }
}
