//! Tests the program from outside: its output and its exit status.

use std::process::{Command, Output};

fn lab(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_thalweg-bench");
    Command::new(program)
        .args(arguments)
        .output()
        .expect("cargo has just built it")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the lab speaks UTF-8")
}

#[test]
fn list_names_every_workload() {
    let output = lab(&["list"]);
    assert!(output.status.success());
    let listed = text(&output.stdout);
    for name in ["search_overhead", "first_calls", "view_read", "idle"] {
        assert!(listed.contains(name), "{name} in {listed}");
    }
}

#[test]
fn an_unknown_workload_ends_with_2_and_what_there_is() {
    let output = lab(&["run", "first_calls", "warp"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let said = text(&output.stderr);
    assert!(
        said.contains("`warp`") && said.contains("view_read"),
        "{said}"
    );
}

#[test]
fn an_unknown_option_ends_with_2() {
    assert_eq!(lab(&["run", "--warp"]).status.code(), Some(2));
    assert_eq!(lab(&["run", "--samples", "3"]).status.code(), Some(2));
    assert_eq!(lab(&[]).status.code(), Some(2));
}

#[test]
fn a_debug_build_measures_nothing_unless_it_is_told_to() {
    if !cfg!(debug_assertions) {
        return;
    }
    let output = lab(&["run", "first_calls"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("debug build") && said.contains("--allow-debug"),
        "{said}"
    );
}
