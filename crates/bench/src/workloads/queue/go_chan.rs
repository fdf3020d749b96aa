//! `go_chan`: Go's own channel, in a separate program that is built if Go is installed.

use std::cell::RefCell;
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
    let program = HostProgram::start(
        NAME,
        Command::new(hosts::go_program(NAME, ".")?),
        Placement::Free,
    )?;
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
        let Ok(version) = hosts::go_version() else {
            return;
        };
        assert!(version.starts_with("go1."), "{version}");
        let sampler = Sampler::new(Messages::Exactly(1_000), 4, true);
        let mut side = side(16, 2, 2, sampler).unwrap();
        assert!(side.take().unwrap().ns > 0.0);
    }
}
