//! ripgrep's libraries as a Thalweg service: the search itself, and the service around it.
//!
//! Hosts in C and Python open the `cdylib`. Rust programs can use the crate as a library; [`walk`]
//! is the search without a service.

#[path = "../../generated/rust/search.rs"]
pub mod search;

pub mod walk;

mod library;
mod service;

pub use service::{CompiledQuery, SearchService};
