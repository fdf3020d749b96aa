//! `thalweg compatible`: checks whether programs of one WIT version can open a library of another
//! version.

use crate::output::Output;
use clap::Args;
use std::path::PathBuf;
use thalweg_bindgen::{CompatibilityReport, Difference, SourceError, check_compatibility, parse};

#[derive(Debug, Args)]
pub struct Arguments {
    /// The WIT file or folder that programs were generated from.
    program: PathBuf,
    /// The WIT file or folder that the library is built from.
    library: PathBuf,
}

/// Compares the two packages. Exit status 1: the program cannot open the library.
///
/// # Errors
/// One of the packages has an error.
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
    // The library has all functions of the program, so the difference is not negative.
    let functions = match library.functions.len() - program.functions.len() {
        0 => "no additional functions".to_owned(),
        1 => "1 additional function".to_owned(),
        more => format!("{more} additional functions"),
    };
    Ok(Output::done(format!(
        "{package} {version} is compatible with programs of {}: {functions}\n{}",
        program.version,
        lines(&additions)
    )))
}
