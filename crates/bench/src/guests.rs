//! The lab's service in other languages than Rust. A host opens such a guest by its address.

use std::path::PathBuf;

use crate::hosts;
use crate::problem::Problem;

/// A language of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guest {
    /// `crates/bench/guest/lab_guest.c`.
    C,
}

/// All guests.
pub const GUESTS: [Guest; 1] = [Guest::C];

impl Guest {
    /// The name of its language in results.
    #[must_use]
    pub const fn language(self) -> &'static str {
        match self {
            Self::C => "c",
        }
    }

    /// Compiles it, and returns its address.
    ///
    /// # Errors
    /// The compiler is missing or reports an error.
    pub fn address(self) -> Result<String, Problem> {
        let library = match self {
            Self::C => hosts::c_guest("lab_guest")?,
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
