//! `thalweg bench`: which program it starts, and its error if there is none.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Creates a program. Another process writes the file: while this process has a file open for
/// writing, a child that another test forks inherits it, and the kernel refuses to execute the file
/// ("text file busy").
fn install(program: &Path, contents: &[u8]) {
    let mut install = Command::new("install")
        .args(["-m", "755", "/dev/stdin"])
        .arg(program)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    install.stdin.take().unwrap().write_all(contents).unwrap();
    assert!(install.wait().unwrap().success());
}

/// Runs a copy of the command in `folder`, which does not contain the real lab.
fn bench(folder: &Path, path: &Path) -> Output {
    let command = folder.join("thalweg");
    install(
        &command,
        &std::fs::read(env!("CARGO_BIN_EXE_thalweg")).unwrap(),
    );
    Command::new(&command)
        .args(["bench", "run", "--quick", "a b"])
        .env("PATH", path)
        .output()
        .unwrap()
}

/// Creates a lab that prints its name and arguments, and exits with 7.
fn lab(folder: &Path, name: &str) {
    let script = format!("#!/bin/sh\nprintf '{name}'\nprintf ' [%s]' \"$@\"\nexit 7\n");
    install(&folder.join("thalweg-bench"), script.as_bytes());
}

#[test]
fn lab_next_to_the_command_precedes_path_and_gets_all_arguments() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    lab(there.path(), "there");
    let output = bench(here.path(), there.path());
    assert_eq!(output.stdout, b"there [run] [--quick] [a b]");
    assert_eq!(output.status.code(), Some(7));
    lab(here.path(), "here");
    let output = bench(here.path(), there.path());
    assert_eq!(output.stdout, b"here [run] [--quick] [a b]");
}

#[test]
fn missing_lab_is_an_error_that_tells_how_to_build_it() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let output = bench(here.path(), there.path());
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("cargo build --release -p thalweg-bench"),
        "{error}"
    );
}
