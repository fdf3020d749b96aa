//! ripgrep's libraries as a Thalweg service: the search itself, and the service around it.
//!
//! As a `cdylib` this is what C, Python and the others open; as a Rust library it is the same service for Rust,
//! and [`walk`] is the search without a service.

#[path = "../../generated/rust/search.rs"]
pub mod search;

pub mod walk;

mod library;
mod service;

pub use service::{CompiledQuery, SearchService};
