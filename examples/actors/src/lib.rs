//! Eight programs with Thalweg's actors, in `examples/`.
//!
//! ```text
//! cargo run -p thalweg-example-actors --example supervisor
//! ```
//!
//! The page for those who come from smarm is tested here, too: every Rust snippet of `docs/migrating/smarm.md` is compiled and run.

/// The page for users of smarm.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/migrating/smarm.md")]
struct FromSmarm;
