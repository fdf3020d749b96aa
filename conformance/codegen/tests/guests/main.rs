//! Programs in Rust open guests: the tests' guest in C, and versions of it that are wrong.

mod calls;
mod closing;
mod library;
mod opening;
mod versions;
