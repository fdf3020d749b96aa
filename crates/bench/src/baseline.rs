//! Baselines: earlier measurements of this machine, one result file per workload.
//!
//! The path is `benchmarks/baselines/<host>/<workload>.json`. `<host>` names the processor, the
//! processor count and the virtualisation (`amd-epyc-2cpu-docker`). Each workload has its own file,
//! so that it keeps the commit and the knobs it was measured with.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::hosts;
use crate::problem::Problem;
use crate::report::{Host, Report};
use crate::result_file;

/// The folder in the checkout that contains the baselines of all hosts.
#[must_use]
pub fn folder() -> PathBuf {
    hosts::root().join("benchmarks/baselines")
}

/// The name of `host` in a path: `amd-epyc-2cpu-docker`.
#[must_use]
pub fn name_of(host: &Host) -> String {
    let mut words: Vec<String> = Vec::new();
    let text = format!("{} {}cpu {}", host.cpu, host.processors, host.r#virtual);
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        let word = word.to_ascii_lowercase();
        // `Intel(R) Core(TM) i7` contains words that carry no information.
        if !["", "r", "tm", "none", "unknown", "processor"].contains(&word.as_str()) {
            words.push(word);
        }
    }
    words.join("-")
}

/// The reason why `report` cannot be a baseline, if there is one.
#[must_use]
pub fn refusal(report: &Report) -> Option<&'static str> {
    let knob = |name: &str| report.knobs.get(name).map(String::as_str);
    if knob("profile") == Some("debug") {
        Some("it is from a debug build")
    } else if knob("quick") == Some("true") {
        Some("it is from a quick run")
    } else if report.results.is_empty() {
        Some("it has no results")
    } else {
        None
    }
}

/// Saves every workload of `report` below `folder` and returns the written files. A workload's
/// earlier baseline is replaced.
///
/// # Errors
/// The report cannot be a baseline, or the operating system reports an error.
pub fn save(folder: &Path, report: &Report) -> Result<Vec<PathBuf>, Problem> {
    if let Some(why) = refusal(report) {
        return Err(Problem::Usage(format!("not saved as a baseline: {why}")));
    }
    let folder = folder.join(name_of(&report.host));
    let mut written = Vec::new();
    for (workload, part) in parts(report) {
        let file = folder.join(format!("{workload}.json"));
        result_file::write(&file, &result_file::text(&part))?;
        written.push(file);
    }
    Ok(written)
}

/// Splits `report` into one report per workload, each with its own knobs only.
fn parts(report: &Report) -> BTreeMap<String, Report> {
    let mut parts: BTreeMap<String, Report> = BTreeMap::new();
    for row in &report.results {
        let part = parts.entry(row.workload.clone()).or_insert_with(|| Report {
            results: Vec::new(),
            ..report.clone()
        });
        part.results.push(row.clone());
    }
    for (workload, part) in &mut parts {
        part.knobs
            .retain(|name, _| knob_of(name).is_none_or(|of| of == workload));
    }
    parts
}

/// The workload that the knob `name` belongs to: `idle` for `idle.seconds`; `None` for a knob of
/// the whole run.
#[must_use]
pub fn knob_of(name: &str) -> Option<&str> {
    name.split_once('.').map(|(workload, _)| workload)
}

/// The baselines of a host, ordered by workload name; empty if nothing was saved.
///
/// # Errors
/// One of the files is not a result file.
pub fn load(folder: &Path, host: &str) -> Result<Vec<(PathBuf, Report)>, Problem> {
    let mut found = Vec::new();
    for file in entries(&folder.join(host))? {
        if file.extension().is_some_and(|ending| ending == "json") {
            let report = result_file::read(&file)?;
            found.push((file, report));
        }
    }
    Ok(found)
}

/// The hosts that have baselines.
///
/// # Errors
/// The folder cannot be read.
pub fn known_hosts(folder: &Path) -> Result<Vec<String>, Problem> {
    let folders = entries(folder)?.into_iter().filter(|path| path.is_dir());
    Ok(folders
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect())
}

/// The entries of `folder`, sorted; empty if the folder does not exist.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let problem = || Problem::io(folder.display().to_string());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(problem())? {
        found.push(entry.map_err(problem())?.path());
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    fn host(cpu: &str, processors: u32, r#virtual: &str) -> String {
        name_of(&Host {
            cpu: cpu.to_owned(),
            processors,
            r#virtual: r#virtual.to_owned(),
            ..sample().host
        })
    }

    #[test]
    fn a_hosts_name_is_short_and_fits_into_a_path() {
        assert_eq!(host("AMD EPYC", 2, "docker"), "amd-epyc-2cpu-docker");
        assert_eq!(
            host("Intel(R) Core(TM) i7-10700KF CPU @ 3.80GHz", 16, "none"),
            "intel-core-i7-10700kf-cpu-3-80ghz-16cpu"
        );
        assert_eq!(host("../..", 1, "unknown"), "1cpu");
    }

    #[test]
    fn a_workload_is_saved_alone_and_loaded_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = sample();
        for knob in ["profile", "idle.seconds", "search_overhead.tree"] {
            report.knobs.insert(knob.to_owned(), "x".to_owned());
        }
        let written = save(folder.path(), &report).unwrap();
        assert_eq!(written.len(), 2);
        assert!(written[0].ends_with("a-2cpu-kvm/idle.json"), "{written:?}");
        let loaded = load(folder.path(), "a-2cpu-kvm").unwrap();
        let names: Vec<&str> = loaded
            .iter()
            .map(|(_, part)| part.results[0].workload.as_str())
            .collect();
        assert_eq!(names, ["idle", "search_overhead"]);
        let knobs: Vec<&String> = loaded[0].1.knobs.keys().collect();
        assert_eq!(knobs, ["idle.seconds", "profile"]);
        assert_eq!(known_hosts(folder.path()).unwrap(), ["a-2cpu-kvm"]);
        assert!(load(folder.path(), "another").unwrap().is_empty());
    }

    #[test]
    fn saving_one_workload_again_leaves_the_others() {
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), &sample()).unwrap();
        let mut again = sample();
        again.commit = "later".to_owned();
        again.results.truncate(1);
        save(folder.path(), &again).unwrap();
        let loaded = load(folder.path(), "a-2cpu-kvm").unwrap();
        let commits: Vec<&str> = loaded
            .iter()
            .map(|(_, part)| part.commit.as_str())
            .collect();
        assert_eq!(commits, ["0123abcd", "later"]);
    }

    #[test]
    fn what_judges_nothing_is_no_baseline() {
        let folder = tempfile::tempdir().unwrap();
        for (knob, value) in [("profile", "debug"), ("quick", "true")] {
            let mut report = sample();
            report.knobs.insert(knob.to_owned(), value.to_owned());
            let problem = save(folder.path(), &report).unwrap_err();
            assert_eq!(problem.exit_status(), 2);
        }
        let mut empty = sample();
        empty.results.clear();
        assert!(save(folder.path(), &empty).is_err());
        assert!(known_hosts(folder.path()).unwrap().is_empty());
    }
}
