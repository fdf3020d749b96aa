//! Eight programs with Thalweg's actors, in `examples/`.
//!
//! ```text
//! cargo run -p thalweg-example-actors --example supervisor
//! ```
//!
//! The doc tests of this crate compile and run every Rust snippet of `docs/migrating/smarm.md`.

/// The migration page for users of smarm.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/migrating/smarm.md")]
struct FromSmarm;
