//! The program as `make run` calls it, with hosts that say what the test wants.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

/// One stage at a time: while another test starts a program, that program's copy of this one's
/// files would keep a script just written from being run ("text file busy").
static TURN: Mutex<()> = Mutex::new(());

/// Hosts, and a directory with three lines that match.
struct Stage {
    folder: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Stage {
    fn new() -> Stage {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let stage = Stage {
            folder: tempfile::tempdir().unwrap(),
            _turn,
        };
        fs::create_dir(stage.path("searched")).unwrap();
        fs::write(stage.path("searched/a"), "needle\nhay\nneedle\n").unwrap();
        fs::write(stage.path("searched/.b"), "needle").unwrap();
        for host in ["rust", "c", "cpp", "python", "node", "nim"] {
            stage.host(
                host,
                r#"echo '{"matches":3,"lines_sum":5,"first_match_ns":1,"total_ns":2}'"#,
            );
        }
        fs::write(stage.path("library"), "").unwrap();
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn host(&self, name: &str, script: &str) {
        fs::write(self.path(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, pattern: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_search-run"));
        for name in ["library", "rust", "c", "cpp", "python", "node", "nim"] {
            command.arg(format!("--{name}")).arg(self.path(name));
        }
        let searched = self.path("searched");
        for name in ["--script", "--node-script"] {
            command.arg(name).arg(self.path("library"));
        }
        command
            .args(["--pattern", pattern, "--dir"])
            .arg(searched)
            .output()
            .unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn agreement_prints_the_table_and_succeeds() {
    let output = Stage::new().run("needle");
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}{errors}");
    for host in [
        "direct",
        "Rust",
        "C",
        "C++",
        "C++ async",
        "Python",
        "Python async",
        "Node",
        "Nim",
    ] {
        assert!(
            out.contains(&format!("\n  {host:<12}        3")),
            "{host} in {out}"
        );
    }
    assert!(out.contains("grep -raF -c: 3 lines in 2 files."), "{out}");
    assert_eq!(errors, "", "no bar where there is no terminal");
}

#[test]
fn a_host_that_finds_something_else_is_named_and_the_run_fails() {
    let stage = Stage::new();
    stage.host(
        "c",
        r#"echo '{"matches":2,"lines_sum":4,"first_match_ns":1,"total_ns":2}'"#,
    );
    let output = stage.run("needle");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("C found 2 lines, grep 3"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_host_that_finds_as_many_other_lines_is_named_and_the_run_fails() {
    let stage = Stage::new();
    stage.host(
        "python",
        r#"echo '{"matches":3,"lines_sum":6,"first_match_ns":1,"total_ns":2}'"#,
    );
    let output = stage.run("needle");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("Python found as many"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_host_that_fails_ends_the_run_with_what_it_said() {
    let stage = Stage::new();
    stage.host("c", "echo the library is of another version >&2; exit 1");
    let output = stage.run("needle");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("C: exit status: 1: the library is of another version"));
}

#[test]
fn a_pattern_that_does_not_make_sense_is_refused_before_anything_runs() {
    for pattern in ["", "two\nlines"] {
        let output = Stage::new().run(pattern);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("the pattern"));
        assert!(output.stdout.is_empty());
    }
}
