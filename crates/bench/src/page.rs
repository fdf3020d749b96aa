//! A report as one HTML page with charts. It needs no network: the style sheet is inline, the
//! charts are SVG, and the page contains no scripts.
//!
//! The quoted figures come first: the faster side, by ratio, with the interval. Then follow the
//! times, the machine and the tools, and finally every row of the result file. Elements are closed
//! as XML requires, so that any parser can check the page.

mod axis;
mod chart;
mod entry;
mod figures;
mod machine;
mod overview;
mod raw;
mod text;

use std::fmt::Write;

use crate::report::Report;
use crate::workloads;

use entry::{Section, sections};
use text::escape;

const STYLE: &str = include_str!("page/style.css");

/// The page of these runs, in the order given.
#[must_use]
pub fn html(reports: &[Report]) -> String {
    let sections = sections(reports);
    let title = title(reports);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
    );
    page += &overview::header(reports, &sections);
    page.push_str("<main>\n");
    if sections.iter().any(|section| section.has_ratio()) {
        page += chart::LEGEND;
    }
    for section in &sections {
        page += &workload(section, reports.len() > 1);
    }
    page += &machine::html(reports);
    page += &raw::html(reports);
    page.push_str("</main>\n");
    page += overview::FOOTER;
    page.push_str("</body>\n</html>\n");
    page
}

fn title(reports: &[Report]) -> String {
    let day = reports
        .first()
        .and_then(|report| report.started.get(..10))
        .unwrap_or("empty");
    format!("Thalweg benchmarks, {}", escape(day))
}

fn workload(section: &Section<'_>, several_runs: bool) -> String {
    let name = escape(section.workload);
    let mut html = format!("<section class=\"workload\" id=\"{name}\">\n<h2>{name}</h2>\n");
    if let Ok(workload) = workloads::find(section.workload) {
        writeln!(html, "<p class=\"what\">{}</p>", escape(workload.what))
            .expect("a String takes any text");
    }
    let mut everywhere = Vec::new();
    let runs = section.runs();
    if several_runs && runs.len() == 1 {
        everywhere.extend(runs.iter().map(|run| format!("run {run}")));
    }
    if !section.by_point() {
        everywhere.extend(section.only_peer().map(|peer| format!("against {peer}")));
    }
    let common = section.common_params();
    if !common.is_empty() {
        everywhere.push(common);
    }
    if !everywhere.is_empty() {
        let text = escape(&everywhere.join(", "));
        writeln!(html, "<p class=\"common\">Everywhere: {text}</p>")
            .expect("a String takes any text");
    }
    for line in section.following_params() {
        writeln!(html, "<p class=\"common\">{}</p>", escape(&line))
            .expect("a String takes any text");
    }
    html += &chart::html(section, runs.len() > 1);
    html += &figures::html(section, runs.len() > 1);
    html += &checks(section);
    html.push_str("</section>\n");
    html
}

fn checks(section: &Section<'_>) -> String {
    let mut all: Vec<&String> = Vec::new();
    for check in section.entries.iter().flat_map(|entry| &entry.row.checks) {
        if !all.contains(&check) {
            all.push(check);
        }
    }
    if all.is_empty() {
        return String::new();
    }
    let mut html =
        "<details class=\"checks\"><summary>What was checked</summary>\n<ul>\n".to_owned();
    for check in all {
        writeln!(html, "<li>{}</li>", escape(check)).expect("a String takes any text");
    }
    html + "</ul>\n</details>\n"
}

#[cfg(test)]
mod tests;
