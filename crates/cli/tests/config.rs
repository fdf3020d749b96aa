//! `thalweg config` as it is run.

use std::process::{Command, Output};

/// The command, with these variables alone of ours.
fn config(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command.arg("config").args(arguments);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("THALWEG_") {
            command.env_remove(name);
        }
    }
    command.envs(variables.iter().copied());
    command.output().expect("the command can be run")
}

fn said(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The words of the line that begins with `name`.
fn line<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name));
    line.expect("there is a line for it")
        .split_whitespace()
        .collect()
}

#[test]
fn each_setting_says_where_it_came_from() {
    let variables = [("THALWEG_WORKERS", "3"), ("THALWEG_TIMESLICE", "1ms")];
    let text = said(&config(&["--profile", "fair"], &variables));
    assert_eq!(
        line(&text, "workers")[..4],
        ["workers", "3", "environment", "THALWEG_WORKERS"]
    );
    assert_eq!(line(&text, "timeslice")[1..3], ["1ms", "environment"]);
    assert_eq!(line(&text, "alloc_interval")[1..3], ["64", "config"]);
    assert_eq!(line(&text, "stack_size")[1..4], ["1", "MiB", "default"]);
    assert_eq!(line(&text, "affinity")[1..3], ["off", "default"]);
    assert_eq!(line(&text, "report_overflow")[1..4], ["on", "default", "-"]);
    line(&text, "processors in the mask");
    line(&text, "rate of the cycle counter");
    line(&text, "guards of stacks");
}

#[test]
fn as_json_it_has_numbers() {
    let variables = [("THALWEG_TIMESLICE_CYCLES", "3000000")];
    let text = said(&config(&["--json"], &variables));
    assert!(
        text.contains(r#"{"name": "stack_size", "value": 1048576, "unit": "bytes", "from": "default", "variable": "THALWEG_STACK_SIZE", "#),
        "{text}"
    );
    assert!(
        text.contains(r#""from": "environment", "variable": "THALWEG_TIMESLICE_CYCLES""#),
        "{text}"
    );
    assert!(
        text.contains(r#"{"name": "affinity", "value": false, "unit": null, "#),
        "{text}"
    );
    assert!(text.contains(r#""tsc_hz": "#), "{text}");
    // Python is not always there; brackets in pairs are.
    for (open, close) in [('{', '}'), ('[', ']')] {
        assert_eq!(text.matches(open).count(), text.matches(close).count());
    }
}

#[test]
fn a_variable_that_is_no_good_is_named() {
    for (name, value, says) in [
        (
            "THALWEG_WORKERS",
            "65",
            "THALWEG_WORKERS is 65, it must be 1 to 64",
        ),
        (
            "THALWEG_WORKERS",
            "",
            "THALWEG_WORKERS is \"\", it must be unset, or have a value",
        ),
        ("THALWEG_TIMESLICE", "100", "such as 100us"),
    ] {
        let output = config(&[], &[(name, value)]);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn a_profile_that_is_not_known_is_answered_with_those_that_are() {
    let output = config(&["--profile", "fast"], &[]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("unknown, many-sleepers, pipeline, compute, fair, batches"),
        "{said}"
    );
}
