//! The command line.

mod baselines;
mod measuring;
mod regression;
mod reporting;
mod running;
mod serving;
mod sweeping;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::problem::Problem;
use crate::{baseline, catalogue, cell, doctor, machine, rust_host};

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
    /// List the workloads
    List(List),
    /// Run workloads and print their figures as a Markdown table
    Run(running::Run),
    /// List, show or save the baselines of this machine
    Baseline(baselines::Baselines),
    /// Compare a run with the baseline.
    ///
    /// Exit status: 0 no row is worse; 1 a row is worse by more than the threshold and outside of
    /// this run's noise; 2 the run cannot be judged.
    Regress(regression::Regress),
    /// Run a workload at every point of a grid of its knobs, and report the best point
    Sweep(sweeping::Sweep),
    /// Write a run as Markdown, CSV and a page with charts
    Report(reporting::Reporting),
    /// Serve the page of the benchmark `echo_nginx` from nginx
    Serve(serving::Serve),
    /// Report what makes this machine unsuitable for measuring, and how to fix it
    Doctor(Doctor),
    /// The Rust host program: takes one sample per input line
    #[command(hide = true)]
    Host,
    /// One cell of a workload: takes one sample per input line
    #[command(hide = true)]
    Cell,
}

#[derive(Args, Debug)]
struct List {
    /// List only the workloads of this group
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
}

#[derive(Args, Debug)]
struct Doctor {
    /// Print JSON: the `host` object of every result
    #[arg(long)]
    json: bool,
    /// Print the name of this machine's folder below benchmarks/results
    #[arg(long, conflicts_with = "json")]
    name: bool,
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    // Clap prints its own help and errors here and exits; errors exit with 2.
    let done = match CommandLine::parse().action {
        Action::List(list) => catalogue::catalogue(&list.groups).and_then(|text| print(&text)),
        Action::Run(run) => return status(running::execute(&run)),
        Action::Baseline(baselines) => baselines::execute(&baselines),
        Action::Regress(regress) => return regression::execute(&regress),
        Action::Sweep(sweep) => sweeping::execute(&sweep),
        Action::Report(report) => return status(reporting::execute(&report)),
        Action::Serve(serve) => serving::execute(&serve),
        Action::Doctor(doctor) => examine(&doctor),
        Action::Host => rust_host::serve(),
        Action::Cell => cell::serve(io::stdin().lock(), io::stdout().lock()),
    };
    status(done.map(|()| 0))
}

/// The exit status for the result of a command. An error is printed first.
fn status(done: Result<u8, Problem>) -> ExitCode {
    match done {
        Ok(status) => ExitCode::from(status),
        Err(problem) => {
            tell(&problem);
            ExitCode::from(problem.exit_status())
        }
    }
}

fn examine(doctor: &Doctor) -> Result<(), Problem> {
    let host = machine::describe();
    if doctor.name {
        print(&(baseline::name_of(&host) + "\n"))
    } else if doctor.json {
        let text = serde_json::to_string_pretty(&host).expect("a host has no odd keys");
        print(&(text + "\n"))
    } else {
        print(&doctor::text(&doctor::examine(&host)))
    }
}

fn print(text: &str) -> Result<(), Problem> {
    io::stdout()
        .write_all(text.as_bytes())
        .map_err(Problem::io("standard output"))
}

fn tell(what: impl std::fmt::Display) {
    eprintln!("thalweg-bench: {what}");
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

    #[test]
    fn a_duration_is_written_as_people_write_it() {
        for (text, good) in [
            ("10s", true),
            ("1h 30m", true),
            ("10", false),
            ("0s", false),
        ] {
            let parsed = CommandLine::try_parse_from(["lab", "run", "--duration", text]);
            assert_eq!(parsed.is_ok(), good, "{text}");
        }
    }

    #[test]
    fn a_threshold_is_a_number_of_percent() {
        for (text, good) in [
            ("5", true),
            ("2.5", true),
            ("-1", false),
            ("x", false),
            ("NaN", false),
        ] {
            let option = format!("--threshold={text}");
            let parsed = CommandLine::try_parse_from(["lab", "regress", &option]);
            assert_eq!(parsed.is_ok(), good, "{text}");
        }
    }

    #[test]
    fn a_report_is_of_files_or_of_a_new_run() {
        let parse = |arguments: &[&str]| {
            CommandLine::try_parse_from([&["lab", "report"], arguments].concat()).is_ok()
        };
        assert!(parse(&["--from", "a.json", "--from", "b.json"]));
        assert!(parse(&["idle", "--quick"]));
        assert!(!parse(&["idle", "--from", "a.json"]));
        assert!(!parse(&["--quick", "--from", "a.json"]));
    }
}
