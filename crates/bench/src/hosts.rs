//! Finds the host programs and the libraries, and builds the C host programs.
//!
//! The lab runs from its checkout: it compiles or interprets the programs of other languages from
//! `crates/bench/hosts`.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::problem::Problem;

/// The checkout that this program was built from.
#[must_use]
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// The C compiler: `CC`, else `cc`.
#[must_use]
pub fn c_compiler() -> OsString {
    env::var_os("CC").unwrap_or_else(|| "cc".into())
}

/// The Python interpreter that has the package `thalweg`: `THALWEG_BENCH_PYTHON`, else the
/// checkout's virtual environment, else `python3`.
#[must_use]
pub fn python() -> OsString {
    if let Some(chosen) = env::var_os("THALWEG_BENCH_PYTHON") {
        return chosen;
    }
    let of_checkout = root().join(".venv/bin/python");
    if of_checkout.exists() {
        of_checkout.into()
    } else {
        "python3".into()
    }
}

/// The service library of `package` (`thalweg-search`), which cargo builds with this program.
///
/// # Errors
/// The library was not built.
pub fn library(package: &str) -> Result<PathBuf, Problem> {
    let file = format!("lib{}.so", package.replace('-', "_"));
    let exe = env::current_exe().map_err(Problem::io("cannot find this program's own file"))?;
    // The folder in which cargo places the dependencies of this program. A test's executable is in
    // it, too.
    let folder = exe.parent().unwrap_or(&exe);
    let places = [folder.join("deps").join(&file), folder.join(&file)];
    places
        .into_iter()
        .find(|path| path.exists())
        .ok_or_else(|| {
            Problem::NotReady(format!(
                "{file} is not beside {}: cargo build --release -p thalweg-bench",
                exe.display()
            ))
        })
}

/// Compiles `hosts/c/NAME.c` to a program. It takes a fraction of a second, so every run compiles
/// it and the program is never stale.
///
/// # Errors
/// The compiler is missing or reports an error.
pub fn c_program(name: &str) -> Result<PathBuf, Problem> {
    compile(name, name, &[])
}

/// Compiles `hosts/c/NAME.c` to a shared library.
///
/// # Errors
/// The compiler is missing or reports an error.
pub fn c_library(name: &str) -> Result<PathBuf, Problem> {
    compile(name, &format!("lib{name}.so"), &["-shared", "-fPIC"])
}

fn compile(source: &str, product: &str, kind: &[&str]) -> Result<PathBuf, Problem> {
    let root = root();
    let exe = env::current_exe().map_err(Problem::io("cannot find this program's own file"))?;
    let folder = exe.parent().unwrap_or(&root).join("lab-hosts");
    fs::create_dir_all(&folder).map_err(Problem::io(folder.display().to_string()))?;
    // The output has a unique name until it is complete: another run may be starting the existing
    // file.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let fresh = folder.join(format!("{product}.{}.{number}", std::process::id()));
    let product = folder.join(product);
    let mut command = Command::new(c_compiler());
    command.args([
        "-std=gnu11",
        "-D_GNU_SOURCE",
        "-O2",
        "-g",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pthread",
    ]);
    command.args(INCLUDES.map(|include| format!("-I{}", root.join(include).display())));
    command.args(kind).arg("-o").arg(&fresh);
    command
        .arg(root.join(format!("crates/bench/hosts/c/{source}.c")))
        .arg("-ldl");
    let compiler = c_compiler().to_string_lossy().into_owned();
    let status = command
        .status()
        .map_err(Problem::io(format!("cannot start {compiler}")))?;
    if status.success() {
        fs::rename(&fresh, &product).map_err(Problem::io(product.display().to_string()))?;
        Ok(product)
    } else {
        Err(Problem::NotReady(format!(
            "{compiler} cannot build {source}.c; its words are above"
        )))
    }
}

/// The include folders of the C programs, relative to the root.
const INCLUDES: [&str; 3] = [
    "bindings/c/include",
    "crates/bench/generated/c",
    "examples/search/generated/c",
];

/// A command that runs `hosts/python/NAME` with the generated packages on its path.
#[must_use]
pub fn python_program(name: &str) -> Command {
    let root = root();
    let mut command = Command::new(python());
    command.arg(root.join("crates/bench/hosts/python").join(name));
    let path = env::join_paths(PYTHON_PATH.map(|dir| root.join(dir)))
        .expect("the checkout's path holds no colon, or nothing would build");
    command
        .env("PYTHONPATH", path)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// The generated Python packages, relative to the root.
const PYTHON_PATH: [&str; 2] = [
    "crates/bench/generated/python",
    "examples/search/generated/python",
];

/// The folder with the Python module `peer_MODULE` of `crates/bench/peers/python`.
///
/// # Errors
/// The module was not built.
pub fn python_peers(module: &str) -> Result<PathBuf, Problem> {
    let exe = env::current_exe().map_err(Problem::io("cannot find this program's own file"))?;
    // The module is next to the profile's folder; a test's executable is one folder deeper.
    let folders = exe.ancestors().skip(2).take(2);
    folders
        .map(|folder| folder.join("bench-peers/python"))
        .find(|folder| {
            folder.join(format!("peer_{module}.py")).exists()
                || folder.join(format!("peer_{module}.abi3.so")).exists()
        })
        .ok_or_else(|| {
            Problem::NotReady(format!(
                "the peer peer_{module} is not there: make bench-peers"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_the_workspace() {
        assert!(root().join("Cargo.lock").exists());
    }

    #[test]
    fn a_library_that_was_not_built_says_how_to_build_it() {
        let problem = library("no-such-package").unwrap_err().to_string();
        assert!(problem.contains("libno_such_package.so"), "{problem}");
        assert!(problem.contains("-p thalweg-bench"), "{problem}");
    }
}
