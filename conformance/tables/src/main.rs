//! Writes the tables of the conformance runners: `conformance_tables LANGUAGE WIT FOLDER`.
//!
//! A language without reflection cannot convert a value of any type from and to JSON. Its runner
//! needs code for each type and each method of the package. This program writes it, and the runner's
//! test script runs the program. A further language is a row in [`LANGUAGES`] and a module.

mod c;
mod cpp;
mod nim;
mod source;

use std::error::Error;
use std::path::Path;

use thalweg_bindgen::model::Package;
use thalweg_bindgen::{Output, SourceError, parse};

/// Writes the tables of a package for one language.
type Tables = fn(&Package) -> Result<Output, SourceError>;

/// The languages.
const LANGUAGES: &[(&str, Tables)] =
    &[("c", c::tables), ("cpp", cpp::tables), ("nim", nim::tables)];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [language, wit, folder] = &arguments[..] else {
        return Err("usage: conformance_tables LANGUAGE WIT FOLDER".into());
    };
    let known = LANGUAGES.iter().find(|(name, _)| *name == *language);
    let Some((_, tables)) = known else {
        let names: Vec<_> = LANGUAGES.iter().map(|(name, _)| *name).collect();
        return Err(format!("the languages are: {}", names.join(", ")).into());
    };
    let Output { path, contents } = tables(&parse(Path::new(wit))?)?;
    std::fs::write(Path::new(folder).join(path), contents)?;
    Ok(())
}
