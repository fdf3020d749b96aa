//! The rows of all runs, by workload, and their labels.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::{Report, Row};
use crate::workloads::WORKLOADS;

/// A row and the number of its run, counted from 1.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The run.
    pub run: usize,
    /// The row.
    pub row: &'a Row,
}

/// All rows of a workload.
#[derive(Debug)]
pub struct Section<'a> {
    /// The workload's name.
    pub workload: &'a str,
    /// Its rows, in the order of the runs and of the result files.
    pub entries: Vec<Entry<'a>>,
}

/// Rows of one point of the parameters.
#[derive(Debug)]
pub struct Group<'a> {
    /// The parameters that distinguish it from the workload's other points: `capacity 64, batch 1`.
    pub label: String,
    /// The run.
    pub run: usize,
    /// The rows.
    pub rows: Vec<&'a Row>,
}

/// The sections, in the order in which the lab lists its workloads; unknown workloads come last.
#[must_use]
pub fn sections(reports: &[Report]) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for (run, report) in (1..).zip(reports) {
        for row in &report.results {
            let known = sections.iter().position(|s| s.workload == row.workload);
            let place = known.unwrap_or_else(|| {
                sections.push(Section {
                    workload: &row.workload,
                    entries: Vec::new(),
                });
                sections.len() - 1
            });
            sections[place].entries.push(Entry { run, row });
        }
    }
    let place = |name: &str| {
        let known = WORKLOADS.iter().position(|w| w.name == name);
        known.unwrap_or(usize::MAX)
    };
    sections.sort_by_key(|section| place(section.workload));
    sections
}

impl<'a> Section<'a> {
    /// Whether any row has a ratio.
    #[must_use]
    pub fn has_ratio(&self) -> bool {
        self.entries.iter().any(|entry| entry.row.ratio.is_some())
    }

    /// Whether its rows are grouped under a heading for each point, because a point has several
    /// peers. Otherwise each point has about one row, and all rows are sorted together.
    #[must_use]
    pub fn by_point(&self) -> bool {
        let groups = self.groups();
        let with_ratio =
            |group: &Group<'_>| group.rows.iter().filter(|r| r.ratio.is_some()).count();
        let rows: usize = groups.iter().map(with_ratio).sum();
        let points = groups.iter().filter(|group| with_ratio(group) > 0).count();
        points <= 1 || rows >= 2 * points
    }

    /// The peer of all rows, if there is only one.
    #[must_use]
    pub fn only_peer(&self) -> Option<&'a str> {
        let first = self.entries.first()?.row.peer.as_deref()?;
        let same = |entry: &Entry<'_>| entry.row.peer.as_deref() == Some(first);
        self.entries.iter().all(same).then_some(first)
    }

    /// The runs of its rows.
    #[must_use]
    pub fn runs(&self) -> BTreeSet<usize> {
        self.entries.iter().map(|entry| entry.run).collect()
    }

    /// The parameters that are the same in all rows: `items 1000, placement free`.
    #[must_use]
    pub fn common_params(&self) -> String {
        let differing = self.differing();
        let mut seen = BTreeSet::new();
        let all = self.entries.iter().flat_map(|entry| &entry.row.params);
        let common: Vec<String> = all
            .filter(|(name, _)| !differing.contains(name.as_str()) && seen.insert(name.as_str()))
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        common.join(", ")
    }

    /// Parameters that follow from a parameter in the rows' labels and are therefore omitted from
    /// them: `density dense: matches 2036583, pattern e`.
    #[must_use]
    pub fn following_params(&self) -> Vec<String> {
        let (named, following) = self.names();
        let mut lines = Vec::new();
        for leader in &named {
            let followers: Vec<&str> = following
                .iter()
                .filter(|name| {
                    let first = named.iter().find(|leader| self.determines(leader, name));
                    first == Some(leader)
                })
                .copied()
                .collect();
            if followers.is_empty() {
                continue;
            }
            let mut seen = BTreeSet::new();
            for entry in &self.entries {
                let params = &entry.row.params;
                let Some(value) = params.get(*leader).filter(|value| seen.insert(*value)) else {
                    continue;
                };
                let with: Vec<String> = followers
                    .iter()
                    .filter_map(|name| Some(format!("{name} {}", params.get(*name)?)))
                    .collect();
                lines.push(format!("{leader} {value}: {}", with.join(", ")));
            }
        }
        lines
    }

    /// Names of the parameters whose values differ between rows.
    fn differing(&self) -> BTreeSet<&'a str> {
        let mut names = BTreeSet::new();
        let Some(first) = self.entries.first() else {
            return names;
        };
        for entry in &self.entries {
            let params = &entry.row.params;
            for name in params.keys().chain(first.row.params.keys()) {
                if params.get(name) != first.row.params.get(name) {
                    names.insert(name.as_str());
                }
            }
        }
        names
    }

    /// The parameters in the rows' labels, and those that follow from one of them.
    fn names(&self) -> (BTreeSet<&'a str>, BTreeSet<&'a str>) {
        let mut named = self.differing();
        let mut following = BTreeSet::new();
        let points: BTreeSet<_> = self.entries.iter().map(|entry| &entry.row.params).collect();
        for name in self.differing() {
            let leads = |leader: &&str| {
                let mutual = self.determines(name, leader);
                // With few rows, any parameter seems to follow from any other: each value must
                // occur at least twice.
                let values: BTreeSet<_> = points.iter().map(|params| params.get(*leader)).collect();
                *leader != name
                    && 2 * values.len() <= points.len()
                    && self.determines(leader, name)
                    && (!mutual || *leader < name)
            };
            if named.iter().any(leads) {
                named.remove(name);
                following.insert(name);
            }
        }
        (named, following)
    }

    /// Whether the value of `leader` determines the value of `name`.
    fn determines(&self, leader: &str, name: &str) -> bool {
        let mut known: BTreeMap<Option<&String>, Option<&String>> = BTreeMap::new();
        self.entries.iter().all(|entry| {
            let params = &entry.row.params;
            let value = params.get(name);
            *known.entry(params.get(leader)).or_insert(value) == value
        })
    }

    /// The rows grouped by point, in the order of the points.
    #[must_use]
    pub fn groups(&self) -> Vec<Group<'a>> {
        let (named, _) = self.names();
        let mut groups: Vec<(Group<'a>, &'a Row)> = Vec::new();
        for Entry { run, row } in &self.entries {
            let same = |(group, first): &&mut (Group<'_>, &Row)| {
                group.run == *run && first.params == row.params
            };
            if let Some((group, _)) = groups.iter_mut().find(|group| same(group)) {
                group.rows.push(row);
                continue;
            }
            let params = row.params.iter();
            let label: Vec<String> = params
                .filter(|(name, _)| named.contains(name.as_str()))
                .map(|(name, value)| format!("{name} {value}"))
                .collect();
            let group = Group {
                label: label.join(", "),
                run: *run,
                rows: vec![row],
            };
            groups.push((group, row));
        }
        groups.into_iter().map(|(group, _)| group).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    fn row(workload: &str, params: &[(&str, &str)], peer: &str) -> Row {
        Row::new(
            (workload, "queue"),
            params,
            "ns",
            ("thalweg", vec![1.0]),
            Some((peer, vec![1.0])),
        )
    }

    #[test]
    fn rows_are_gathered_by_workload_and_by_point_and_called_by_what_differs() {
        let mut report = sample();
        report.results = vec![
            row("w", &[("capacity", "64"), ("items", "9")], "rtrb"),
            row("v", &[], "rtrb"),
            row("w", &[("capacity", "8"), ("items", "9")], "rtrb"),
            row("w", &[("capacity", "64"), ("items", "9")], "flume"),
        ];
        let reports = [report];
        let sections = sections(&reports);
        let names: Vec<&str> = sections.iter().map(|section| section.workload).collect();
        assert_eq!(names, ["w", "v"]);
        assert_eq!(sections[0].common_params(), "items 9");
        let groups = sections[0].groups();
        let labels: Vec<(&str, usize)> = groups
            .iter()
            .map(|group| (group.label.as_str(), group.rows.len()))
            .collect();
        assert_eq!(labels, [("capacity 64", 2), ("capacity 8", 1)]);
    }

    #[test]
    fn what_follows_from_another_param_is_said_once_and_not_in_every_name() {
        let mut report = sample();
        report.results = Vec::new();
        for (density, matches) in [("dense", "99"), ("usual", "7")] {
            for language in ["c", "rust"] {
                let params = [
                    ("density", density),
                    ("language", language),
                    ("matches", matches),
                ];
                report.results.push(row("w", &params, "direct"));
            }
        }
        let reports = [report];
        let sections = sections(&reports);
        let labels: Vec<String> = sections[0].groups().into_iter().map(|g| g.label).collect();
        assert_eq!(
            labels,
            [
                "density dense, language c",
                "density dense, language rust",
                "density usual, language c",
                "density usual, language rust",
            ]
        );
        assert_eq!(
            sections[0].following_params(),
            ["density dense: matches 99", "density usual: matches 7"]
        );
        assert_eq!(sections[0].only_peer(), Some("direct"));
    }

    #[test]
    fn in_a_handful_of_rows_nothing_seems_to_follow_from_anything() {
        let mut report = sample();
        report.results = vec![
            row("w", &[("batch", "1"), ("capacity", "64")], "rtrb"),
            row("w", &[("batch", "16"), ("capacity", "1024")], "rtrb"),
        ];
        let reports = [report];
        let section = &sections(&reports)[0];
        let labels: Vec<String> = section.groups().into_iter().map(|g| g.label).collect();
        assert_eq!(labels, ["batch 1, capacity 64", "batch 16, capacity 1024"]);
        assert!(section.following_params().is_empty());
    }

    #[test]
    fn known_workloads_stand_as_the_lab_lists_them() {
        let mut report = sample();
        report.results = vec![
            row("unknown", &[], "a"),
            row("idle", &[], "a"),
            row("first_calls", &[], "a"),
        ];
        let reports = [report];
        let names: Vec<&str> = sections(&reports).iter().map(|s| s.workload).collect();
        assert_eq!(names, ["first_calls", "idle", "unknown"]);
    }

    #[test]
    fn the_same_point_of_two_runs_is_two_groups() {
        let mut report = sample();
        report.results = vec![row("w", &[], "a")];
        let reports = [report.clone(), report];
        assert_eq!(sections(&reports)[0].groups().len(), 2);
    }
}
