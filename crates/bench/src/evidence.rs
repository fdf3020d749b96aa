//! The committed results: which exist, and how a document or a claim selects a row of them.
//!
//! A folder below `benchmarks/results` belongs to one processor, so figures of different processors
//! are never merged. A selector names the machine, and finds rows in the newest run of that machine
//! that has any. A row that was withdrawn is never found.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::baseline;
use crate::problem::Problem;
use crate::report::{Report, Row};
use crate::result_file;

/// A committed run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The folder of its machine.
    pub machine: String,
    /// Its file, relative to the repository: `benchmarks/results/MACHINE/DATE/NAME.json.gz`.
    pub path: PathBuf,
    /// The results.
    pub report: Report,
}

impl Run {
    /// The date of the run.
    #[must_use]
    pub fn day(&self) -> &str {
        self.report.started.get(..10).unwrap_or_default()
    }

    /// The first seven digits of its commit, and `-dirty` if the tree had changes.
    #[must_use]
    pub fn commit(&self) -> String {
        let (commit, dirty) = match self.report.commit.strip_suffix("-dirty") {
            Some(commit) => (commit, "-dirty"),
            None => (self.report.commit.as_str(), ""),
        };
        format!("{}{dirty}", commit.get(..7).unwrap_or(commit))
    }
}

/// Figures that were published and are not quoted any more.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Withdrawn {
    /// The figures, in words.
    pub what: String,
    /// The reason.
    pub why: String,
    /// The rows of committed files that must not be quoted.
    #[serde(default)]
    pub rows: Vec<String>,
    /// Whether only the comparison is withdrawn, and the subject's own figures stay.
    #[serde(default)]
    pub peers_only: bool,
    /// Only runs that started before this date are affected.
    pub before: String,
}

/// All committed runs, without the rows that were withdrawn.
#[derive(Debug)]
pub struct Evidence {
    /// Newest first.
    pub runs: Vec<Run>,
}

impl Evidence {
    /// These result files. The folder above a file's date names its machine; a file elsewhere
    /// belongs to the machine that it describes. `renamed` has the present names of workloads that
    /// older files name differently.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn of_files(
        root: &Path,
        files: &[PathBuf],
        renamed: &BTreeMap<String, String>,
        withdrawn: &[Withdrawn],
    ) -> Result<Self, Problem> {
        let mut runs = Vec::new();
        for file in files {
            let mut report = result_file::read(file)?;
            for row in &mut report.results {
                if let Some(name) = renamed.get(&row.workload) {
                    row.workload.clone_from(name);
                }
            }
            let path = file.strip_prefix(root).unwrap_or(file).to_owned();
            let machine = match path.strip_prefix("benchmarks/results") {
                Ok(inside) => inside.iter().next().map(|name| name.to_string_lossy()),
                Err(_) => None,
            };
            let machine = machine.map_or_else(|| baseline::name_of(&report.host), Into::into);
            runs.push(Run {
                machine,
                path,
                report,
            });
        }
        Ok(Self::new(runs, withdrawn))
    }

    /// These runs.
    #[must_use]
    pub fn new(mut runs: Vec<Run>, withdrawn: &[Withdrawn]) -> Self {
        // RFC 3339 in UTC sorts as text.
        runs.sort_by(|a, b| (&b.report.started, &a.path).cmp(&(&a.report.started, &b.path)));
        for run in &mut runs {
            let day = run.day().to_owned();
            for entry in withdrawn.iter().filter(|entry| day < entry.before) {
                let rows: Vec<At> = entry.rows.iter().map(|rows| At::parse(rows)).collect();
                let is_in = |row: &Row| rows.iter().any(|at| at.is(row));
                let results = &mut run.report.results;
                if entry.peers_only {
                    results
                        .iter_mut()
                        .filter(|row| is_in(row))
                        .for_each(without_peer);
                } else {
                    results.retain(|row| !is_in(row));
                }
            }
        }
        Self { runs }
    }

    /// The folders of the machines.
    #[must_use]
    pub fn machines(&self) -> BTreeSet<&str> {
        self.runs.iter().map(|run| run.machine.as_str()).collect()
    }

    /// The rows at `at`, of the newest run of its machine that has any.
    #[must_use]
    pub fn rows(&self, at: &At) -> Option<Found<'_>> {
        self.every(at).into_iter().next()
    }

    /// The rows at `at` in every run that has any, newest first.
    #[must_use]
    pub fn every(&self, at: &At) -> Vec<Found<'_>> {
        let of_machine = |run: &&Run| at.machine.as_ref().is_none_or(|name| *name == run.machine);
        let runs = self.runs.iter().filter(of_machine);
        let found = runs.map(|run| Found {
            run,
            rows: run.report.results.iter().filter(|row| at.is(row)).collect(),
        });
        found.filter(|found| !found.rows.is_empty()).collect()
    }
}

fn without_peer(row: &mut Row) {
    row.peer = None;
    row.peer_median = None;
    row.peer_interval = None;
    row.ratio = None;
    row.winner = None;
    row.metrics.retain(|name, _| !name.starts_with("peer_"));
    row.judge_again();
}

/// The rows that a selector found, and their run.
#[derive(Clone, Debug)]
pub struct Found<'a> {
    /// The run.
    pub run: &'a Run,
    /// At least one row.
    pub rows: Vec<&'a Row>,
}

impl<'a> Found<'a> {
    /// The row against the best peer: the one with the largest ratio. Without a ratio, the first.
    ///
    /// # Errors
    /// The rows belong to several points; the message names the parameters that differ.
    pub fn best(&self) -> Result<&'a Row, String> {
        let first = self.rows[0];
        if let Some(other) = self
            .rows
            .iter()
            .find(|row| row.params != first.params || row.subject != first.subject)
        {
            let differing: Vec<String> = first
                .params
                .iter()
                .filter(|(name, value)| other.params.get(*name) != Some(value))
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            return Err(format!(
                "several points match; they differ in {} and others",
                differing.join(", ")
            ));
        }
        let of = |row: &Row| row.ratio.map_or(f64::NEG_INFINITY, |ratio| ratio.median);
        let best = self.rows.iter().copied();
        Ok(best
            .reduce(|best, row| if of(row) > of(best) { row } else { best })
            .unwrap_or(first))
    }
}

/// Selects rows: `on=MACHINE, WORKLOAD, param=value, subject=NAME, peer=NAME`.
///
/// A parameter that is not named may have any value; `name=-` means that the row does not have it,
/// and `name=a|b` that it has one of these values. `peer=*` means any peer, and `peer=-` none. The
/// subject is a Thalweg structure unless it is named. A row that compares different operations
/// (`peer op`) is found only if that is named. A value may contain a comma, if the text after it
/// contains a space or begins with a digit: `payload=488 bytes, empty tails`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct At {
    /// The folder of the machine; `None` means any.
    pub machine: Option<String>,
    workload: String,
    names: BTreeMap<String, String>,
}

impl At {
    /// Parses a selector.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self::default().and(text)
    }

    /// This selector with more parts; a part with the same name is replaced.
    #[must_use]
    pub fn and(&self, text: &str) -> Self {
        let mut at = self.clone();
        let mut last = "";
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            let word = part.trim();
            let continues = word.contains(' ') || word.starts_with(|c: char| c.is_ascii_digit());
            match word.split_once('=') {
                Some(("on", machine)) => at.machine = Some(machine.to_owned()),
                Some((name, value)) => {
                    at.names.insert(name.to_owned(), value.to_owned());
                    last = name;
                }
                None => match at.names.get_mut(last).filter(|_| continues) {
                    Some(value) => *value = format!("{value},{}", part.trim_end()),
                    None => word.clone_into(&mut at.workload),
                },
            }
        }
        at
    }

    /// The same on this machine.
    #[must_use]
    pub fn on(&self, machine: &str) -> Self {
        Self {
            machine: Some(machine.to_owned()),
            ..self.clone()
        }
    }

    /// Whether it selects `row`.
    #[must_use]
    pub fn is(&self, row: &Row) -> bool {
        let named = |name: &str| self.names.contains_key(name);
        row.workload == self.workload
            && (named("subject") || is_ours(&row.subject))
            && (named("peer op") || !row.params.contains_key("peer op"))
            && self.names.iter().all(|(name, value)| {
                let found = match name.as_str() {
                    "subject" => Some(&row.subject),
                    "peer" => row.peer.as_ref(),
                    _ => row.params.get(name),
                };
                match (found, value.as_str()) {
                    (Some(_), "*") => true,
                    (found, value) => {
                        let found = found.map_or("-", String::as_str);
                        value.split('|').any(|value| found == value)
                    }
                }
            })
    }
}

impl std::fmt::Display for At {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "`{}`", self.workload)?;
        let names = self.names.iter().filter(|(_, value)| *value != "-");
        names
            .into_iter()
            .try_for_each(|(name, value)| write!(to, " {name}={value}"))
    }
}

/// Whether this side of a row is one of Thalweg's structures.
#[must_use]
pub fn is_ours(name: &str) -> bool {
    ["thalweg", "flat", "cbor"].contains(&name.split('@').next().unwrap_or(name))
}

/// Finds the result files below `folder`.
///
/// # Errors
/// A folder cannot be read.
pub fn files_below(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Problem> {
    let problem = || Problem::io(folder.display().to_string());
    for entry in fs::read_dir(folder).map_err(problem())? {
        let path = entry.map_err(problem())?.path();
        if path.is_dir() {
            files_below(&path, found)?;
        } else if result_file::is_named(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    fn run(machine: &str, started: &str, rows: Vec<Row>) -> Run {
        let mut report = sample();
        started.clone_into(&mut report.started);
        report.results = rows;
        Run {
            machine: machine.to_owned(),
            path: PathBuf::from(format!("benchmarks/results/{machine}/x.json")),
            report,
        }
    }

    fn row(params: &[(&str, &str)], ours: f64, peer: &str) -> Row {
        let peer = (!peer.is_empty()).then(|| (peer, vec![1.0; 5]));
        Row::new(
            ("w", "queue"),
            params,
            "ns",
            ("thalweg", vec![ours; 5]),
            peer,
        )
    }

    #[test]
    fn rows_of_two_processors_are_never_merged() {
        let one = run("one", "2026-01-01T00:00:00Z", vec![row(&[], 2.0, "rtrb")]);
        let two = run("two", "2026-01-02T00:00:00Z", vec![row(&[], 3.0, "std")]);
        let evidence = Evidence::new(vec![one, two], &[]);
        let at = At::parse("w");
        for (machine, peer) in [("one", "rtrb"), ("two", "std")] {
            let at = at.on(machine);
            let found = evidence.rows(&at).unwrap();
            assert_eq!(found.rows.len(), 1);
            assert_eq!(found.rows[0].peer.as_deref(), Some(peer));
        }
        assert!(evidence.rows(&at.on("three")).is_none());
    }

    #[test]
    fn newest_run_that_has_the_row_is_quoted() {
        let old = run(
            "m",
            "2026-01-01T00:00:00Z",
            vec![row(&[("a", "1")], 2.0, "")],
        );
        let new = run(
            "m",
            "2026-01-02T00:00:00Z",
            vec![row(&[("a", "2")], 3.0, "")],
        );
        let evidence = Evidence::new(vec![old, new], &[]);
        let median = |at: &str| {
            evidence
                .rows(&At::parse(at))
                .map(|f| f.rows[0].subject_median)
        };
        assert_eq!(median("w"), Some(3.0));
        assert_eq!(median("w, a=1"), Some(2.0));
        assert_eq!(median("w, b=1"), None);
        assert_eq!(median("w, a=-"), None);
        assert_eq!(median("w, a=1, subject=direct"), None);
    }

    #[test]
    fn value_with_a_comma_selects_its_row() {
        let rows = vec![
            row(
                &[("payload", "488 bytes, empty tails"), ("b", "1")],
                2.0,
                "",
            ),
            row(&[("payload", "488 bytes"), ("b", "1")], 3.0, ""),
            row(&[("payload", "10,000 bytes"), ("b", "1")], 4.0, ""),
        ];
        let runs = vec![run("m", "2026-01-01T00:00:00Z", rows)];
        let evidence = Evidence::new(runs, &[]);
        for (at, median) in [
            ("on=m, w, payload=488 bytes, empty tails, b=1", 2.0),
            ("on=m, w, payload=488 bytes, b=1", 3.0),
            ("on=m, w, payload=10,000 bytes, b=1", 4.0),
        ] {
            let found = evidence.rows(&At::parse(at)).unwrap();
            assert_eq!(found.rows.len(), 1, "{at}");
            assert_eq!(found.rows[0].subject_median, median, "{at}");
        }
    }

    #[test]
    fn withdrawn_row_is_found_only_in_later_runs() {
        let withdrawn = Withdrawn {
            what: String::new(),
            why: String::new(),
            rows: vec!["w, peer=*".to_owned()],
            peers_only: false,
            before: "2026-01-02".to_owned(),
        };
        let rows = || vec![row(&[], 2.0, "std"), row(&[], 2.0, "")];
        let old = run("m", "2026-01-01T00:00:00Z", rows());
        let evidence = Evidence::new(vec![old.clone()], std::slice::from_ref(&withdrawn));
        assert!(evidence.rows(&At::parse("w, peer=*")).is_none());
        assert_eq!(evidence.rows(&At::parse("w")).unwrap().rows.len(), 1);
        let only = Withdrawn {
            peers_only: true,
            ..withdrawn.clone()
        };
        let evidence = Evidence::new(vec![old.clone()], &[only]);
        let found = evidence.rows(&At::parse("w, peer=-")).unwrap();
        assert_eq!((found.rows.len(), found.rows[0].ratio), (2, None));
        let new = run("m", "2026-01-02T00:00:00Z", rows());
        let evidence = Evidence::new(vec![old, new], &[withdrawn]);
        assert!(evidence.rows(&At::parse("w, peer=std")).is_some());
    }

    #[test]
    fn best_peer_is_the_best_of_all_that_were_measured() {
        let rows = vec![
            row(&[], 0.5, "a"),
            row(&[], 1.15, "vyukov"),
            row(&[], 0.4, "b"),
        ];
        let runs = vec![run("m", "2026-01-01T00:00:00Z", rows)];
        let evidence = Evidence::new(runs, &[]);
        let best = evidence.rows(&At::parse("w")).unwrap().best().unwrap();
        assert_eq!(best.peer.as_deref(), Some("vyukov"));

        let rows = vec![row(&[("a", "1")], 0.5, "a"), row(&[("a", "2")], 1.0, "a")];
        let runs = vec![run("m", "2026-01-01T00:00:00Z", rows)];
        let evidence = Evidence::new(runs, &[]);
        let problem = evidence.rows(&At::parse("w")).unwrap().best().unwrap_err();
        assert!(problem.contains("a=1"), "{problem}");
    }
}
