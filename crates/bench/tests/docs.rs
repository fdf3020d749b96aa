//! The figures in README and docs come from the committed results, and those can be trusted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use thalweg_bench::docs::{self, Docs};
use thalweg_bench::evidence::Evidence;
use thalweg_bench::{baseline, claims, hosts};

const HINT: &str = "run `cargo run -p thalweg-bench -- report --docs`";

fn evidence(docs: &Docs) -> Evidence {
    docs.evidence(&hosts::root(), &[]).unwrap()
}

/// A copy of README.md and docs.
fn copy_of_the_pages() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for page in docs::pages(&hosts::root()).unwrap() {
        let target = copy.path().join(page.strip_prefix(hosts::root()).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&page, target).unwrap();
    }
    copy
}

fn differing(root: &Path) -> Vec<PathBuf> {
    let docs = Docs::load(&hosts::root()).unwrap();
    let changed = docs::fill(root, &docs, &evidence(&docs)).unwrap();
    changed.into_iter().map(|(page, _)| page).collect()
}

#[test]
fn figures_in_readme_and_docs_equal_the_committed_results() {
    let none: Vec<PathBuf> = Vec::new();
    assert_eq!(differing(&hosts::root()), none, "{HINT}");
    let (file, text) = claims::page(&hosts::root(), &[]).unwrap();
    assert_eq!(fs::read_to_string(file).unwrap(), text, "{HINT}");
}

#[test]
fn figure_edited_by_hand_in_readme_is_found() {
    let copy = copy_of_the_pages();
    let readme = copy.path().join("README.md");
    let text = fs::read_to_string(&readme).unwrap();
    let (before, after) = text.split_once("<!-- bench:begin readme -->").unwrap();
    let edited = after.replacen("**0.", "**0.0", 1);
    assert_ne!(after, edited);
    fs::write(
        &readme,
        format!("{before}<!-- bench:begin readme -->{edited}"),
    )
    .unwrap();
    assert_eq!(differing(copy.path()), [readme]);
}

#[test]
fn figure_outside_a_region_is_found() {
    let docs = Docs::load(&hosts::root()).unwrap();
    let none: Vec<String> = Vec::new();
    assert_eq!(docs::loose(&hosts::root(), &docs).unwrap(), none);
    let copy = copy_of_the_pages();
    let readme = copy.path().join("README.md");
    let mut text = fs::read_to_string(&readme).unwrap();
    text += "\nA spawn takes 222 ns, 0.29 (0.27 to 0.29) of tokio.\n";
    fs::write(&readme, &text).unwrap();
    let found = docs::loose(copy.path(), &docs).unwrap();
    let line = text.lines().count();
    assert_eq!(
        found,
        [format!("README.md:{line}: 222 ns, 0.29 (0.27 to 0.29)")]
    );
}

#[test]
fn description_that_no_page_shows_is_found() {
    let docs = Docs::load(&hosts::root()).unwrap();
    let none: Vec<String> = Vec::new();
    assert_eq!(docs::unused(&hosts::root(), &docs).unwrap(), none);
    let copy = copy_of_the_pages();
    let readme = copy.path().join("README.md");
    fs::write(&readme, "no region").unwrap();
    let unused = docs::unused(copy.path(), &docs).unwrap();
    assert!(
        unused.iter().any(|it| it.contains("`readme`")),
        "{unused:?}"
    );
}

#[test]
fn result_folder_carries_the_processor_of_its_results() {
    for run in evidence(&Docs::load(&hosts::root()).unwrap()).runs {
        let host = &run.report.host;
        let name = baseline::name_of(host);
        let processor = name.split("-2cpu").next().unwrap();
        assert!(
            run.machine.starts_with(processor),
            "{}: {name}",
            run.path.display()
        );
    }
}

/// Whether git is there, and the whole history with it.
fn has_history() -> bool {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(hosts::root())
            .output();
        output.ok().filter(|output| output.status.success())
    };
    git(&["rev-parse", "--is-shallow-repository"])
        .is_some_and(|output| String::from_utf8_lossy(&output.stdout).trim() == "false")
}

/// Whether `commit` is an ancestor of the current one.
fn is_in_the_history(commit: &str) -> bool {
    let arguments = ["merge-base", "--is-ancestor", commit, "HEAD"];
    let status = Command::new("git")
        .args(arguments)
        .current_dir(hosts::root())
        .status();
    status.is_ok_and(|status| status.success())
}

#[test]
fn committed_result_names_a_commit_of_the_history_and_a_clean_tree() {
    let docs = Docs::load(&hosts::root()).unwrap();
    let runs = evidence(&docs).runs;
    assert!(!runs.is_empty());
    for squashed in docs.squashed.keys() {
        let names_it = runs.iter().any(|run| run.report.commit == *squashed);
        assert!(names_it, "no result names {squashed}");
    }
    let has_history = has_history();
    if !has_history {
        println!("skipped the commits: this is no git checkout, or a shallow one");
    }
    for run in runs {
        let (commit, path) = (&run.report.commit, run.path.display());
        assert!(!commit.ends_with("-dirty"), "{path}: the tree had changes");
        assert!(
            commit.len() >= 7 && commit.bytes().all(|b| b.is_ascii_hexdigit()),
            "{path}: {commit}"
        );
        assert_eq!(baseline::refusal(&run.report), None, "{path}");
        if has_history {
            let in_history = docs.squashed.get(commit).unwrap_or(commit);
            assert!(
                is_in_the_history(in_history),
                "{path}: {in_history} is not in the history"
            );
        }
    }
}

#[test]
fn commit_outside_the_history_is_found() {
    if has_history() {
        assert!(is_in_the_history("HEAD"));
        assert!(!is_in_the_history(
            "0123456789abcdef0123456789abcdef01234567"
        ));
    }
}
