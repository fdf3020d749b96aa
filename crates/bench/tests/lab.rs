//! Tests the lab's commands from outside, on files and on minimal measurements.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use thalweg_bench::judgement::Target;
use thalweg_bench::report::{Host, Report, Row, SCHEMA};
use thalweg_bench::statistics::Samples;
use thalweg_bench::{machine, result_file};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg-bench"));
    command
        .args(arguments)
        .env_remove("THALWEG_REGRESSION_THRESHOLD_PCT");
    command
}

fn lab(arguments: &[&str]) -> Output {
    command(arguments)
        .output()
        .expect("cargo has just built it")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the lab speaks UTF-8")
}

/// A result file with one row, whose ratio is `ratio` in each of three processes.
fn made_up(folder: &Path, ratio: f64, cpu: &str) -> PathBuf {
    let side = |ns: f64| Samples::new(vec![ns, 1.01 * ns, 0.99 * ns], vec![0, 1, 2]);
    let row = Row::new(
        ("spsc_threads", "queue"),
        &[("capacity", "64")],
        "ns",
        ("thalweg", side(ratio)),
        Some(("rtrb", side(1.0))),
    );
    let report = Report {
        schema: SCHEMA,
        suite: "thalweg-bench 0.1.0".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        host: Host {
            cpu: cpu.to_owned(),
            ..machine::describe()
        },
        tools: BTreeMap::new(),
        peers: BTreeMap::new(),
        knobs: BTreeMap::new(),
        commit: "0123abcd".to_owned(),
        round_trips: BTreeMap::new(),
        results: vec![row.held_to(&Target::Ratio(1.0), None)],
    };
    let file = folder.join(format!("{cpu}-{ratio}.json.gz"));
    result_file::write(&file, &result_file::text(&report)).unwrap();
    file
}

/// Validates a file that the lab wrote, and returns its rows.
fn validated(file: &Path) -> Vec<Row> {
    let schema = serde_json::from_str(include_str!("../result.schema.json")).unwrap();
    let written = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    jsonschema::validate(&schema, &written).unwrap_or_else(|error| panic!("{error}"));
    result_file::read(file).unwrap().results
}

fn regress(baseline: &Path, from: &Path, more: &[&str]) -> Output {
    let mut all = vec!["regress", "--baseline", baseline.to_str().unwrap()];
    all.extend(["--from", from.to_str().unwrap()]);
    all.extend(more);
    lab(&all)
}

#[test]
fn regress_status_is_that_of_its_worst_row() {
    let folder = tempfile::tempdir().unwrap();
    let file = |ratio, cpu| made_up(folder.path(), ratio, cpu);
    let (usual, slow, fast) = (file(1.0, "one"), file(3.0, "one"), file(0.3, "one"));
    let elsewhere = file(1.0, "another");
    for (baseline, from, more, status, said) in [
        (
            &usual,
            &usual,
            &["--all"] as &[_],
            0,
            "detectable from 0.0 %",
        ),
        (&usual, &slow, &[], 1, "WORSE"),
        (&usual, &slow, &["--threshold", "500"], 0, "0 worse"),
        (&usual, &fast, &[], 0, "1 better"),
        (
            &usual,
            &elsewhere,
            &[],
            2,
            "another host: cpu was one, is another",
        ),
    ] {
        let output = regress(baseline, from, more);
        let printed = text(&output.stdout);
        assert_eq!(output.status.code(), Some(status), "{printed}");
        assert!(printed.contains(said), "{said} in {printed}");
    }
    let by_environment = |threshold: &str, more: &[&str]| {
        let mut command = command(&["regress", "--baseline"]);
        command.arg(&usual).arg("--from").arg(&slow).args(more);
        command.env("THALWEG_REGRESSION_THRESHOLD_PCT", threshold);
        command.output().unwrap().status.code()
    };
    assert_eq!(by_environment("500", &[]), Some(0));
    assert_eq!(by_environment("500", &["--threshold", "10"]), Some(1));
    assert_eq!(by_environment("much", &[]), Some(2));
}

#[test]
fn file_that_violates_the_schema_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let good = made_up(folder.path(), 1.0, "one");
    let odd = folder.path().join("odd.json");
    let damaged = result_file::text(&result_file::read(&good).unwrap());
    fs::write(&odd, damaged.replace("\"unit\": \"ns\"", "\"unit\": 3")).unwrap();
    for (baseline, from) in [(&good, &odd), (&odd, &good)] {
        let output = regress(baseline, from, &[]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("cannot be judged"));
    }
    let output = lab(&["report", "--from", odd.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("odd.json is not a result file: invalid type: integer `3`"),
        "{said}"
    );
}

#[test]
fn report_of_two_files_is_written_and_named_after_the_moment() {
    let folder = tempfile::tempdir().unwrap();
    let file = made_up(folder.path(), 1.0, "a made-up processor");
    let file = file.to_str().unwrap();
    let into = folder.path().join("reports");
    let output = lab(&[
        "report",
        "--from",
        file,
        "--from",
        file,
        "--into",
        into.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut names: Vec<String> = fs::read_dir(&into)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let endings = [
        ("benchmark_report_", "Z.html"),
        ("benchmark_results_", "Z.csv"),
        ("benchmark_summary_", "Z.md"),
    ];
    assert_eq!(names.len(), endings.len(), "{names:?}");
    for (name, (beginning, ending)) in names.iter().zip(endings) {
        assert!(
            name.starts_with(beginning) && name.ends_with(ending),
            "{name}"
        );
        assert!(text(&output.stdout).contains(name.as_str()));
        let content = fs::read_to_string(into.join(name)).unwrap();
        assert!(
            content.contains("spsc_threads") && content.contains("a made-up processor"),
            "{name}"
        );
    }
}

#[test]
fn doctor_says_what_is_part_of_every_result() {
    let output = lab(&["doctor"]);
    assert_eq!(output.status.code(), Some(0));
    let said = text(&output.stdout);
    for name in [
        "processors",
        "affinity",
        "governor",
        "turbo",
        "virtual",
        "load",
        "quota",
        "open files",
        "locked memory",
        "clock",
    ] {
        assert!(said.contains(name), "{name} in {said}");
    }
    let host: serde_json::Value =
        serde_json::from_slice(&lab(&["doctor", "--json"]).stdout).unwrap();
    for key in [
        "uname",
        "cpu",
        "processors",
        "affinity",
        "governor",
        "memory",
        "virtual",
    ] {
        assert!(host.get(key).is_some(), "{key}");
    }
}

#[test]
fn unknown_name_or_option_ends_with_2_and_the_known_ones() {
    for (arguments, listed) in [
        (&[][..], "Usage"),
        (&["run", "--warp"], "--warp"),
        (&["run", "--samples", "3"], "3 is not in 5.."),
        (&["run", "first_calls", "warp"], "view_read"),
        (&["run", "--group", "warp"], "endurance"),
        (&["list", "--group", "warp"], "endurance"),
        (&["run", "idle", "--set", "warp=1"], "no knob `warp`"),
        (
            &["run", "port_submit", "--set", "warp=1"],
            "THALWEG_SUBMIT_THREADS",
        ),
        (&["sweep", "warp"], "spsc_threads"),
        (
            &["baseline", "show", "--host", "no-such-host"],
            "no-such-host",
        ),
        (&["report", "--group", "warp"], "endurance"),
    ] {
        let output = lab(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.contains(listed), "{arguments:?}: {said}");
    }
}

#[test]
fn debug_build_measures_only_if_it_is_allowed_to() {
    if cfg!(debug_assertions) {
        let output = lab(&["run", "first_calls"]);
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        assert!(
            said.contains("debug build") && said.contains("--allow-debug"),
            "{said}"
        );
    }
}

#[test]
fn a_quick_run_is_no_baseline() {
    let output = lab(&["run", "idle", "--quick", "--allow-debug", "--save-baseline"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot be a baseline"));
}

#[test]
fn a_cell_is_measured_line_by_line() {
    let mut child = command(&["cell"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let cell = r#"{"workload": "spsc_threads", "params": {"capacity": "64", "batch": "1", "placement": "free", "messages": "2000"}, "subjects": ["thalweg", "rtrb"], "quick": true}"#;
    let mut input = child.stdin.take().unwrap();
    write!(input, "{cell}\n0\n1\n7\n").unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 5, "{said}");
    assert_eq!(lines[1], r#"{"opened":2}"#);
    assert!(
        lines[2].starts_with(r#"{"ns":"#) && lines[3].starts_with(r#"{"ns":"#),
        "{said}"
    );
    assert!(lines[4].contains("none of the 2 sides"), "{said}");
}

#[test]
fn sweep_prints_every_point_and_writes_each_sample() {
    let folder = tempfile::tempdir().unwrap();
    let grid = folder.path().join("grid.json");
    fs::write(
        &grid,
        r#"[{"workload": "spsc_threads", "fixed": {"placement": "free", "messages": "2000", "batch": "1"},
             "axes": [["capacity", ["16", "64"]]]}]"#,
    )
    .unwrap();
    let csv = folder.path().join("samples.csv");
    let json = folder.path().join("result.json");
    let output = lab(&[
        "sweep",
        "--grid",
        grid.to_str().unwrap(),
        "--quick",
        "--allow-debug",
        "--save-csv",
        csv.to_str().unwrap(),
        "--json",
        json.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(
        said.contains("capacity=16") && said.contains("capacity=64"),
        "{said}"
    );
    assert!(
        said.contains("Best: capacity=") || said.contains("No point is better: "),
        "{said}"
    );
    assert!(
        said.contains("does not show which point is better"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(csv).unwrap().lines().count(), 1 + 2 * 5);
    let rows = validated(&json);
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].process, [0, 0, 1, 1, 2]);
}

#[test]
fn run_writes_a_file_that_satisfies_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let (json, csv) = (folder.path().join("a.json"), folder.path().join("a.csv"));
    let output = lab(&[
        "run",
        "codec",
        "--quick",
        "--allow-debug",
        "--json",
        json.to_str().unwrap(),
        "--csv",
        csv.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let rows = validated(&json);
    assert!(rows.iter().all(|row| row.processes() == Some(3)));
    let csv = fs::read_to_string(csv).unwrap();
    assert_eq!(csv.lines().count(), 1 + 10 * rows.len());
    assert!(csv.starts_with("workload,params,side,name,unit,round,process,value\r\n"));
}
