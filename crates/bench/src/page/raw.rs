//! Every row of the result file, unchanged.

use std::fmt::Write;

use crate::page::text::escape;
use crate::report::{Report, Row, Winner};

const HEAD: [&str; 15] = [
    "run",
    "workload",
    "group",
    "params",
    "subject",
    "peer",
    "unit",
    "subject median",
    "peer median",
    "ratio",
    "winner",
    "samples",
    "metrics",
    "target",
    "verdict",
];

/// The table, collapsed.
#[must_use]
pub fn html(reports: &[Report]) -> String {
    let mut html = "<section id=\"rows\">\n<h2>All rows</h2>\n<details class=\"raw\"><summary>Every row as it stands in the result file</summary>\n<div class=\"scroll\"><table>\n<thead><tr>".to_owned();
    for name in HEAD {
        write!(html, "<th>{name}</th>").expect("a String takes any text");
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for (run, report) in (1..).zip(reports) {
        for row in &report.results {
            html.push_str("<tr>");
            for cell in cells(run, row) {
                write!(html, "<td>{}</td>", escape(&cell)).expect("a String takes any text");
            }
            html.push_str("</tr>\n");
        }
    }
    html + "</tbody></table></div>\n</details>\n</section>\n"
}

fn cells(run: usize, row: &Row) -> [String; 15] {
    let optional = |text: &Option<String>| text.clone().unwrap_or_default();
    let params: Vec<String> = row.params.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let metrics: Vec<String> = row
        .metrics
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    [
        run.to_string(),
        row.workload.clone(),
        row.group.clone(),
        params.join(" "),
        row.subject.clone(),
        optional(&row.peer),
        row.unit.clone(),
        row.subject_median.to_string(),
        row.peer_median.map_or_else(String::new, |v| v.to_string()),
        row.ratio.map_or_else(String::new, |ratio| {
            format!("{:.4} ({:.4}-{:.4})", ratio.median, ratio.low, ratio.high)
        }),
        row.winner.map_or("", Winner::name).to_owned(),
        row.samples.to_string(),
        metrics.join(" "),
        optional(&row.target),
        optional(&row.verdict),
    ]
}
