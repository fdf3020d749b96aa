//! `thalweg headers`: the folder of the C headers that a service uses.

use std::path::PathBuf;

use crate::cargo::{self, Metadata};
use crate::output::Output;

/// The crate that contains the headers, and the folder in it.
const CRATE: &str = "thalweg-capi";
const FOLDER: &str = "include";

/// The arguments of `thalweg headers`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The Cargo.toml of the service [default: the one in this folder, or in the nearest folder
    /// above]
    #[arg(long, value_name = "FILE")]
    manifest_path: Option<PathBuf>,
}

/// Prints the folder.
///
/// # Errors
/// There is no cargo package here, or it does not depend on `thalweg-capi`.
pub fn run(arguments: &Arguments) -> Result<Output, cargo::Error> {
    let manifest = cargo::locate(arguments.manifest_path.as_deref())?;
    let folder = folder(&Metadata::read(&manifest)?)?;
    Ok(Output::done(format!("{}\n", folder.display())))
}

/// The folder of the headers of the version that a package depends on: they describe the ABI that
/// is compiled into its library.
///
/// # Errors
/// There is not exactly one such version.
pub fn folder(metadata: &Metadata) -> Result<PathBuf, cargo::Error> {
    let manifest = metadata.dependency(CRATE)?;
    let folder = manifest.with_file_name(FOLDER);
    if !folder.join("thalweg.h").is_file() {
        return Err(cargo::Error::Missing(folder.join("thalweg.h")));
    }
    Ok(folder)
}
