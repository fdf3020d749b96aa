//! The program as it is called.

use std::process::{Command, Output};

fn search(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_search-rust"))
        .args(arguments)
        .output()
        .unwrap()
}

fn tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    std::fs::write(tree.path().join("a"), b"needle\nhay\nneedle \xff\n").unwrap();
    std::fs::write(tree.path().join(".b"), b"no\nneedle").unwrap();
    tree
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn it_prints_what_grep_prints() {
    let tree = tree();
    let dir = tree.path().to_str().unwrap();
    let grep = Command::new("grep")
        .env("LC_ALL", "C")
        .args(["-ranF", "needle", dir])
        .output();
    let sorted = |output: &[u8]| {
        let mut lines: Vec<Vec<u8>> = output.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
        lines.sort();
        lines
    };
    assert_eq!(
        sorted(&search(&["needle", dir]).stdout),
        sorted(&grep.unwrap().stdout)
    );
}

#[test]
fn count_takes_the_text_as_it_is() {
    let tree = tree();
    std::fs::write(tree.path().join("c"), "a.c\nabc\n").unwrap();
    let dir = tree.path().to_str().unwrap();
    assert_eq!(text(&search(&["a.c", dir, "--count"]).stdout), "1\n");
}

#[test]
fn through_the_service_and_directly_the_same_lines_are_found() {
    let tree = tree();
    let dir = tree.path().to_str().unwrap();
    for (mode, host) in [("--json", "Rust"), ("--direct", "direct")] {
        let line = text(&search(&["needle", dir, mode]).stdout);
        let expected = format!("{{\"host\":\"{host}\",\"matches\":3,\"lines_sum\":6,");
        assert!(line.starts_with(&expected), "{line}");
    }
}

#[test]
fn a_directory_that_is_not_there_is_named_and_the_status_says_so() {
    for mode in ["--print", "--count", "--json", "--direct"] {
        let output = search(&["x", "/no/such", mode]);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            text(&output.stderr).contains("/no/such: No such file"),
            "{mode}"
        );
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn wrong_arguments_show_the_usage() {
    for arguments in [&["x"][..], &["x", "/", "--frob"], &[]] {
        let output = search(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).starts_with("usage: "));
    }
}
