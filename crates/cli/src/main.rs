//! The `thalweg` command.
//!
//! `thalweg gen` writes typed code from WIT: what a service implements and what its callers call, in each language.
//! `thalweg new` creates a service.
//! `thalweg package` builds a wheel or a tarball of a service.
//! `thalweg headers` prints the folder of the C headers that a service uses.
//! `thalweg compatible` says whether programs of one WIT open a library of another.
//! `thalweg config` says what a runtime would have here, and why.
//! `thalweg bench` starts the lab.
//! `thalweg conformance` runs the scenarios in every language.

mod bench;
mod cargo;
mod compatible;
mod config;
mod conformance;
mod files;
mod find;
mod generate;
mod headers;
mod new;
mod output;
mod package;

use clap::{Parser, Subcommand};
use output::Output;
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
    /// Create a service in a new folder, with programs and tests in Rust, C and Python.
    ///
    /// The folder has the name of the service. It appears complete, or not at all. Exit status: 0; 2 an error.
    New(new::Arguments),
    /// Write typed code from WIT.
    ///
    /// Nothing is written before all of it is generated, and each file is replaced as a whole. Exit status: 0 done, or up to date; 1 with
    /// --check, something is not up to date; 2 an error.
    Gen(generate::Arguments),
    /// Say whether programs that were generated from one WIT open a library of another.
    ///
    /// Lists every place where they differ, and what one of them adds to the other. Exit status: 0 they do; 1 they do not; 2 an error.
    Compatible(compatible::Arguments),
    /// Print the runtime's settings, where each came from, and what the machine offers.
    ///
    /// The environment goes before what a program says, which goes before the default. Exit status: 0; 2 a variable is no good.
    Config(config::Arguments),
    /// Run the conformance scenarios in every language and write the matrix.
    ///
    /// Exit status: 0 every cell is full; 1 one is not, or with --check the page is not up to date; 2 an error.
    Conformance(conformance::Arguments),
    /// Build a service in release mode and write a Python wheel or a tarball for C.
    ///
    /// Run it in the folder of the service. Exit status: 0; 2 an error.
    Package(package::Arguments),
    /// Print the folder of the C headers of the version that a service depends on.
    ///
    /// Use it as `cc -I"$(thalweg headers)" ..`. Exit status: 0; 2 an error.
    Headers(headers::Arguments),
    /// Measure what each part costs: starts thalweg-bench.
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let output = match Arguments::parse().command {
        Command::Gen(arguments) => generate::run(&arguments).unwrap_or_else(Output::failed),
        Command::Compatible(arguments) => {
            compatible::run(&arguments).unwrap_or_else(Output::failed)
        }
        Command::Config(arguments) => config::run(&arguments).unwrap_or_else(Output::failed),
        Command::Conformance(arguments) => {
            conformance::run(&arguments).unwrap_or_else(Output::failed)
        }
        Command::New(arguments) => new::run(&arguments).unwrap_or_else(Output::failed),
        Command::Package(arguments) => package::run(&arguments).unwrap_or_else(Output::failed),
        Command::Headers(arguments) => headers::run(&arguments).unwrap_or_else(Output::failed),
        Command::Bench(arguments) => match bench::run(&arguments) {
            Ok(never) => match never {},
            Err(error) => Output::failed(error),
        },
    };
    output.print()
}
