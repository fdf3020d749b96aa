//! A service that is written as Rust first: `thalweg gen --from-code src/api.rs` writes its WIT and all that is generated.
//!
//! As a `cdylib` this is what C, Python and the others open; as a Rust library it is the same service for Rust.

pub mod api;
#[path = "../generated/rust/hello.rs"]
pub mod hello;
#[path = "../generated/rust/hello_from_code.rs"]
pub mod hello_from_code;

mod library;
