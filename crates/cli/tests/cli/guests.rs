//! Services in C: `thalweg gen --guest c`, and their use by address.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::library::{folder, parts, root, run, thalweg};

/// The address of a guest in C that is built now.
fn address() -> &'static str {
    static ADDRESS: LazyLock<String> = LazyLock::new(|| {
        let out = folder().join("../guest-cli");
        let (status, _, errors) = generate(&out, &["--guest", "c"]);
        assert_eq!((status, &*errors), (0, ""));
        let library = out.join("libguest_probe.so");
        let status = Command::new("cc")
            .args([
                "-std=c11",
                "-D_XOPEN_SOURCE=700",
                "-Wall",
                "-Wextra",
                "-Werror",
            ])
            .args(["-shared", "-fPIC", "-pthread", "-o"])
            .arg(&library)
            .arg("-I")
            .arg(root().join("bindings/c/include"))
            .arg("-I")
            .arg(out.join("guest-c"))
            .arg(root().join("bindings/c/tests/guests/probe.c"))
            .status()
            .expect("cc can be started");
        assert!(status.success());
        format!("thread:{}", library.display())
    });
    &ADDRESS
}

fn generate(out: &Path, options: &[&str]) -> (i32, String, String) {
    let wit = root().join("bindings/c/tests/guests/interface");
    let arguments = [Path::new("gen"), Path::new("--out"), out, &wit];
    let options = options.iter().map(Path::new);
    run(arguments.into_iter().chain(options).map(PathBuf::from))
}

/// Runs the command with an address as its argument.
fn with_guest(arguments: &[&str]) -> (i32, String, String) {
    let library = folder().join("libthalweg.so");
    let output = thalweg(arguments).env("THALWEG_LIBRARY", library).output();
    parts(&output.expect("the command can be run"))
}

#[test]
fn guest_is_called_by_its_address() {
    let call = |function: &str, json: &str| with_guest(&["call", address(), function, json]);
    let (status, printed, errors) = call("add", r#"{"number": 7}"#);
    assert_eq!((status, &*printed, &*errors), (0, "\"7\"\n", ""));
    let (status, printed, _) = call("points", r#"{"count": 2, "failing": 0}"#);
    assert_eq!(status, 0);
    assert!(
        printed.contains("point 1") && printed.contains("point 2"),
        "{printed}"
    );
    let (status, _, errors) = call("points", r#"{"count": 2, "failing": 2}"#);
    assert_eq!(status, 1);
    assert!(errors.contains("it was asked to"), "{errors}");
    let (status, _, errors) = call("misbehave", r#"{"how": 1}"#);
    assert_eq!(status, 2);
    assert!(
        errors.contains("probe.misbehave") && errors.contains("UTF-8"),
        "{errors}"
    );
}

#[test]
fn guest_is_described() {
    let (status, printed, errors) = with_guest(&["describe", address()]);
    assert_eq!((status, &*errors), (0, ""));
    assert!(
        printed.contains("package thalweg:probe@0.1.0;"),
        "{printed}"
    );
    assert!(
        printed.contains("add: func(number: u64) -> u64;"),
        "{printed}"
    );
}

#[test]
fn wrong_addresses_are_refused() {
    for (address, why) in [
        ("thread:/no/such/guest.so", "/no/such/guest.so"),
        ("process:guest", "only guests in the process"),
        ("remote:guest", "only guests in the process"),
    ] {
        let (status, _, errors) = with_guest(&["describe", address]);
        assert_eq!(status, 2);
        assert!(errors.contains(why), "{errors}");
    }
    let output = thalweg(["describe", "thread:x"])
        .env("THALWEG_LIBRARY", "/no/such/libthalweg.so")
        .output();
    let (status, _, errors) = parts(&output.expect("the command can be run"));
    assert_eq!(status, 2);
    assert!(errors.contains("/no/such/libthalweg.so"), "{errors}");
}

#[test]
fn guest_option_generates_nothing_else() {
    let out = tempfile::tempdir().expect("a folder can be made");
    let (status, printed, _) = generate(out.path(), &["--guest", "c"]);
    assert_eq!(status, 0);
    assert_eq!(printed.lines().count(), 1);
    assert!(printed.contains("guest-c/probe_guest.h"), "{printed}");
    let (_, printed, _) = generate(out.path(), &["--guest", "c", "--lang", "c", "--check"]);
    assert!(printed.contains("c/probe.h: is missing"), "{printed}");
}
