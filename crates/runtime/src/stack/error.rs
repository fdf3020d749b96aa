//! Why there is no stack.

use std::fmt;
use std::io;

/// No stack could be had.
#[derive(Debug)]
#[non_exhaustive]
pub enum StackError {
    /// As many actors as [`Config::max_stacks`](crate::Config::max_stacks) gives their worker hold one.
    TooMany {
        /// Its share.
        most: usize,
    },
    /// The system gave no memory: its own is used up, or a limit of the process (`RLIMIT_AS`, the control group's, strict overcommit).
    Memory {
        /// What was asked for.
        bytes: usize,
        /// What the system said.
        error: io::Error,
    },
    /// Each guard is two mappings here, and stacks may use half of what Linux allows a process.
    Mappings {
        /// Stacks that the process may have made, of all sizes together.
        most: usize,
    },
    /// The system refused a guard for another reason than memory.
    Guard {
        /// What the system said.
        error: io::Error,
    },
}

impl Clone for StackError {
    fn clone(&self) -> Self {
        // All of them are the system's.
        let again = |error: &io::Error| {
            let number = error.raw_os_error();
            number.map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
        };
        match self {
            Self::TooMany { most } => Self::TooMany { most: *most },
            Self::Memory { bytes, error } => Self::Memory {
                bytes: *bytes,
                error: again(error),
            },
            Self::Mappings { most } => Self::Mappings { most: *most },
            Self::Guard { error } => Self::Guard {
                error: again(error),
            },
        }
    }
}

impl StackError {
    /// Of the system call that just failed.
    pub(super) fn memory(bytes: usize) -> Self {
        Self::Memory {
            bytes,
            error: io::Error::last_os_error(),
        }
    }

    /// Of an allocation that failed.
    pub(super) fn out_of_memory(bytes: usize) -> Self {
        Self::Memory {
            bytes,
            error: io::Error::from_raw_os_error(libc::ENOMEM),
        }
    }

    /// Whether asking again can succeed, once another stack or other memory has been given back.
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
            Self::TooMany { most } => write!(
                f,
                "{most} actors of one worker hold a stack, as many as may"
            ),
            Self::Mappings { most } => write!(
                f,
                "{most} stacks are made, which takes half of vm.max_map_count on a kernel before 6.13"
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
