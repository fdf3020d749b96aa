//! `thalweg bench`: starts the lab. The lab is a separate program, so this command does not depend
//! on the lab's peers.

use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The name of the lab's program.
const PROGRAM: &str = "thalweg-bench";

/// The arguments, which are passed on unchanged.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// Arguments of thalweg-bench: `list`, `run`, `--help` ..
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

/// Replaces this process with the lab, whose exit status it has from then on. Returns only on an
/// error.
///
/// # Errors
/// The lab cannot be started. The message says how to build it.
pub fn run(arguments: &Arguments) -> Result<Infallible, String> {
    let program = next_to_this_program().unwrap_or_else(|| PROGRAM.into());
    let error = Command::new(&program).args(&arguments.arguments).exec();
    Err(format!(
        "cannot start {}: {error}\n{PROGRAM} must be in the folder of this program or on PATH; to build it: cargo build --release -p {PROGRAM}",
        program.display()
    ))
}

/// The lab in the folder of this program, which takes precedence over PATH.
fn next_to_this_program() -> Option<PathBuf> {
    let here = env::current_exe().ok()?;
    let program = here.parent()?.join(PROGRAM);
    program.is_file().then_some(program)
}
