//! `thalweg call`: calls, streams and bad input.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::library::{parts, run, thalweg};

const CONFORMANCE: &str = "libthalweg_conformance.so";

/// Calls functions of the conformance service.
fn call(arguments: &[&str]) -> (i32, String, String) {
    run(["call", CONFORMANCE].iter().chain(arguments))
}

/// The same with this text as standard input.
fn call_with_input(arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut child = start(arguments);
    let mut stdin = child.stdin.take().expect("a pipe");
    // The command may not read all of it.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    parts(&child.wait_with_output().expect("it ends"))
}

fn start(arguments: &[&str]) -> Child {
    thalweg(["call", CONFORMANCE].iter().chain(arguments))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command can be run")
}

/// Asserts the exit status and both outputs.
fn check(result: &(i32, String, String), status: i32, printed: &str, errors: &str) {
    let (code, out, error) = result;
    assert_eq!((out.as_str(), error.as_str()), (printed, errors));
    assert_eq!(*code, status);
}

#[test]
fn result_is_printed_in_the_form_of_the_schema() {
    for (function, json, printed) in [
        ("echo-u64", r#"{"value": 7}"#, "\"7\"\n"),
        (
            "conformance.echo-f32",
            r#"{"value": -0.5}"#,
            "\"0xbf000000\"\n",
        ),
        (
            "echo-f64",
            r#"{"value": "0x7ff8000000000001"}"#,
            "\"0x7ff8000000000001\"\n",
        ),
        (
            "echo-string",
            r#"{"value": "a\"\u0000ß𐍈"}"#,
            "\"a\\\"\\u0000ß𐍈\"\n",
        ),
        ("echo-bytes", r#"{"value": "00ff"}"#, "\"00ff\"\n"),
        ("echo-char", r#"{"value": "𐍈"}"#, "\"𐍈\"\n"),
        (
            "echo-option-twice",
            r#"{"value": {"some": null}}"#,
            "{\"some\": null}\n",
        ),
        (
            "echo-shapes",
            r#"{"value": [{"case": "nothing"}, {"case": "line", "value": [{"x": 1, "y": 2}, {"y": -4, "x": 3}]}]}"#,
            "[{\"case\": \"nothing\"}, {\"case\": \"line\", \"value\": [{\"x\": 1, \"y\": 2}, {\"x\": 3, \"y\": -4}]}]\n",
        ),
        (
            "echo-rights",
            r#"{"value": ["record", "read"]}"#,
            "[\"read\", \"record\"]\n",
        ),
        ("nothing", "{}", "null\n"),
        // An inline method.
        ("twice", r#"{"value": 21}"#, "\"42\"\n"),
        ("fail-bare", r#"{"fails": false}"#, "null\n"),
    ] {
        check(&call(&[function, json]), 0, printed, "");
    }
}

#[test]
fn typed_error_is_printed_on_standard_error() {
    let how = r#"{"how": {"some": {"case": "at", "value": ["here", {"x": 1, "y": 2}]}}}"#;
    let error = "{\"case\": \"at\", \"value\": [\"here\", {\"x\": 1, \"y\": 2}]}\n";
    for function in ["fail", "fail-later", "fail-here"] {
        check(&call(&[function, how]), 1, "", error);
        check(&call(&[function, r#"{"how": null}"#]), 0, "\"7\"\n", "");
    }
    check(&call(&["fail-bare", r#"{"fails": true}"#]), 1, "", "null\n");
    // The later calls are not made.
    check(&call(&["fail", how, "nothing"]), 1, "", error);
}

#[test]
fn other_outcome_is_printed_with_its_name() {
    let (status, printed, errors) = call(&["panic", r#"{"message": "broken"}"#]);
    assert_eq!((status, printed.as_str()), (2, ""));
    assert!(errors.contains("guest_panicked: "), "{errors}");
    assert!(errors.contains("broken"), "{errors}");
    let (status, _, errors) = call(&["--deadline", "30ms", "never"]);
    assert_eq!(status, 2);
    assert!(errors.starts_with("timed_out: "), "{errors}");
    // The deadline is that of the stream, too.
    let (status, _, errors) = call(&["--deadline", "30ms", "ticks"]);
    assert_eq!(status, 2);
    assert!(errors.starts_with("timed_out: "), "{errors}");
}

#[test]
fn resource_of_a_call_is_used_by_the_later_calls() {
    let calls = [
        "counter",
        r#"{"start": 10}"#,
        "counter",
        r#"{"start": 20}"#,
        "counter.sum",
        r#"{"left": "$1", "right": "$2"}"#,
        "counter.add",
        r#"{"self": "$3", "amount": "5"}"#,
        "counter.steps",
        r#"{"self": "$1", "count": 2}"#,
        "counter.finish",
        r#"{"counter": "$3"}"#,
        "swap",
        r#"{"value": {"name": "two", "left": "$1", "right": {"some": "$2"}}}"#,
        "counters",
    ];
    let printed = "\"$1\"\n\"$2\"\n\"$3\"\n\"35\"\n\"11\"\n\"12\"\n\"35\"\n\
                   {\"name\": \"two\", \"left\": \"$4\", \"right\": {\"some\": \"$5\"}}\n2\n";
    check(&call(&calls), 0, printed, "");
    let error = "$.self: expected a resource that an earlier call of this command returned, such as \"$1\"; there are 0\n";
    for json in [r#"{"self": "$1"}"#, r#"{"self": 1}"#, r#"{"self": "$0"}"#] {
        check(&call(&["counter.value", json]), 2, "", error);
    }
    // A resource that was passed to the service is gone.
    let (status, _, errors) = call(
        &[
            &calls[..2],
            &["counter.finish", r#"{"counter": "$1"}"#],
            &["counter.value", r#"{"self": "$1"}"#],
        ]
        .concat(),
    );
    assert_eq!(status, 2);
    assert!(errors.starts_with("stale: "), "{errors}");
}

#[test]
fn stream_is_printed_as_lines() {
    let numbers = |from: u64, to: u64| -> String {
        (from..to).map(|number| format!("\"{number}\"\n")).collect()
    };
    let count = r#"{"first": 1, "count": 10000}"#;
    check(&call(&["count", count]), 0, &numbers(1, 10_001), "");
    check(
        &call(&["items", r#"{"count": 2}"#]),
        0,
        "{\"number\": \"0\", \"name\": \"item 0\", \"tags\": [], \"blob\": {\"some\": \"\"}}\n{\"number\": \"1\", \"name\": \"item 1\", \"tags\": [\"tag 0\"], \"blob\": null}\n",
        "",
    );
    check(&call(&["beats", r#"{"count": 2}"#]), 0, "null\nnull\n", "");
    check(
        &call(&["later", r#"{"milliseconds": 1, "text": "x"}"#]),
        0,
        "\"x\"\n",
        "",
    );
    // The error at the end of a stream.
    let stops = r#"{"count": 2, "how": "fail"}"#;
    check(
        &call(&["stops", stops]),
        1,
        &numbers(0, 2),
        "{\"case\": \"code\", \"value\": 2}\n",
    );
    let (status, printed, errors) = call(&["breaks", r#"{"after": 2}"#]);
    assert_eq!((status, printed), (2, numbers(0, 2)));
    assert!(errors.contains("guest_panicked: "), "{errors}");
    let (status, _, errors) = call(&["drops-newest", r#"{"count": 1000}"#]);
    assert_eq!(status, 0);
    assert!(errors.starts_with("records missing: "), "{errors}");
}

#[test]
fn stream_parameter_is_read_from_standard_input() {
    let lines = "1\n\"2\"\n\n3";
    let numbers = r#"{"numbers": "-"}"#;
    check(
        &call_with_input(&["sum-of", numbers], lines),
        0,
        "[\"3\", \"6\"]\n",
        "",
    );
    check(
        &call(&["sum-of", r#"{"numbers": [1, 2, 3]}"#]),
        0,
        "[\"3\", \"6\"]\n",
        "",
    );
    check(
        &call(&["beats-of", r#"{"beats": [null, null]}"#]),
        0,
        "\"2\"\n",
        "",
    );
    check(
        &call(&["hear", r#"{"text": {"some": "x"}}"#]),
        0,
        "\"x\"\n",
        "",
    );
    let both = r#"{"numbers": "-", "words": ["a", "b"]}"#;
    check(
        &call_with_input(&["words-first", both], "4"),
        0,
        "[\"ab\", \"4\"]\n",
        "",
    );
    // A service that stops to read.
    let many = "1\n".repeat(100_000);
    let first = r#"{"count": 2, "numbers": "-"}"#;
    check(
        &call_with_input(&["first-numbers", first], &many),
        0,
        "[\"1\", \"1\"]\n",
        "",
    );
    // The JSON itself.
    check(
        &call_with_input(&["echo-u8", "-"], "{\"value\": 1}\n"),
        0,
        "1\n",
        "",
    );
}

#[test]
fn wrong_line_of_standard_input_ends_the_call() {
    let numbers = r#"{"numbers": "-"}"#;
    for (lines, expected) in [
        (
            "1\n-1\n2\n",
            "standard input, line 2: $: expected an integer from 0 to ",
        ),
        ("1\n\n{", "standard input, line 3: "),
        ("\"\\ud800\"\n", "standard input, line 1: "),
    ] {
        let (status, printed, errors) = call_with_input(&["sum-of", numbers], lines);
        assert_eq!((status, printed.as_str()), (2, ""), "{errors}");
        assert!(errors.starts_with(expected), "{errors}");
    }
}

#[test]
fn wrong_input_is_refused_before_the_call() {
    let deep = format!("{{\"value\": {}1{}}}", "[".repeat(1000), "]".repeat(1000));
    for (arguments, expected) in [
        (
            &["echo-u8", r#"{"value": 256}"#][..],
            "$.value: expected an integer from 0 to 255, found 256\n",
        ),
        (&["echo-u8", "{}"], "$: the field `value` is missing\n"),
        (&["echo-u8"], "$: the field `value` is missing\n"),
        (
            &["echo-u8", r#"{"value": 1, "more": 2}"#],
            "$: there is no field `more`\n",
        ),
        (&["echo-u8", "{"], "the JSON: EOF while parsing"),
        (&["echo-string", r#"{"value": "\ud800"}"#], "the JSON: "),
        (
            &["echo-numbers", deep.as_str()],
            "the JSON: recursion limit exceeded",
        ),
        (&["{}"], "`{}` does not follow a function\n"),
        (
            &["echo-u9", "{}"],
            "there is no function `echo-u9`; there are: echo-bool, ",
        ),
        (
            &["sum-of", r#"{"numbers": [1, -1]}"#],
            "$.numbers[1]: expected an integer",
        ),
        (
            &["sum-of", r#"{"numbers": 1}"#],
            "$.numbers: expected an array, or \"-\"",
        ),
        (&["sum-of", "-"], "standard input: EOF"),
        (
            &["words-first", r#"{"numbers": "-", "words": "-"}"#],
            "$.words: `-` occurs twice",
        ),
        (
            &["feeds", r#"{"count": 1}"#],
            "`conformance.feeds` returns a stream or a future inside a value",
        ),
    ] {
        let (status, printed, errors) = call_with_input(arguments, "");
        assert_eq!((status, printed.as_str()), (2, ""), "{arguments:?}");
        assert!(errors.starts_with(expected), "{arguments:?}: {errors}");
    }
    for deadline in ["5", "0s", "soon"] {
        let (status, _, errors) = call(&["--deadline", deadline, "nothing"]);
        assert_eq!(status, 2);
        assert!(errors.contains("`us`, `ms`, `s` or `min`"), "{errors}");
    }
}

#[test]
fn host_import_has_no_host() {
    // The service receives `closed`, and returns the number of this code.
    check(&call(&["ask", r#"{"key": 2}"#]), 1, "", "8\n");
}

/// Sends SIGINT.
fn interrupt(child: &Child) {
    let kill = format!("kill -INT {}", child.id());
    let status = Command::new("sh").args(["-c", &kill]).status();
    assert!(status.expect("sh can be started").success());
}

#[test]
fn signal_cancels_the_call() {
    // A call: it runs once its thread exists, and the signal handler was set before.
    let child = start(&["never"]);
    std::thread::sleep(Duration::from_secs(1));
    interrupt(&child);
    let (status, printed, errors) = parts(&child.wait_with_output().unwrap());
    assert_eq!((status, printed.as_str()), (2, ""), "{errors}");
    assert!(errors.starts_with("cancelled: "), "{errors}");
    // A stream.
    let mut child = start(&["endless"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert_eq!(line, "\"0\"\n");
    interrupt(&child);
    std::io::copy(&mut lines, &mut std::io::sink()).unwrap();
    let (status, _, errors) = parts(&child.wait_with_output().unwrap());
    assert_eq!(
        (status, errors.as_str()),
        (2, "cancelled: interrupted by a signal\n")
    );
}

#[test]
fn reader_that_closes_the_pipe_ends_the_command() {
    let mut child = start(&["endless"]);
    let mut first = [0; 4];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"\"0\"\n");
    let began = Instant::now();
    let (status, _, errors) = parts(&child.wait_with_output().unwrap());
    assert_eq!((status, errors.as_str()), (141, ""));
    assert!(began.elapsed() < Duration::from_secs(10));
}
