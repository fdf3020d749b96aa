//! `thalweg config`.

use std::process::{Command, Output};

/// Runs the command with only these variables of Thalweg.
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

fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The words of the line that begins with `name`.
fn line<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name));
    line.expect("the line exists").split_whitespace().collect()
}

#[test]
fn each_setting_is_printed_with_its_source() {
    let variables = [("THALWEG_WORKERS", "3"), ("THALWEG_TIMESLICE", "1ms")];
    let text = stdout(&config(&["--profile", "fair"], &variables));
    assert_eq!(
        line(&text, "workers")[..4],
        ["workers", "3", "environment", "THALWEG_WORKERS"]
    );
    assert_eq!(line(&text, "timeslice")[1..3], ["1ms", "environment"]);
    assert_eq!(line(&text, "alloc_interval")[1..3], ["64", "config"]);
    assert_eq!(line(&text, "stack_size")[1..4], ["1", "MiB", "default"]);
    assert_eq!(line(&text, "affinity")[1..3], ["off", "default"]);
    assert_eq!(line(&text, "report_overflow")[1..4], ["on", "default", "-"]);
    line(&text, "processors in the affinity mask");
    line(&text, "frequency of the cycle counter");
    line(&text, "guard pages of stacks");
}

#[test]
fn json_output_has_numbers_and_units() {
    let variables = [("THALWEG_TIMESLICE_CYCLES", "3000000")];
    let text = stdout(&config(&["--json"], &variables));
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
    // A simple check that the JSON is complete, without a parser.
    for (open, close) in [('{', '}'), ('[', ']')] {
        assert_eq!(text.matches(open).count(), text.matches(close).count());
    }
}

#[test]
fn invalid_variable_is_reported() {
    for (name, value, error) in [
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
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(error), "{stderr}");
    }
}

#[test]
fn unknown_profile_is_an_error_that_lists_the_profiles() {
    let output = config(&["--profile", "fast"], &[]);
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("unknown, many-sleepers, pipeline, compute, fair, batches"),
        "{stderr}"
    );
}
