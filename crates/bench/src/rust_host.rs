//! The Rust host program: this binary again, taking one sample a line like the programs of other languages.

use std::env;
use std::io::{self, BufRead, Write};
use std::process::Command;

use thalweg::Failure;
use thalweg_lab::LabService;
use thalweg_lab::bare::Bare;
use thalweg_lab::lab::LabClient;

use crate::placement;
use crate::problem::Problem;

mod block;
mod completions;
mod e2e;
mod reading;
mod ticks;

/// How to start it.
///
/// # Errors
/// This program's own file cannot be found.
pub fn command() -> Result<Command, Problem> {
    let exe = env::current_exe().map_err(Problem::io("cannot find this program's own file"))?;
    let mut command = Command::new(exe);
    command.arg("host");
    Ok(command)
}

/// Serves standard input until it ends. The lines are those of [`crate::workloads::lab_hosts`].
///
/// # Errors
/// A line that is no command, or a call that did not go as it must.
pub fn serve() -> Result<(), Problem> {
    let lab = LabClient::start(LabService::default).map_err(failed)?;
    let mut bare = Bare::start().map_err(Problem::io("cannot start the bare thread"))?;
    let calls = completions::Calls::open()?;
    let mut arrays = reading::Arrays::default();
    let mut kept = Vec::new();
    lab.nop().wait().map_err(ended)?;
    lab.nop_async().wait().map_err(ended)?;
    bare.call();
    placement::move_caller()?;
    answer("{\"ready\": true}")?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(Problem::io("standard input"))?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let text = match words.as_slice() {
            ["nop", numbers @ ..] => block::timed(numbers, || lab.nop().wait().map_err(ended))?,
            ["nop-async", numbers @ ..] => {
                block::timed(numbers, || lab.nop_async().wait().map_err(ended))?
            }
            ["tally", numbers @ ..] => {
                block::timed(numbers, || lab.tally(1).wait().map(drop).map_err(ended))?
            }
            ["bare", numbers @ ..] => block::timed(numbers, || {
                bare.call();
                Ok(())
            })?,
            ["complete", count] => calls.complete(block::number(count)?)?,
            ["paced", count, per_s] => calls.paced(block::number(count)?, block::number(per_s)?)?,
            ["views", count] => reading::views(&lab, block::number(count)?)?,
            ["objects", count] => reading::objects(&lab, block::number(count)?)?,
            ["array", count] => arrays.whole(&lab, block::number(count)?)?,
            ["kept", count] => arrays.kept(&lab, block::number(count)?)?,
            ["tick-views", count] => ticks::views(&lab, block::number(count)?)?,
            ["tick-array", count] => ticks::array(&mut kept, &lab, block::number(count)?)?,
            [stream, count] if stream.starts_with("stream-") => {
                let how = stream.trim_start_matches("stream-");
                ticks::whole(&lab, how, block::number(count)?)?
            }
            [e2e, numbers @ ..] if e2e.starts_with("e2e-") => {
                e2e::run(e2e.trim_start_matches("e2e-"), numbers)?
            }
            ["verify", count] => reading::verify(&lab, block::number(count)?)?,
            _ => return Err(Problem::Host(format!("not a command: {line}"))),
        };
        answer(&text)?;
    }
    bare.stop();
    Ok(())
}

fn answer(text: &str) -> Result<(), Problem> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")
        .and_then(|()| out.flush())
        .map_err(Problem::io("standard output"))
}

/// A call or a stream that ended otherwise than well.
fn failed(failure: Failure) -> Problem {
    Problem::Check(failure.to_string())
}

fn ended<E: std::fmt::Debug>(error: thalweg::CallError<E>) -> Problem {
    Problem::Check(format!("a call ended with {error:?}"))
}
