//! The `thalweg` command.
//!
//! - `thalweg new` creates a service.
//! - `thalweg gen` generates typed code from WIT, for services and for hosts.
//! - `thalweg describe` prints the interface of a library as WIT.
//! - `thalweg call` calls functions of a library, with JSON.
//! - `thalweg package` builds a wheel, an npm package or a tarball of a service.
//! - `thalweg headers` prints the folder of the C headers that a service uses.
//! - `thalweg compatible` checks whether programs of one WIT version can open a library of another
//!   version.
//! - `thalweg config` prints the settings of a runtime on this machine.
//! - `thalweg conformance` runs the conformance scenarios in every language.
//! - `thalweg bench` starts the benchmark lab.

mod bench;
mod call;
mod cargo;
mod compatible;
mod config;
mod conformance;
mod describe;
mod description;
mod files;
mod find;
mod generate;
mod headers;
mod library;
mod new;
mod output;
mod package;
mod value;

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
    /// The folder has the name of the service. It appears complete, or not at all. Exit status: 0;
    /// 2 an error.
    New(new::Arguments),
    /// Generate typed code from WIT.
    ///
    /// Files are written only after everything was generated without an error, and each file is
    /// replaced atomically. Exit status: 0 success; 1 with --check, a file is out of date; 2 an
    /// error.
    Gen(generate::Arguments),
    /// Print the interface of a library as WIT.
    ///
    /// A library does not contain the documentation and the names of its types. Exit status: 0; 2 an
    /// error.
    Describe(describe::Arguments),
    /// Call functions of a library, with JSON.
    ///
    /// Prints each result on one line, and each record of a stream. `"$1"` is the first resource that
    /// the calls returned. Exit status: 0; 1 the typed error of a call, as JSON on standard error; 2
    /// an error.
    Call(call::Arguments),
    /// Check whether programs of one WIT version can open a library of another version.
    ///
    /// Lists all incompatible differences, and the additions of each side. Exit status: 0
    /// compatible; 1 not compatible; 2 an error.
    Compatible(compatible::Arguments),
    /// Print the settings of the runtime with their sources, and the properties of the machine.
    ///
    /// An environment variable overrides the program's configuration, which overrides the default.
    /// Exit status: 0 success; 2 an environment variable has an invalid value.
    Config(config::Arguments),
    /// Run the conformance scenarios in every language, and write the page with the results.
    ///
    /// Exit status: 0 all scenarios passed that are not pending; 1 a scenario failed or did not
    /// run, a pending one passed, or with --check the page is out of date; 2 an error.
    Conformance(conformance::Arguments),
    /// Build a service in release mode and write a Python wheel, an npm package or a tarball for C.
    ///
    /// Run it in the folder of the service. Exit status: 0; 2 an error.
    Package(package::Arguments),
    /// Print the folder of the C headers of the version that a service depends on.
    ///
    /// Use it as `cc -I"$(thalweg headers)" ..`. Exit status: 0; 2 an error.
    Headers(headers::Arguments),
    /// Run benchmarks: starts thalweg-bench.
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let output = match Arguments::parse().command {
        Command::Gen(arguments) => generate::run(&arguments).unwrap_or_else(Output::failed),
        Command::Describe(arguments) => describe::run(&arguments).unwrap_or_else(Output::failed),
        Command::Call(arguments) => call::run(&arguments).unwrap_or_else(Output::failed),
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
