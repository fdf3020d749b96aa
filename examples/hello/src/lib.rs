//! A code-first service: `thalweg gen --from-code src/api.rs` generates its WIT and all other code.
//!
//! Other languages open the `cdylib`. Rust programs use the library.

pub mod api;
#[path = "../generated/rust/hello.rs"]
pub mod hello;
#[path = "../generated/rust/hello_from_code.rs"]
pub mod hello_from_code;

mod library;
