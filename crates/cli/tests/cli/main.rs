//! Runs the `thalweg` command.

mod bench;
mod compatible;
mod config;
mod conformance;
mod r#gen;
