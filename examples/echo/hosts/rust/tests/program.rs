//! The program as it is called.

use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_echo-rust");

fn prints_the_lines_of_the_others(arguments: &[&str]) {
    let output = Command::new(PROGRAM).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let expected = include_str!("../../../expected.txt");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn it_prints_what_the_others_print() {
    prints_the_lines_of_the_others(&[]);
}

/// The guest in C, which is compiled now as the README says.
fn guest() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../..");
    let target = Path::new(PROGRAM)
        .ancestors()
        .nth(2)
        .expect("target/debug/echo-rust");
    let run = |command: &mut Command| {
        let status = command
            .current_dir(&root)
            .env("CARGO_TARGET_DIR", target)
            .status();
        assert!(status.expect("it can be started").success(), "{command:?}");
    };
    run(&mut Command::new("scripts/generate.sh"));
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut generate = Command::new(target.join("debug/thalweg"));
    run(generate
        .args(["gen", "--guest", "c", "examples/echo/wit", "--out"])
        .arg(out));
    let library = out.join("libecho_guest.so");
    run(Command::new("cc")
        .args(["-shared", "-fPIC", "-pthread", "-Ibindings/c/include", "-I"])
        .arg(out.join("guest-c"))
        .args(["examples/echo/guests/c/echo.c", "-o"])
        .arg(&library));
    library
}

#[test]
fn it_prints_the_same_with_a_guest() {
    let address = format!("thread:{}", guest().display());
    prints_the_lines_of_the_others(&[&address]);
}

#[test]
fn it_tells_why_a_guest_cannot_be_opened() {
    let output = Command::new(PROGRAM)
        .arg("thread:/no/such/guest.so")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("/no/such/guest.so"), "{errors}");
}
