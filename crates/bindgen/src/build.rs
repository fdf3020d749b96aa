//! Generates Rust code from a build script, so that it need not be committed.
//!
//! `build.rs`:
//!
//! ```no_run
//! thalweg_bindgen::build::from_wit("wit");
//! ```
//!
//! `src/lib.rs`, for a package `me:search`:
//!
//! ```ignore
//! include!(concat!(env!("OUT_DIR"), "/search.rs"));
//! ```
//!
//! The included file contains one public module, which is called like the package. Its code is not
//! formatted, so that no `rustfmt` is needed. The functions panic on an error, which ends the build
//! with the error's text.

use crate::model::Package;
use crate::rust::names::snake;
use crate::{SourceError, from_code, parse, rust};
use std::path::{Path, PathBuf};

/// Writes the code of the package at `wit`, a file or a folder, to `OUT_DIR/<package>.rs`.
///
/// # Panics
/// The package has an error, or the file cannot be written.
pub fn from_wit(wit: impl AsRef<Path>) {
    let wit = wit.as_ref();
    let package = or_panic(parse(wit));
    let inputs = match wit.is_dir() {
        true => vec![wit.to_owned()],
        false => vec![
            wit.to_owned(),
            wit.with_file_name(format!("{}.thalweg.toml", package.name)),
        ],
    };
    write(
        &inputs,
        &snake(&package.name),
        &[module(&package, &snake(&package.name))],
    );
}

/// Writes the code of the service in the Rust file `file` to `OUT_DIR/<package>.rs`: the package's
/// module, and the module `<package>_from_code` with the glue.
///
/// # Panics
/// The file has an error, or the output cannot be written.
pub fn from_rust(file: impl AsRef<Path>) {
    let file = file.as_ref();
    let read = or_panic(from_code::from_code_unformatted(file));
    let name = snake(&read.package.name);
    let glue = in_module(&format!("{name}_from_code"), &read.glue.contents);
    write(
        &[file.to_owned()],
        &name,
        &[module(&read.package, &name), glue],
    );
}

/// The package's code as a public module called `name`.
///
/// # Panics
/// Two WIT names become the same name in Rust.
pub fn module(package: &Package, name: &str) -> String {
    in_module(name, &or_panic(rust::source(package)))
}

fn in_module(name: &str, code: &str) -> String {
    format!("pub mod {name} {{\n{code}\n}}\n")
}

fn write(inputs: &[PathBuf], name: &str, modules: &[String]) {
    for input in inputs {
        println!("cargo::rerun-if-changed={}", input.display());
    }
    let folder = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    let path = Path::new(&folder).join(format!("{name}.rs"));
    if let Err(error) = std::fs::write(&path, modules.concat()) {
        panic!("{}: {error}", path.display());
    }
}

fn or_panic<T>(result: Result<T, SourceError>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
