//! `thalweg compatible`: whether programs that were generated from one WIT open a library of another.

use crate::output::Output;
use clap::Args;
use std::path::PathBuf;
use thalweg_bindgen::{CompatibilityReport, Difference, SourceError, check_compatibility, parse};

#[derive(Debug, Args)]
pub struct Arguments {
    /// The WIT file or folder that programs were generated from.
    program: PathBuf,
    /// The one that the library is built from.
    library: PathBuf,
}

/// Compares the two. Status 1: the program does not open the library.
///
/// # Errors
/// One of them is not a package.
pub fn run(arguments: &Arguments) -> Result<Output, SourceError> {
    let program = parse(&arguments.program)?;
    let library = parse(&arguments.library)?;
    let CompatibilityReport {
        differences,
        additions,
    } = check_compatibility(&program, &library);
    let lines = |found: &[Difference]| -> String {
        found.iter().map(|found| format!("{found}\n")).collect()
    };
    if !differences.is_empty() {
        return Ok(Output {
            stdout: lines(&additions),
            stderr: lines(&differences),
            status: 1,
        });
    }
    let (package, version) = (&library.name, &library.version);
    // All functions of the program are in the library.
    let functions = match library.functions.len() - program.functions.len() {
        0 => "no function more".to_owned(),
        1 => "a function more".to_owned(),
        more => format!("{more} functions more"),
    };
    Ok(Output::done(format!(
        "{package} {version} serves programs of {}: {functions}\n{}",
        program.version,
        lines(&additions)
    )))
}
