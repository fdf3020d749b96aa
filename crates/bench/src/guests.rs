//! The lab's service in other languages than Rust. A host opens such a guest by its address.

use std::path::PathBuf;

use crate::hosts;
use crate::problem::Problem;

/// A guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guest {
    /// `crates/bench/guest/lab_guest.c`. A worker calls its functions.
    C,
    /// The same, with a thread that takes the calls from a port.
    CPort,
    /// `crates/bench/guest/go`. A goroutine takes the calls from a port.
    Go,
}

impl Guest {
    /// The name of its language in results.
    #[must_use]
    pub const fn language(self) -> &'static str {
        match self {
            Self::C | Self::CPort => "c",
            Self::Go => "go",
        }
    }

    /// How it gets its calls, in results.
    #[must_use]
    pub const fn delivery(self) -> &'static str {
        match self {
            Self::C => "callback",
            Self::CPort | Self::Go => "port",
        }
    }

    /// Compiles it, and returns its address.
    ///
    /// # Errors
    /// The compiler is missing or reports an error.
    pub fn address(self) -> Result<String, Problem> {
        let library = match self {
            Self::C => hosts::c_guest("liblab_guest.so", &[])?,
            Self::CPort => hosts::c_guest("liblab_guest_port.so", &["-DLAB_PORT"])?,
            Self::Go => hosts::go_guest()?,
        };
        Ok(format!("thread:{}", library.display()))
    }
}

/// `libthalweg.so`, which opens guests.
///
/// # Errors
/// It was not built.
pub fn core() -> Result<PathBuf, Problem> {
    hosts::library("thalweg-shared")
}
