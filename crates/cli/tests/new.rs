//! Runs the command `thalweg new`. `make prove-package` also builds the services that it writes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn thalweg(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_thalweg"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("the command runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder can be read");
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn new_creates_a_service_with_up_to_date_code() {
    for arguments in [
        &["new", "acme:image-store"][..],
        &["new", "--code-first", "acme:image-store"],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = thalweg(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(names(folder.path()), ["image-store"]);

        let service = folder.path().join("image-store");
        for path in [
            "Makefile",
            "wit/image-store.wit",
            "generated/rust/image_store.rs",
            "generated/c/image_store.h",
            "generated/python/acme_image_store/__init__.py",
            "hosts/python/test_image_store.py",
        ] {
            assert!(service.join(path).is_file(), "{path} is missing");
        }
        let manifest = fs::read_to_string(service.join("Cargo.toml")).unwrap();
        assert!(manifest.contains(concat!("thalweg = \"", env!("CARGO_PKG_VERSION"), "\"\n")));
        let output = thalweg(&service, &["gen", "--check"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

#[test]
fn new_does_not_touch_an_existing_folder_or_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    fs::write(folder.path().join("file"), "mine").unwrap();
    for name in ["folder", "file"] {
        let output = thalweg(folder.path(), &["new", name]);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            stderr(&output).contains("exists already"),
            "{}",
            stderr(&output)
        );
    }
    assert_eq!(names(folder.path()), ["file", "folder"]);
    assert!(names(&folder.path().join("folder")).is_empty());
    assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"mine");
}

#[test]
fn new_writes_nothing_if_its_arguments_are_invalid() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, message) in [
        (&["new", "a/b"][..], "this is a path"),
        (&["new", "match"], "a keyword of Rust"),
        (
            &["new", "a", "--path", "missing"],
            "not a checkout of Thalweg",
        ),
        (&["new", "a", "--registry", "a b"], "the name of a registry"),
        (&["new", "a", "--rev", "v1"], "--git"),
        (
            &["new", "a", "--git", "u", "--path", "p"],
            "cannot be used with",
        ),
    ] {
        let output = thalweg(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let stderr = stderr(&output);
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
    }
    assert_eq!(names(folder.path()), [""; 0]);
}
