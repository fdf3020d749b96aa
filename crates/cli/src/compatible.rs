//! `thalweg compatible`: whether programs that were generated from one WIT open a library of another.

use clap::Args;
use std::path::PathBuf;
use thalweg_bindgen::{Difference, Refused, compatible, parse};

#[derive(Debug, Args)]
pub struct Arguments {
    /// The WIT file or folder that programs were generated from.
    program: PathBuf,
    /// The one that the library is built from.
    library: PathBuf,
}

/// What to say of them.
pub fn run(arguments: &Arguments) -> Result<Result<String, Difference>, Refused> {
    let program = parse(&arguments.program)?;
    let library = parse(&arguments.library)?;
    Ok(compatible(&program, &library).map(|more| {
        let (package, version) = (&library.name, &library.version);
        let functions = match more {
            0 => "no function more".to_owned(),
            1 => "a function more".to_owned(),
            more => format!("{more} functions more"),
        };
        format!(
            "{package} {version} serves programs of {}: {functions}",
            program.version
        )
    }))
}
