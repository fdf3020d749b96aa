//! The command line.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::{Args, Parser, Subcommand};

use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::{Report, SCHEMA};
use crate::workloads::{self, Workload};
use crate::{cell, csv, machine, rust_host, table, tools};

#[derive(Debug, Parser)]
#[command(
    name = "thalweg-bench",
    version,
    about = "Measures Thalweg against its peers, in the same run"
)]
struct CommandLine {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Say which workloads there are
    List,
    /// Run workloads and print their figures as a Markdown table
    Run(Run),
    /// The Rust host program: takes one sample a line of its input
    #[command(hide = true)]
    Host,
    /// One cell of a workload: takes one sample a line of its input
    #[command(hide = true)]
    Cell,
}

#[derive(Args, Debug)]
struct Run {
    /// Which workloads; all where none is named
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Short samples: shows that everything works, judges nothing
    #[arg(long)]
    quick: bool,
    /// Samples of each side, at least 5; overrules the workloads' own numbers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(5..))]
    samples: Option<u16>,
    /// Write the result file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write every sample, one a line
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Measure although this is a debug build; the result says so and judges nothing
    #[arg(long)]
    allow_debug: bool,
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    // Its own help and errors end here, the latter with 2.
    let done = match CommandLine::parse().action {
        Action::List => list(),
        Action::Run(run) => execute(&run),
        Action::Host => rust_host::serve(),
        Action::Cell => cell::serve(io::stdin().lock(), io::stdout().lock()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("thalweg-bench: {problem}");
            ExitCode::from(problem.exit_status())
        }
    }
}

fn list() -> Result<(), Problem> {
    print(&workloads::catalogue())
}

fn execute(run: &Run) -> Result<(), Problem> {
    let chosen = workloads::choose(&run.names)?;
    if tools::profile() == "debug" && !run.allow_debug {
        return Err(Problem::NotReady(
            "this is a debug build: build with --release, or say --allow-debug and believe nothing"
                .to_owned(),
        ));
    }
    let report = measure(&chosen, Lab::new(run.quick, run.samples.map(usize::from)))?;
    print(&table::markdown(&report))?;
    if let Some(file) = &run.json {
        let mut text = serde_json::to_string_pretty(&report).expect("a report has no odd keys");
        text.push('\n');
        fs::write(file, text).map_err(Problem::io(file.display().to_string()))?;
    }
    if let Some(file) = &run.csv {
        fs::write(file, csv::samples(&report)).map_err(Problem::io(file.display().to_string()))?;
    }
    Ok(())
}

/// Load average from which on somebody else is at work: a hot call then finds both processors taken, and sleeps where it
/// would have spun.
const BUSY: f64 = 0.5;

fn measure(chosen: &[&Workload], mut lab: Lab) -> Result<Report, Problem> {
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let host = machine::describe();
    let load = machine::load();
    if load.parse().is_ok_and(|load: f64| load > BUSY) {
        eprintln!(
            "thalweg-bench: this machine is not idle (load {load}): quote nothing of this run"
        );
    }
    lab.knobs.insert("load_at_start".to_owned(), load);
    let mut results = Vec::new();
    for workload in chosen {
        let rows = (workload.run)(&mut lab);
        lab.end();
        results.extend(rows.map_err(|problem| named(workload, problem))?);
    }
    Ok(Report {
        schema: SCHEMA,
        suite: format!("thalweg-bench {}", env!("CARGO_PKG_VERSION")),
        started,
        host,
        tools: tools::versions(),
        commit: lab.commit(),
        peers: lab.peers,
        knobs: lab.knobs,
        results,
    })
}

fn named(workload: &Workload, problem: Problem) -> Problem {
    let name = workload.name;
    match problem {
        Problem::Check(text) => Problem::Check(format!("{name}: {text}")),
        Problem::Host(text) => Problem::Host(format!("{name}: {text}")),
        other => other,
    }
}

fn print(text: &str) -> Result<(), Problem> {
    io::stdout()
        .write_all(text.as_bytes())
        .map_err(Problem::io("standard output"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn fewer_than_five_samples_are_refused() {
        assert!(CommandLine::try_parse_from(["lab", "run", "--samples", "4"]).is_err());
        assert!(CommandLine::try_parse_from(["lab", "run", "--samples", "5"]).is_ok());
    }
}
