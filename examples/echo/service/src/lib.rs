//! An echo and a timer as a Thalweg service.
//!
//! Other languages open the `cdylib`. Rust programs use the library.

#[path = "../../generated/rust/echo.rs"]
pub mod echo;

mod library;
mod service;

pub use service::{EchoService, NamedTimer};

/// Tests the code of the migration guide for nim-ffi.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/migrating/nim-ffi.md")]
struct FromNimFfi;

/// Tests the code of the migration guide for ThetaDataDx.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/migrating/thetadatadx.md")]
struct FromThetaDataDx;
