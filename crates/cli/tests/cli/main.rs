//! Runs the `thalweg` command.

mod bench;
mod call;
mod compatible;
mod config;
mod conformance;
mod describe;
mod r#gen;
mod guests;
mod library;
