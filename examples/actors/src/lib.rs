//! Eight programs with Thalweg's actors, in `examples/`.
//!
//! ```text
//! cargo run -p thalweg-example-actors --example supervisor
//! ```
//!
//! The page for those who come from smarm is tested here, too: every Rust snippet of `docs/from/smarm.md` is compiled and run.

/// The page for users of smarm.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from/smarm.md")]
struct FromSmarm;
