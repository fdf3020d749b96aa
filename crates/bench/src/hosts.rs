//! Finds the host programs and the libraries, and builds the host programs in C, C++ and Nim.
//!
//! The lab runs from its checkout: it compiles or interprets the programs of other languages from
//! `crates/bench/hosts`.

mod go;

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::problem::Problem;

pub use go::{go_guest, go_program, go_version, resty_ffi_go};

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

/// The C++ compiler: `CXX`, else `c++`.
#[must_use]
pub fn cpp_compiler() -> OsString {
    env::var_os("CXX").unwrap_or_else(|| "c++".into())
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
    compile(&C, name, name, &[])
}

/// Compiles `hosts/c/NAME.c` to a shared library.
///
/// # Errors
/// The compiler is missing or reports an error.
pub fn c_library(name: &str) -> Result<PathBuf, Problem> {
    compile(&C, name, &format!("lib{name}.so"), &["-shared", "-fPIC"])
}

/// Compiles `crates/bench/guest/lab_guest.c`, the service in C, to the shared library `product` with more options.
///
/// # Errors
/// The compiler is missing or reports an error.
pub fn c_guest(product: &str, options: &[&str]) -> Result<PathBuf, Problem> {
    let kind = ["-shared", "-fPIC", "-fvisibility=hidden"];
    let kind: Vec<&OsStr> = kind.iter().chain(options).map(OsStr::new).collect();
    compile_file(&C, "crates/bench/guest/lab_guest.c", product, &kind)
}

/// Compiles `echo.c`, a library for lua-resty-ffi of `bindings/lua/tests/resty_ffi`.
///
/// # Errors
/// The compiler is missing or reports an error.
pub fn resty_ffi_c() -> Result<PathBuf, Problem> {
    let kind = ["-shared", "-fPIC"].map(OsStr::new);
    let source = "bindings/lua/tests/resty_ffi/echo.c";
    compile_file(&C, source, "libffi_c_echo.so", &kind)
}

/// Compiles `hosts/cpp/NAME.cpp` to a program with the options of the C programs. It takes several
/// seconds, so this process compiles each program once.
///
/// # Errors
/// The compiler is missing or reports an error.
pub fn cpp_program(name: &str) -> Result<PathBuf, Problem> {
    let product = format!("{name}-cpp");
    once(&product, || compile(&CPP, name, &product, &[]))
}

/// Compiles `hosts/nim/NAME.nim` to a program, as optimized as those in C. It takes several seconds,
/// so this process compiles each program once.
///
/// # Errors
/// Nim is missing or reports an error.
pub fn nim_program(name: &str) -> Result<PathBuf, Problem> {
    let product = format!("{name}-nim");
    once(&product, || compile_nim(name, &product))
}

/// What `build` returns, which runs once for each `product` of this process.
fn once(
    product: &str,
    build: impl FnOnce() -> Result<PathBuf, Problem>,
) -> Result<PathBuf, Problem> {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(program) = built.get(product) {
        return Ok(program.clone());
    }
    let program = build()?;
    built.insert(product.to_owned(), program.clone());
    Ok(program)
}

fn compile_nim(name: &str, product: &str) -> Result<PathBuf, Problem> {
    let root = root();
    if Command::new("nim").arg("--version").output().is_err() {
        return Err(Problem::NotReady("Nim is not installed".to_owned()));
    }
    let mut command = Command::new("nim");
    command.args(["c", "--hints:off", "--mm:orc", "-d:danger"]);
    command.args(NIM_PATH.map(|path| format!("--path:{}", root.join(path).display())));
    let source = format!("crates/bench/hosts/nim/{name}.nim");
    build(product, |fresh| {
        // Its own cache: another run may compile the same program.
        command.arg(format!("--nimcache:{}.cache", fresh.display()));
        command.arg(format!("--out:{}", fresh.display()));
        command.arg(root.join(&source));
        finish(&mut command, "nim", &source)?;
        let cache = format!("{}.cache", fresh.display());
        fs::remove_dir_all(&cache).map_err(Problem::io(cache))
    })
}

/// The generic package and the generated modules of the Nim programs, relative to the root.
const NIM_PATH: [&str; 2] = ["bindings/nim/src", "crates/bench/generated/nim"];

/// The version of Asio (`ASIO_VERSION`: 100,000 times the major version and so on), if its headers are
/// installed.
///
/// # Errors
/// They are not installed.
pub fn asio_version() -> Result<String, Problem> {
    let script = "echo '#include <asio/version.hpp>\nASIO_VERSION' | \"$0\" -E -P -x c++ -";
    let said = Command::new("sh")
        .args(["-c", script])
        .arg(cpp_compiler())
        .output()
        .map_err(Problem::io("cannot start sh"))?;
    match String::from_utf8_lossy(&said.stdout).lines().last() {
        Some(version) if said.status.success() => Ok(version.trim().to_owned()),
        _ => Err(Problem::NotReady(
            "the peer asio is not there: apt-get install libasio-dev".to_owned(),
        )),
    }
}

/// A compiled language of host programs.
struct Language {
    compiler: fn() -> OsString,
    /// The folder in `hosts`, and the ending of a source file.
    name: &'static str,
    standard: &'static str,
}

const C: Language = Language {
    compiler: c_compiler,
    name: "c",
    standard: "-std=gnu11",
};
const CPP: Language = Language {
    compiler: cpp_compiler,
    name: "cpp",
    standard: "-std=gnu++20",
};

/// The options of all host programs. Only C++ has checks that `NDEBUG` removes.
const OPTIONS: [&str; 8] = [
    "-D_GNU_SOURCE",
    "-DNDEBUG",
    "-O2",
    "-g",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-pthread",
];

/// Compiles `source` of the folder of `language`.
fn compile(
    language: &Language,
    source: &str,
    product: &str,
    kind: &[&str],
) -> Result<PathBuf, Problem> {
    let name = language.name;
    let source = format!("crates/bench/hosts/{name}/{source}.{name}");
    let kind: Vec<&OsStr> = kind.iter().map(OsStr::new).collect();
    compile_file(language, &source, product, &kind)
}

fn compile_file(
    language: &Language,
    source: &str,
    product: &str,
    kind: &[&OsStr],
) -> Result<PathBuf, Problem> {
    let root = root();
    let Language {
        compiler, standard, ..
    } = language;
    let mut command = Command::new(compiler());
    command.arg(standard).args(OPTIONS);
    command.args(INCLUDES.map(|include| format!("-I{}", root.join(include).display())));
    build(product, |fresh| {
        command.args(kind).arg("-o").arg(fresh);
        command.arg(root.join(source)).arg("-ldl");
        finish(&mut command, &compiler().to_string_lossy(), source)
    })
}

/// Lets `compile` write a file, which becomes `product` when it is complete.
fn build(
    product: &str,
    compile: impl FnOnce(&Path) -> Result<(), Problem>,
) -> Result<PathBuf, Problem> {
    let folder = build_folder()?;
    // The output has a unique name until it is complete: another run may be starting the existing
    // file.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let fresh = folder.join(format!("{product}.{}.{number}", std::process::id()));
    compile(&fresh)?;
    let product = folder.join(product);
    fs::rename(&fresh, &product).map_err(Problem::io(product.display().to_string()))?;
    Ok(product)
}

/// Runs a compiler to its end.
fn finish(command: &mut Command, compiler: &str, source: &str) -> Result<(), Problem> {
    let status = command
        .status()
        .map_err(Problem::io(format!("cannot start {compiler}")))?;
    match status.success() {
        true => Ok(()),
        false => Err(Problem::NotReady(format!(
            "{compiler} cannot build {source}; its words are above"
        ))),
    }
}

/// The folder of the programs that the lab builds when they are needed.
///
/// # Errors
/// It cannot be created.
pub fn build_folder() -> Result<PathBuf, Problem> {
    let exe = env::current_exe().map_err(Problem::io("cannot find this program's own file"))?;
    let folder = exe.with_file_name("lab-hosts");
    fs::create_dir_all(&folder).map_err(Problem::io(folder.display().to_string()))?;
    Ok(folder)
}

/// The include folders of the C and C++ programs, relative to the root.
const INCLUDES: [&str; 8] = [
    "bindings/c/include",
    "bindings/c/tests/guests",
    "bindings/cpp/include",
    "crates/bench/generated/c",
    "crates/bench/generated/cpp",
    "crates/bench/generated/guest-c",
    "crates/bench/hosts/c",
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

/// The Node program: `THALWEG_BENCH_NODE`, else `node`.
#[must_use]
pub fn node() -> OsString {
    env::var_os("THALWEG_BENCH_NODE").unwrap_or_else(|| "node".into())
}

/// The folder with the headers of Node: next to the program, as in Node's archives and packages.
fn node_headers() -> Result<PathBuf, Problem> {
    let script = "parseInt(process.versions.node) >= 20 ? require('path').join(\
        require('fs').realpathSync(process.execPath), '../../include/node') : ''";
    let said = Command::new(node()).args(["-p", script]).output().ok();
    said.map(|said| PathBuf::from(String::from_utf8_lossy(&said.stdout).trim()))
        .filter(|headers| headers.join("node_api.h").exists())
        .ok_or_else(|| Problem::NotReady("Node 20 or newer with its headers is missing".into()))
}

/// A command that runs `hosts/node/NAME` with the arguments `before` and the addon that is compiled
/// from `peers/node/by_hand.c`.
///
/// # Errors
/// Node, its headers or the package `thalweg` is missing, or the addon cannot be compiled.
pub fn node_program(name: &str, before: Option<PathBuf>) -> Result<Command, Problem> {
    let root = root();
    let headers = node_headers()?;
    if !root.join("node_modules/thalweg/prebuilds").exists() {
        let text = "the Node package `thalweg` is not built: make build";
        return Err(Problem::NotReady(text.to_owned()));
    }
    let kind = ["-shared", "-fPIC", "-isystem"].map(OsStr::new);
    let kind = [&kind[..], &[headers.as_os_str()]].concat();
    let addon = compile_file(
        &C,
        "crates/bench/peers/node/by_hand.c",
        "by_hand.node",
        &kind,
    )?;
    let mut command = Command::new(node());
    command.arg(root.join("crates/bench/hosts/node").join(name));
    command.args(before).arg(addon);
    Ok(command)
}

/// The addon of `crates/bench/peers/node` that uses napi-rs.
///
/// # Errors
/// It was not built.
pub fn node_peer() -> Result<PathBuf, Problem> {
    built_peer("node/peer_napi.node")
}

/// A file of the peers that `make bench-peers` builds.
fn built_peer(file: &str) -> Result<PathBuf, Problem> {
    let exe = env::current_exe().map_err(Problem::io("cannot find this program's own file"))?;
    // They are next to the profile's folder; a test's executable is one folder deeper.
    let folders = exe.ancestors().skip(2).take(2);
    folders
        .map(|folder| folder.join("bench-peers").join(file))
        .find(|path| path.exists())
        .ok_or_else(|| {
            let text = format!("the peer {file} is not there: make bench-peers");
            Problem::NotReady(text)
        })
}

/// The folder with the Python module `peer_MODULE` of `crates/bench/peers/python`.
///
/// # Errors
/// The module was not built.
pub fn python_peers(module: &str) -> Result<PathBuf, Problem> {
    let file = built_peer(&format!("python/peer_{module}.py"))
        .or_else(|_| built_peer(&format!("python/peer_{module}.abi3.so")))?;
    Ok(file.with_file_name(""))
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
