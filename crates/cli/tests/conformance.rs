//! `thalweg conformance` from outside: a cell that is not full fails, whatever emptied it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const SCENARIOS: &str = r#"[
  {"name": "echo: one", "steps": []},
  {"name": "echo: two", "steps": []},
  {"name": "a stream", "steps": []}
]"#;

/// Two runners: one leaves the reports that lie in `left`, the other does nothing and speaks for B alone.
const LANGUAGES: &str = r#"
[[runner]]
command = ["sh", "-c", "mkdir -p out && cp left/* out/"]
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

/// A folder in which every report is as it should be; B's does not come from a run.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("conformance/scenarios.json", SCENARIOS);
    put("conformance/languages.toml", LANGUAGES);
    put("left/a.json", &report("A", &ALL));
    put("left/a-later.json", &report("A later", &ALL));
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

/// What it says, where it ends with `status`.
fn said(output: &Output, status: i32) -> String {
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(status), "{said}");
    said.trim_end().to_owned()
}

const PAGE: &str = "docs/conformance.md";

#[test]
fn full_cells_make_a_page_that_stays_up_to_date() {
    let folder = folder();
    let folder = folder.path();
    assert_eq!(said(&conformance(folder, &["--no-run"]), 0), "");
    let page = fs::read_to_string(folder.join(PAGE)).unwrap();
    assert!(page.contains("3 scenarios"), "{page}");
    assert!(
        page.contains("| what | A | A later | B |\n| --- | --- | --- | --- |\n"),
        "{page}"
    );
    assert!(
        page.ends_with("| echo | 2 | 2 | 2 |\n| a stream | 1 | 1 | 1 |\n"),
        "{page}"
    );
    assert_eq!(said(&conformance(folder, &["--no-run", "--check"]), 0), "");
    fs::write(
        folder.join(PAGE),
        page.replace("| 2 | 2 | 2 |", "| 2 | 2 | 3 |"),
    )
    .unwrap();
    let outdated = said(&conformance(folder, &["--no-run", "--check"]), 1);
    assert_eq!(
        outdated,
        "docs/conformance.md is not up to date: run `thalweg conformance`"
    );
}

#[test]
fn a_cell_that_is_not_full_fails_and_writes_no_page() {
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
            "A: `echo: one` is there twice",
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
            said(&conformance(folder.path(), &["--no-run"]), 1),
            expected
        );
        assert!(!folder.path().join(PAGE).exists());
    }
}

#[test]
fn a_report_of_an_earlier_run_does_not_count() {
    let folder = folder();
    // B's runner leaves none this time.
    let missing = said(&conformance(folder.path(), &[]), 1);
    assert_eq!(missing, "B: no report at out/b.json");
}

#[test]
fn a_runner_that_fails_is_told_even_if_its_report_is_good() {
    let folder = folder();
    let languages = LANGUAGES.replace("cp left/* out/", "cp left/* out/; false");
    fs::write(folder.path().join("conformance/languages.toml"), languages).unwrap();
    let failed = said(&conformance(folder.path(), &[]), 1);
    assert!(
        failed.starts_with("`sh -c mkdir -p out && cp left/* out/; false` failed: exit status: 1"),
        "{failed}"
    );
}

#[test]
fn files_that_nobody_understands_are_errors() {
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
        ("out/a.json", "{\"language\": \"B\"}", "it is not A's"),
    ] {
        let folder = folder();
        fs::write(folder.path().join(path), text).unwrap();
        let error = said(&conformance(folder.path(), &["--no-run"]), 2);
        assert!(error.contains(expected), "{path}: {error}");
    }
}
