//! Runs one operation while the system refuses its Nth resource, and reports how the operation
//! ended.
//!
//! The `README.md` of this crate explains the procedure. [`fault`] counts and refuses,
//! [`allocator`] and [`filter`] consult it, [`operations`] lists the operations, [`census`] finds
//! leaks.

pub mod allocator;
pub mod census;
pub mod child;
pub mod fault;
pub mod filter;
pub mod operations;
mod service;
