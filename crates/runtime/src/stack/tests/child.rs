//! Tests that end a process: they run the test binary again, as a child that runs one test.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

/// How a child process ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) signal: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

const SITUATION: &str = "THALWEG_STACK_TEST";

/// In the parent: runs the test `name` (a path relative to `stack::tests`) in a child process, and
/// returns how the child ended. In the child: runs `body` instead, which must not return.
pub(super) fn in_child(name: &str, body: impl FnOnce()) -> Ended {
    if std::env::var(SITUATION).as_deref() == Ok(name) {
        dump_no_core();
        body();
        panic!("{name} did not end the process");
    }
    let this = std::env::current_exe().expect("the test binary");
    let output = Command::new(this)
        .args(["--exact", "--nocapture", "--include-ignored"])
        .arg(format!("stack::tests::{name}"))
        .env(SITUATION, name)
        .output()
        .expect("the test binary can be run again");
    Ended {
        signal: output.status.signal(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn dump_no_core() {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: rule 6.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
}
