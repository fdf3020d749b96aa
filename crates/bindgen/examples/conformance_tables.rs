//! Writes the tables of the conformance runner in C: `conformance_tables WIT FOLDER`. Run by `conformance/c/test.sh`.

use std::error::Error;
use std::path::Path;

use thalweg_bindgen::{c, parse};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [wit, folder] = &arguments[..] else {
        return Err("usage: conformance_tables WIT FOLDER".into());
    };
    let output = c::conformance_tables(&parse(Path::new(wit))?)?;
    std::fs::write(Path::new(folder).join(output.path), output.contents)?;
    Ok(())
}
