//! The absolute figures of a workload: times and other metrics of every side.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::page::entry::Section;
use crate::page::text::{escape, heading, measured};
use crate::report::Row;
use crate::statistics::Interval;
use crate::table::quantity;

/// Metrics that come first, in this order; the others follow by name.
const FIRST: [&str; 8] = [
    "ops_per_s",
    "mib_per_s",
    "p50_ns",
    "p95_ns",
    "p99_ns",
    "p99_9_ns",
    "max_ns",
    "latencies",
];

/// Number of lines up to which the table is open by default.
const LONG: usize = 30;

/// The prefix of a peer's metrics.
const OF_PEER: &str = "peer_";

/// One line: one side at one point.
struct Line<'a> {
    point: String,
    who: &'a str,
    ours: bool,
    unit: &'a str,
    median: f64,
    interval: Option<Interval>,
    row: &'a Row,
}

impl Line<'_> {
    fn metric(&self, name: &str) -> Option<f64> {
        let metrics = &self.row.metrics;
        if self.ours {
            metrics.get(name).copied()
        } else {
            metrics.get(&format!("{OF_PEER}{name}")).copied()
        }
    }
}

/// The table of a workload.
#[must_use]
pub fn html(section: &Section<'_>, several_runs: bool) -> String {
    let lines = lines(section, several_runs);
    let metrics = metrics(section);
    let with_interval = lines.iter().any(|line| line.interval.is_some());
    let open = if lines.len() <= LONG {
        " open=\"open\""
    } else {
        ""
    };
    let mut html = format!(
        "<details class=\"figures\"{open}><summary>Absolute figures</summary>\n<div class=\"scroll\"><table>\n<thead><tr><th>who</th>"
    );
    let mut columns = vec!["median".to_owned()];
    if with_interval {
        columns.push("95 % interval".to_owned());
    }
    columns.extend(metrics.iter().map(|metric| heading(metric).0));
    for name in &columns {
        write!(html, "<th class=\"n\">{}</th>", escape(name)).expect("a String takes any text");
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    let mut before = "";
    for line in &lines {
        if before != line.point {
            writeln!(
                html,
                "<tr class=\"point\"><th colspan=\"{}\"><span>{}</span></th></tr>",
                columns.len() + 1,
                escape(&line.point)
            )
            .expect("a String takes any text");
        }
        before = &line.point;
        html += &line_html(line, with_interval, &metrics);
    }
    html + "</tbody></table></div>\n</details>\n"
}

fn line_html(line: &Line<'_>, with_interval: bool, metrics: &[&str]) -> String {
    let class = if line.ours { " class=\"ours\"" } else { "" };
    let mut html = format!("<tr{class}><th>{}</th>", escape(line.who));
    let mut cell = |text: &str| {
        write!(html, "<td class=\"n\">{}</td>", escape(text)).expect("a String takes any text");
    };
    cell(&quantity(line.median, line.unit));
    if with_interval {
        cell(&line.interval.map_or_else(String::new, |interval| {
            format!(
                "{} \u{2013} {}",
                quantity(interval.low, line.unit),
                quantity(interval.high, line.unit)
            )
        }));
    }
    for metric in metrics {
        let value = line.metric(metric);
        cell(&value.map_or_else(String::new, |value| measured(metric, value)));
    }
    html + "</tr>\n"
}

/// Thalweg once per point, then the peers from the fastest to the slowest.
fn lines<'a>(section: &Section<'a>, several_runs: bool) -> Vec<Line<'a>> {
    let mut all = Vec::new();
    for group in section.groups() {
        let point = if several_runs {
            format!("run {}, {}", group.run, group.label)
        } else {
            group.label.clone()
        };
        let mut of_group: Vec<Line<'_>> = Vec::new();
        for &row in &group.rows {
            let known = of_group.iter().any(|line| {
                line.ours && line.who == row.subject && line.median == row.subject_median
            });
            if !known {
                of_group.push(Line {
                    point: point.clone(),
                    who: &row.subject,
                    ours: true,
                    unit: &row.unit,
                    median: row.subject_median,
                    interval: row.subject_interval,
                    row,
                });
            }
            if let (Some(peer), Some(median)) = (&row.peer, row.peer_median) {
                of_group.push(Line {
                    point: point.clone(),
                    who: peer,
                    ours: false,
                    unit: &row.unit,
                    median,
                    interval: row.peer_interval,
                    row,
                });
            }
        }
        of_group.sort_by(|one, other| {
            (!one.ours)
                .cmp(&!other.ours)
                .then(one.median.total_cmp(&other.median))
        });
        all.extend(of_group);
    }
    all
}

/// The metrics of all rows, without duplicates.
fn metrics<'a>(section: &Section<'a>) -> Vec<&'a str> {
    let names: BTreeSet<&str> = section
        .entries
        .iter()
        .flat_map(|entry| entry.row.metrics.keys())
        .map(|name| name.strip_prefix(OF_PEER).unwrap_or(name))
        .collect();
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by_key(|name| {
        FIRST
            .iter()
            .position(|first| first == name)
            .unwrap_or(FIRST.len())
    });
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::entry::sections;
    use crate::report::tests::sample;

    #[test]
    fn ours_comes_once_a_point_and_each_has_its_own_metrics() {
        let mut report = sample();
        report.results = [("rtrb", 1.0), ("flume", 9.0)]
            .map(|(peer, time)| {
                let mut row = Row::new(
                    ("w", "queue"),
                    &[],
                    "ns",
                    ("thalweg", vec![3.0, 3.0]),
                    Some((peer, vec![time, time])),
                );
                row.metrics.insert("p50_ns".to_owned(), 1234.0);
                row.metrics.insert("peer_p50_ns".to_owned(), 5678.0);
                row
            })
            .into();
        let reports = [report];
        let html = html(&sections(&reports)[0], false);
        assert_eq!(html.matches(">thalweg<").count(), 1);
        assert_eq!(html.matches("1.23 us").count(), 1);
        assert_eq!(html.matches("5.68 us").count(), 2);
        assert!(html.find(">thalweg<") < html.find(">rtrb<"));
        assert!(html.find(">rtrb<") < html.find(">flume<"));
        assert!(!html.contains("colspan"), "one point needs no name: {html}");
    }

    #[test]
    fn well_known_metrics_come_first() {
        let mut report = sample();
        for name in ["a_count", "p99_ns", "ops_per_s", "p50_ns"] {
            report.results[0].metrics.insert(name.to_owned(), 1.0);
        }
        let reports = [report];
        let sections = sections(&reports);
        let section = sections.iter().find(|s| s.workload == "search_overhead");
        assert_eq!(
            metrics(section.unwrap()),
            ["ops_per_s", "p50_ns", "p99_ns", "a_count"]
        );
    }
}
