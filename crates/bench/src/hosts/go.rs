//! Builds the programs and libraries in Go.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::problem::Problem;

use super::{build, finish, once, root};

/// The output of `go version`.
///
/// # Errors
/// The reason why there is no Go, for the row.
pub fn go_version() -> Result<String, String> {
    let output = Command::new("go")
        .arg("version")
        .output()
        .map_err(|error| format!("the command `go` cannot be started: {error}"))?;
    if output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.trim().trim_start_matches("go version ").to_owned())
    } else {
        Err("`go version` fails".to_owned())
    }
}

/// Builds `package` of `hosts/go` as the program `name`.
///
/// # Errors
/// Go is missing or reports an error.
pub fn go_program(name: &str, package: &str) -> Result<PathBuf, Problem> {
    compile_go(name, ("crates/bench/hosts/go", package), &[])
}

/// Builds the service in Go, `crates/bench/guest/go`, as a shared library.
///
/// # Errors
/// Go is missing or reports an error.
pub fn go_guest() -> Result<PathBuf, Problem> {
    compile_go(
        "liblab_guest_go.so",
        ("crates/bench/guest/go", "."),
        &[GO_LIBRARY],
    )
}

/// Builds `echo.go`, a library for lua-resty-ffi of `bindings/lua/tests/resty_ffi`.
///
/// # Errors
/// Go is missing or reports an error.
pub fn resty_ffi_go() -> Result<PathBuf, Problem> {
    let source = ("bindings/lua/tests/resty_ffi", "echo.go");
    compile_go("libffi_go_echo.so", source, &[GO_LIBRARY])
}

const GO_LIBRARY: &str = "-buildmode=c-shared";

/// Builds a package or file of `folder`. Linking takes seconds, so this process builds each product once.
fn compile_go(
    product: &str,
    (folder, package): (&str, &str),
    options: &[&str],
) -> Result<PathBuf, Problem> {
    once(product, || {
        build(product, |fresh| {
            let mut command = Command::new("go");
            command.args(["build", "-buildvcs=false"]).args(options);
            command.arg("-o").arg(fresh).arg(package);
            command.current_dir(root().join(folder));
            finish(&mut command, "go", &format!("{package} of {folder}"))?;
            // The header of a library with exported functions, which nothing includes.
            let _ = fs::remove_file(fresh.with_extension("h"));
            Ok(())
        })
    })
}
