//! A feed of market events as a Thalweg service.
//!
//! Other languages open the `cdylib`. Rust programs use the library.

#[path = "../../generated/rust/feed.rs"]
pub mod feed;

mod library;
mod service;

pub use service::Market;
