//! The `thalweg` command.
//!
//! `thalweg gen` writes typed code from WIT: what a service implements and what its callers call, in each language.
//! `thalweg compatible` says whether programs of one WIT open a library of another.
//! `thalweg config` says what a runtime would have here, and why.
//! `thalweg bench` starts the lab.
//! `thalweg conformance` runs the scenarios in every language.

mod bench;
mod compatible;
mod config;
mod conformance;
mod files;
mod find;
mod generate;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Typed calls and streams between languages, in one process.
#[derive(Debug, Parser)]
#[command(name = "thalweg", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write typed code from WIT.
    ///
    /// Exit status: 0 done, or up to date; 1 with --check, something is not up to date; 2 an error.
    Gen(generate::Arguments),
    /// Say whether programs that were generated from one WIT open a library of another.
    ///
    /// Exit status: 0 they do; 1 they do not, and the first place says why; 2 an error.
    Compatible(compatible::Arguments),
    /// Print the runtime's settings, where each came from, and what the machine offers.
    ///
    /// The environment goes before what a program says, which goes before the default. Exit status: 0; 2 a variable is no good.
    Config(config::Arguments),
    /// Run the conformance scenarios in every language and write the matrix.
    ///
    /// Exit status: 0 every cell is full; 1 one is not, or with --check the page is not up to date; 2 an error.
    Conformance(conformance::Arguments),
    /// Measure what each part costs: starts thalweg-bench.
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Gen(arguments) => match generate::run(&arguments) {
            Ok(generate::Outcome::Done) => ExitCode::SUCCESS,
            Ok(generate::Outcome::Outdated) => ExitCode::from(1),
            Err(error) => failed(&error.to_string()),
        },
        Command::Compatible(arguments) => match compatible::run(&arguments) {
            Ok(Ok(said)) => {
                println!("{said}");
                ExitCode::SUCCESS
            }
            Ok(Err(difference)) => {
                eprintln!("{difference}");
                ExitCode::from(1)
            }
            Err(error) => failed(&error.to_string()),
        },
        Command::Config(arguments) => match config::run(&arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error.to_string()),
        },
        Command::Conformance(arguments) => match conformance::run(&arguments) {
            Ok(wrong) if wrong.is_empty() => ExitCode::SUCCESS,
            Ok(wrong) => {
                eprintln!("{}", wrong.join("\n"));
                ExitCode::from(1)
            }
            Err(error) => failed(&error),
        },
        Command::Bench(arguments) => match bench::run(&arguments) {
            Ok(never) => match never {},
            Err(error) => failed(&error),
        },
    }
}

fn failed(error: &str) -> ExitCode {
    eprintln!("{error}");
    ExitCode::from(2)
}
