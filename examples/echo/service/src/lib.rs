//! An echo and a timer as a Thalweg service.
//!
//! As a `cdylib` this is what C, Python and the others open; as a Rust library it is the same service for Rust.

#[path = "../../generated/rust/echo.rs"]
pub mod echo;

mod library;
mod service;

pub use service::{EchoService, NamedTimer};

/// The page for those who come from nim-ffi, whose example this is.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/migrating/nim-ffi.md")]
struct FromNimFfi;

/// The page for those who come from ThetaDataDx.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/migrating/thetadatadx.md")]
struct FromThetaDataDx;
