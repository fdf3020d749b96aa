//! `thalweg bench` from outside: whom it starts, and what when nobody is there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// The tests take turns: a child forked while the other test still writes a program inherits that open file, and
/// the kernel refuses to run a program that somebody may write ("text file busy").
static TURNS: Mutex<()> = Mutex::new(());

/// A copy of the command in `folder`, where no real lab lies beside it.
fn bench(folder: &Path, path: &Path) -> Output {
    let command = folder.join("thalweg");
    fs::copy(env!("CARGO_BIN_EXE_thalweg"), &command).unwrap();
    Command::new(&command)
        .args(["bench", "run", "--quick", "a b"])
        .env("PATH", path)
        .output()
        .unwrap()
}

/// A lab that says how it was called and exits with 7.
fn lab(folder: &Path, name: &str) {
    let program = folder.join("thalweg-bench");
    fs::write(
        &program,
        format!("#!/bin/sh\nprintf '{name}'\nprintf ' [%s]' \"$@\"\nexit 7\n"),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_lab_beside_it_comes_before_the_one_on_path_and_gets_everything() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
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
fn without_a_lab_it_says_how_to_get_one() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let output = bench(here.path(), there.path());
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("cargo build --release -p thalweg-bench"),
        "{said}"
    );
}
