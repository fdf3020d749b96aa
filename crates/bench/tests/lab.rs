//! Tests the lab's commands from outside, on files and on minimal measurements.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use thalweg_bench::report::Report;
use thalweg_bench::{hosts, result_file};

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

/// A committed result file.
fn committed() -> PathBuf {
    hosts::root()
        .join("benchmarks/results/intel-xeon-2-50ghz-2cpu-docker/2026-11-21/result.json.gz")
}

/// The committed result with its ratios multiplied by `times`, in a new file.
fn planted(folder: &Path, times: f64) -> PathBuf {
    let mut report: Report = result_file::read(&committed()).unwrap();
    for row in &mut report.results {
        if let Some(ratio) = &mut row.ratio {
            ratio.median *= times;
            ratio.low *= times;
            ratio.high *= times;
        }
    }
    let file = folder.join(format!("planted-{times}.json"));
    result_file::write(&file, &result_file::text(&report)).unwrap();
    file
}

fn regress(baseline: &Path, from: &Path, more: &[&str]) -> Output {
    let mut all = vec!["regress", "--baseline", baseline.to_str().unwrap()];
    all.extend(["--from", from.to_str().unwrap()]);
    all.extend(more);
    lab(&all)
}

#[test]
fn regress_ends_with_0_on_the_same_with_1_on_a_planted_regression_and_with_2_on_another_host() {
    let folder = tempfile::tempdir().unwrap();
    let same = regress(&committed(), &committed(), &[]);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stdout));

    let worse = planted(folder.path(), 3.0);
    let output = regress(&committed(), &worse, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("WORSE"));
    // Compared in the other direction, the result improves.
    let output = regress(&worse, &committed(), &[]);
    assert_eq!(output.status.code(), Some(0));

    let mut elsewhere: Report = result_file::read(&committed()).unwrap();
    let cpu = std::mem::replace(&mut elsewhere.host.cpu, "Another".to_owned());
    let file = folder.path().join("elsewhere.json");
    result_file::write(&file, &result_file::text(&elsewhere)).unwrap();
    let output = regress(&committed(), &file, &[]);
    assert_eq!(output.status.code(), Some(2));
    let reason = format!("another host: cpu was {cpu}, is Another");
    assert!(text(&output.stdout).contains(&reason));
}

#[test]
fn the_threshold_comes_from_the_option_or_the_environment_and_the_option_wins() {
    let folder = tempfile::tempdir().unwrap();
    let worse = planted(folder.path(), 3.0);
    let allowed = regress(&committed(), &worse, &["--threshold", "500"]);
    assert_eq!(allowed.status.code(), Some(0), "{}", text(&allowed.stdout));
    let by_environment = |threshold: &str, more: &[&str]| {
        let mut command = command(&["regress", "--baseline"]);
        command
            .arg(committed())
            .arg("--from")
            .arg(&worse)
            .args(more);
        command.env("THALWEG_REGRESSION_THRESHOLD_PCT", threshold);
        command.output().unwrap().status.code()
    };
    assert_eq!(by_environment("500", &[]), Some(0));
    assert_eq!(by_environment("500", &["--threshold", "10"]), Some(1));
    assert_eq!(by_environment("much", &[]), Some(2));
}

#[test]
fn what_is_no_result_file_cannot_be_judged() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("odd.json");
    fs::write(&odd, "{}").unwrap();
    for (baseline, from) in [(committed(), odd.clone()), (odd, committed())] {
        let output = regress(&baseline, &from, &[]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("cannot be judged"));
    }
}

#[test]
fn a_report_of_two_files_is_written_and_named_after_the_moment() {
    let folder = tempfile::tempdir().unwrap();
    let file = committed();
    let committed: Report = result_file::read(&file).unwrap();
    let cpu = committed.host.cpu;
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
            content.contains("spsc_threads") && content.contains(&cpu),
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
fn what_is_not_there_ends_with_2_and_what_is() {
    for (arguments, listed) in [
        (&["run", "--group", "warp"][..], "endurance"),
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
fn a_sweep_prints_every_point_what_follows_and_each_sample() {
    let folder = tempfile::tempdir().unwrap();
    let grid = folder.path().join("grid.json");
    fs::write(
        &grid,
        r#"[{"workload": "spsc_threads", "fixed": {"placement": "free", "messages": "2000", "batch": "1"},
             "axes": [["capacity", ["16", "64"]]]}]"#,
    )
    .unwrap();
    let csv = folder.path().join("samples.csv");
    let output = lab(&[
        "sweep",
        "--grid",
        grid.to_str().unwrap(),
        "--quick",
        "--allow-debug",
        "--save-csv",
        csv.to_str().unwrap(),
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
}
