//! A feed of market events as a Thalweg service.
//!
//! As a `cdylib` this is what C, Python and the others open; as a Rust library it is the same service for Rust.

#[path = "../../generated/rust/feed.rs"]
pub mod feed;

mod library;
mod service;

pub use service::Market;
