//! Runs `thalweg-bench run` with the arguments of a bench target.

use std::env;
use std::process::{Command, ExitCode};

/// Runs the chosen workloads. Arguments after `--` of `cargo bench` are passed on.
pub fn run(chosen: &[&str]) -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    // Cargo passes it; without it this is a test of whether the file compiles.
    let (told, more): (Vec<_>, Vec<_>) = arguments.into_iter().partition(|one| one == "--bench");
    if told.is_empty() {
        return ExitCode::SUCCESS;
    }
    let status = Command::new(env!("CARGO_BIN_EXE_thalweg-bench"))
        .arg("run")
        .args(chosen)
        .args(more)
        .status();
    match status.map(|status| status.code()) {
        Ok(Some(code)) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        _ => ExitCode::FAILURE,
    }
}
