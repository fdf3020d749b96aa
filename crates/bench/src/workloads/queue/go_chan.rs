//! `go_chan`: Go's own channel, in a separate program that is built if Go is installed.

use std::cell::RefCell;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use crate::cell::Sample;
use crate::child::HostProgram;
use crate::hosts;
use crate::interleave::Side;
use crate::placement::Placement;
use crate::problem::Problem;

use super::run::{Run, Sampler};

/// Its public name.
pub const NAME: &str = "go_chan";

/// The output of `go version`.
///
/// # Errors
/// The reason why there is no such side, for the row.
pub fn version() -> Result<String, String> {
    let output = Command::new("go")
        .arg("version")
        .output()
        .map_err(|error| format!("the command `go` cannot be started: {error}"))?;
    if output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.trim().trim_start_matches("go version ").to_owned())
    } else {
        Err("`go version` fails".to_owned())
    }
}

/// Builds the program. Go caches its builds, so a second build takes a moment.
fn program() -> Result<PathBuf, Problem> {
    let exe = env::current_exe().map_err(Problem::io("cannot find this program's own file"))?;
    let root = hosts::root();
    let folder = exe.parent().unwrap_or(&root).join("lab-hosts");
    fs::create_dir_all(&folder).map_err(Problem::io(folder.display().to_string()))?;
    // Go writes to a temporary file and renames it.
    let product = folder.join(NAME);
    let status = Command::new("go")
        .args(["build", "-buildvcs=false", "-o"])
        .arg(&product)
        .arg(".")
        .current_dir(root.join("crates/bench/hosts/go"))
        .status()
        .map_err(Problem::io("cannot start go"))?;
    if status.success() {
        Ok(product)
    } else {
        Err(Problem::NotReady(
            "go cannot build crates/bench/hosts/go; its words are above".to_owned(),
        ))
    }
}

#[derive(Deserialize)]
struct Answer {
    ns: u64,
    wrong: String,
}

/// A side that sends messages through a `chan uint64`.
///
/// # Errors
/// The program cannot be built or started.
pub fn side(
    capacity: usize,
    senders: usize,
    receivers: usize,
    mut sampler: Sampler,
) -> Result<Side<'static, Sample>, Problem> {
    // The program inherits the placement of this process.
    let program = HostProgram::start(NAME, Command::new(program()?), Placement::Free)?;
    let program = RefCell::new(program);
    Ok(Side::new(move || {
        sampler.take(|messages| {
            let line = format!("hand_over {capacity} {senders} {receivers} {messages}");
            let answer: Answer = program.borrow_mut().ask(&line)?;
            if answer.wrong.is_empty() {
                Ok(Run {
                    elapsed: Duration::from_nanos(answer.ns),
                    ..Run::default()
                })
            } else {
                Err(Problem::Check(format!("{NAME}: {}", answer.wrong)))
            }
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::queue::run::Messages;

    #[test]
    fn the_program_in_go_takes_samples_where_there_is_go() {
        let Ok(version) = version() else {
            return;
        };
        assert!(version.starts_with("go1."), "{version}");
        let sampler = Sampler::new(Messages::Exactly(1_000), 4, true);
        let mut side = side(16, 2, 2, sampler).unwrap();
        assert!(side.take().unwrap().ns > 0.0);
    }
}
