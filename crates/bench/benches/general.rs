//! `cargo bench --bench general`: the runtime's workloads, with the knobs of the environment.
//! Arguments after `--` are passed to `thalweg-bench run`: `cargo bench --bench general -- --quick
//! --json FILE`.

use std::env;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    // Cargo says so; without it this is a test of whether the file compiles.
    let (told, more): (Vec<_>, Vec<_>) = arguments.into_iter().partition(|one| one == "--bench");
    if told.is_empty() {
        return ExitCode::SUCCESS;
    }
    let status = Command::new(env!("CARGO_BIN_EXE_thalweg-bench"))
        .args(["run", "--group", "runtime"])
        .args(more)
        .status();
    match status.map(|status| status.code()) {
        Ok(Some(code)) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        _ => ExitCode::FAILURE,
    }
}
