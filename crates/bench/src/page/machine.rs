//! The machine, the tools and the commit of each run.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::doctor::{self, State};
use crate::page::text::escape;
use crate::report::Report;

/// One card per run.
#[must_use]
pub fn html(reports: &[Report]) -> String {
    let mut html =
        "<section id=\"machine\">\n<h2>What was measured, on what, with what</h2>\n".to_owned();
    for (number, report) in (1..).zip(reports) {
        if reports.len() > 1 {
            writeln!(html, "<h3 id=\"run-{number}\">Run {number}</h3>")
                .expect("a String takes any text");
        }
        html += &card(report);
    }
    html + "</section>\n"
}

fn card(report: &Report) -> String {
    let host = &report.host;
    let mut html = "<div class=\"cards\">\n".to_owned();
    let run = [
        ("started", &report.started),
        ("suite", &report.suite),
        ("commit", &report.commit),
    ];
    html += &list("Run", run.into_iter());
    let processors = host.processors.to_string();
    let machine = [
        ("cpu", &host.cpu),
        ("processors", &processors),
        ("affinity", &host.affinity),
        ("governor", &host.governor),
        ("turbo", &host.turbo),
        ("memory", &host.memory),
        ("kernel", &host.uname),
        ("virtual", &host.r#virtual),
        ("load before", &host.load),
        ("stolen time", &host.stolen),
        ("CPU quota", &host.quota),
        ("open files", &host.open_files),
        ("locked memory", &host.locked_memory),
        ("clock", &host.clock),
    ];
    html += &list("Machine", machine.into_iter());
    for (name, map) in [
        ("Peers", &report.peers),
        ("Knobs", &report.knobs),
        ("Tools", &report.tools),
    ] {
        html += &of_map(name, map);
    }
    html.push_str("</div>\n");
    let minded: Vec<_> = doctor::examine(host)
        .into_iter()
        .filter(|finding| finding.state == State::Mind)
        .collect();
    if !minded.is_empty() {
        html.push_str("<details class=\"mind\" open=\"open\"><summary>To mind on this machine</summary>\n<dl>\n");
        for finding in minded {
            writeln!(
                html,
                "<dt>{}: {}</dt><dd>{}</dd>",
                finding.name,
                escape(&finding.value),
                escape(finding.advice)
            )
            .expect("a String takes any text");
        }
        html.push_str("</dl>\n</details>\n");
    }
    html
}

fn of_map(name: &str, map: &BTreeMap<String, String>) -> String {
    if map.is_empty() {
        return String::new();
    }
    list(name, map.iter().map(|(k, v)| (k.as_str(), v)))
}

fn list<'a>(name: &str, pairs: impl Iterator<Item = (&'a str, &'a String)>) -> String {
    let mut html = format!("<div class=\"card\"><h4>{name}</h4><dl>\n");
    for (key, value) in pairs {
        // Lets a long name break between its words.
        let key = escape(key).replace('_', "_<wbr/>").replace('.', ".<wbr/>");
        writeln!(html, "<dt>{key}</dt><dd>{}</dd>", escape(value))
            .expect("a String takes any text");
    }
    html + "</dl></div>\n"
}
