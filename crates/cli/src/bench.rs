//! `thalweg bench`: starts the lab, a program of its own, so that none of its peers comes with this command.

use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The lab's program.
const PROGRAM: &str = "thalweg-bench";

/// What is passed on as it stands.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// For thalweg-bench: `list`, `run`, `--help` ..
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

/// Becomes the lab: this process is then `thalweg-bench`, and its exit status is the lab's. Returns only where that
/// is not to be had.
///
/// # Errors
/// Why not, and how to get it.
pub fn run(arguments: &Arguments) -> Result<Infallible, String> {
    let program = beside().unwrap_or_else(|| PROGRAM.into());
    let error = Command::new(&program).args(&arguments.arguments).exec();
    Err(format!(
        "{} does not start: {error}\n{PROGRAM} must lie beside this program or on PATH: cargo build --release -p {PROGRAM}",
        program.display()
    ))
}

/// The one that was built with this program, before any on PATH.
fn beside() -> Option<PathBuf> {
    let here = env::current_exe().ok()?;
    let program = here.parent()?.join(PROGRAM);
    program.is_file().then_some(program)
}
