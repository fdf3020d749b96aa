//! `thalweg conformance`: a scenario that failed or did not run is a failure.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const SCENARIOS: &str = r#"[
  {"name": "echo: one", "steps": []},
  {"name": "echo: two", "steps": []},
  {"name": "a stream", "steps": []}
]"#;

/// Two runners. The first writes the reports in `reports` for two languages; the second is for B
/// and writes none.
const LANGUAGES: &str = r#"
[[runner]]
command = ["sh", "-c", "mkdir -p out && cp reports/* out/"]
languages = ["A", "A later"]

[[runner]]
command = ["true"]
languages = ["B"]
"#;

fn report(language: &str, scenarios: &[(&str, &str)]) -> String {
    let scenarios: Vec<_> = scenarios
        .iter()
        .map(|(name, verdict)| format!(r#"{{"name": "{name}", "verdict": "{verdict}"}}"#))
        .collect();
    let scenarios = scenarios.join(",");
    format!(r#"{{"language": "{language}", "version": "1", "scenarios": [{scenarios}]}}"#)
}

const ALL: [(&str, &str); 3] = [("echo: one", "ok"), ("echo: two", "ok"), ("a stream", "ok")];

/// A folder with complete reports. The report of B is not written by its runner.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("conformance/scenarios.json", SCENARIOS);
    put("conformance/languages.toml", LANGUAGES);
    put("reports/a.json", &report("A", &ALL));
    put("reports/a-later.json", &report("A later", &ALL));
    put("out/a.json", &report("A", &ALL));
    put("out/a-later.json", &report("A later", &ALL));
    put("out/b.json", &report("B", &ALL));
    folder
}

fn conformance(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_thalweg"))
        .args(["conformance", "--reports", "out"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// Standard error of a command that must have exited with `status`.
fn stderr(output: &Output, status: i32) -> String {
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    stderr.trim_end().to_owned()
}

const PAGE: &str = "docs/conformance.md";

#[test]
fn complete_reports_produce_a_page_that_is_up_to_date() {
    let folder = folder();
    let folder = folder.path();
    assert_eq!(stderr(&conformance(folder, &["--no-run"]), 0), "");
    let page = fs::read_to_string(folder.join(PAGE)).unwrap();
    assert!(page.contains("all 3 scenarios"), "{page}");
    assert!(
        page.contains("| scenarios | A | A later | B |\n| --- | --- | --- | --- |\n"),
        "{page}"
    );
    assert!(
        page.ends_with("| echo | 2 | 2 | 2 |\n| a stream | 1 | 1 | 1 |\n"),
        "{page}"
    );
    assert_eq!(
        stderr(&conformance(folder, &["--no-run", "--check"]), 0),
        ""
    );
    fs::write(
        folder.join(PAGE),
        page.replace("| 2 | 2 | 2 |", "| 2 | 2 | 3 |"),
    )
    .unwrap();
    let outdated = stderr(&conformance(folder, &["--no-run", "--check"]), 1);
    assert_eq!(
        outdated,
        "docs/conformance.md is out of date: run `thalweg conformance`"
    );
}

#[test]
fn incomplete_report_fails_and_writes_no_page() {
    let cases: [(&[(&str, &str)], &str); 5] = [
        (&ALL[..2], "A: `a stream` did not run"),
        (
            &[ALL[0], ("echo: two", "failed"), ALL[2]],
            "A: `echo: two`: failed",
        ),
        (
            &[ALL[0], ALL[1], ALL[2], ("old", "ok")],
            "A: there is no scenario `old`",
        ),
        (
            &[ALL[0], ALL[1], ALL[2], ALL[0]],
            "A: `echo: one` occurs twice",
        ),
        (
            &[],
            "A: `echo: one` did not run\nA: `echo: two` did not run\nA: `a stream` did not run",
        ),
    ];
    for (scenarios, expected) in cases {
        let folder = folder();
        fs::write(folder.path().join("out/a.json"), report("A", scenarios)).unwrap();
        assert_eq!(
            stderr(&conformance(folder.path(), &["--no-run"]), 1),
            expected
        );
        assert!(!folder.path().join(PAGE).exists());
    }
}

#[test]
fn report_of_an_earlier_run_is_ignored() {
    let folder = folder();
    // The runner of B writes no report.
    let missing = stderr(&conformance(folder.path(), &[]), 1);
    assert_eq!(missing, "B: no report at out/b.json");
}

#[test]
fn failed_runner_is_reported_even_if_its_report_is_complete() {
    let folder = folder();
    let languages = LANGUAGES.replace("cp reports/* out/", "cp reports/* out/; false");
    fs::write(folder.path().join("conformance/languages.toml"), languages).unwrap();
    let failed = stderr(&conformance(folder.path(), &[]), 1);
    assert!(
        failed
            .starts_with("`sh -c mkdir -p out && cp reports/* out/; false` failed: exit status: 1"),
        "{failed}"
    );
}

#[test]
fn malformed_files_are_errors() {
    for (path, text, expected) in [
        ("conformance/languages.toml", "", "there is no [[runner]]"),
        (
            "conformance/languages.toml",
            "[[runner]]\ncommand = [\"true\"]",
            "`languages`",
        ),
        (
            "conformance/languages.toml",
            "[[runner]]\ncommand = []\nlanguages = [\"A\"]",
            "`command`",
        ),
        ("conformance/scenarios.json", "[]", "there are no scenarios"),
        (
            "conformance/scenarios.json",
            "[{}]",
            "a scenario has no name",
        ),
        ("out/a.json", "{", "out/a.json"),
        (
            "out/a.json",
            "{\"language\": \"B\"}",
            "it is not the report of A",
        ),
    ] {
        let folder = folder();
        fs::write(folder.path().join(path), text).unwrap();
        let error = stderr(&conformance(folder.path(), &["--no-run"]), 2);
        assert!(error.contains(expected), "{path}: {error}");
    }
}

/// A folder in which `echo: two` is pending in A, and fails there.
fn folder_with_pending(pending: &str) -> tempfile::TempDir {
    let folder = folder();
    let languages = format!("{LANGUAGES}\n[pending]\n{pending}\n");
    fs::write(folder.path().join("conformance/languages.toml"), languages).unwrap();
    let scenarios = [ALL[0], ("echo: two", "failed"), ALL[2]];
    fs::write(folder.path().join("out/a.json"), report("A", &scenarios)).unwrap();
    folder
}

#[test]
fn pending_scenario_is_counted_on_the_page() {
    let folder = folder_with_pending("A = [\"echo: two\"]");
    assert_eq!(stderr(&conformance(folder.path(), &["--no-run"]), 0), "");
    let page = fs::read_to_string(folder.path().join(PAGE)).unwrap();
    assert!(page.contains("\n1 in A.\n"), "{page}");
    assert!(
        page.ends_with("| echo | 1 (1 pending) | 2 | 2 |\n| a stream | 1 | 1 | 1 |\n"),
        "{page}"
    );
    // It may also be missing in the report.
    let scenarios = [ALL[0], ALL[2]];
    fs::write(folder.path().join("out/a.json"), report("A", &scenarios)).unwrap();
    let output = conformance(folder.path(), &["--no-run", "--check"]);
    assert_eq!(stderr(&output, 0), "");
}

#[test]
fn pending_scenario_that_passes_is_a_failure() {
    let folder = folder_with_pending("A = [\"echo: two\"]");
    fs::write(folder.path().join("out/a.json"), report("A", &ALL)).unwrap();
    assert_eq!(
        stderr(&conformance(folder.path(), &["--no-run"]), 1),
        "A: `echo: two` passes: remove it from `pending` in languages.toml"
    );
    assert!(!folder.path().join(PAGE).exists());
}

#[test]
fn scenario_that_is_pending_in_another_language_fails() {
    let folder = folder_with_pending("B = []\n\"A later\" = []");
    assert_eq!(
        stderr(&conformance(folder.path(), &["--no-run"]), 1),
        "A: `echo: two`: failed"
    );
}

#[test]
fn unknown_name_in_pending_is_an_error() {
    for (pending, expected) in [
        (
            "A = [\"echo: three\"]",
            "pending of A: there is no scenario `echo: three`",
        ),
        (
            "A = [\"echo\"]",
            "pending of A: there is no scenario `echo`",
        ),
        (
            "C = [\"echo: two\"]",
            "pending: no runner tests the language C",
        ),
        (
            "A = [\"echo: two\", \"echo: two\"]",
            "pending of A: `echo: two` occurs twice",
        ),
        (
            "A = \"echo: two\"",
            "pending of A must be a list of strings",
        ),
        ("A = [2]", "pending of A must be a list of strings"),
    ] {
        let folder = folder_with_pending(pending);
        let error = stderr(&conformance(folder.path(), &["--no-run"]), 2);
        assert_eq!(error, format!("conformance/languages.toml: {expected}"));
    }
}

/// A guest whose scenario `a stream` is unsupported. Its runner copies the reports in `guest`, and notes the
/// address.
fn with_guest(folder: &Path, unsupported: &str) {
    let put = |path: &str, text: &str| {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put(
        "conformance/guests/guests.toml",
        &format!(
            "[[guest]]\nlanguage = \"C\"\nfolder = \"c\"\n\n[[unsupported]]\nreason = \"no streams\"\n\
             scenarios = [\"{unsupported}\"]\n"
        ),
    );
    put(
        "conformance/guests/build.sh",
        "#!/bin/sh\nmkdir -p target\necho built \"$1\"\n",
    );
    let build = folder.join("conformance/guests/build.sh");
    fs::set_permissions(build, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    put(
        "conformance/languages.toml",
        r#"
[[runner]]
command = ["sh", "-c", "cp guest/* $CONFORMANCE_REPORTS && echo $CONFORMANCE_SERVICE >address; exit 1"]
languages = ["A"]

[[runner]]
command = ["false"]
languages = ["B"]
"#,
    );
    put(
        "guest/a.json",
        &report(
            "A",
            &[
                ("echo: one", "ok"),
                ("echo: two", "ok"),
                ("a stream", "failed"),
            ],
        ),
    );
}

#[test]
fn guests_run_with_each_host_and_are_on_the_page() {
    let folder = folder();
    let at = folder.path();
    with_guest(at, "a stream");
    let one_host = ["--guests", "--host", "A"];
    assert_eq!(stderr(&conformance(at, &one_host), 0), "");
    let address = fs::read_to_string(at.join("address")).unwrap();
    assert!(address.starts_with("thread:/"), "{address}");
    assert!(address.ends_with("/conformance-guests/c.so\n"), "{address}");
    let page = fs::read_to_string(at.join(PAGE)).unwrap();
    for line in [
        "| service | A | B |",
        "| Rust | 3 | 3 |",
        "| C | 2 | 2 |",
        "| no streams | all | a stream |",
    ] {
        assert!(page.contains(line), "{line} is not in {page}");
    }
    // The other runner writes no report.
    let errors = stderr(&conformance(at, &["--guests"]), 1);
    assert!(
        errors.contains("B with the guest in C: no report at"),
        "{errors}"
    );
    let errors = stderr(&conformance(at, &["--guests", "--host", "D"]), 2);
    assert!(errors.contains("no runner tests D"), "{errors}");
}

#[test]
fn unsupported_scenario_that_passes_is_a_failure() {
    let folder = folder();
    let at = folder.path();
    with_guest(at, "echo: one");
    let errors = stderr(&conformance(at, &["--guests", "--host", "A"]), 1);
    for line in [
        "A with the guest in C: `echo: one` passes: remove it from `unsupported` in guests.toml",
        "A with the guest in C: `a stream`: failed",
    ] {
        assert!(errors.contains(line), "{line} is not in {errors}");
    }
    with_guest(at, "a scenario that nobody knows");
    let errors = stderr(&conformance(at, &["--guests"]), 2);
    assert!(
        errors.contains("no streams: there is no scenario"),
        "{errors}"
    );
}
