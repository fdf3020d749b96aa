//! A report as Markdown: the machine, the tools, and the table.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::baseline;
use crate::doctor::{self, State};
use crate::report::Report;
use crate::table;

/// The summary of these runs.
#[must_use]
pub fn markdown(reports: &[Report]) -> String {
    let mut text = "# Thalweg benchmarks\n".to_owned();
    for (number, report) in (1..).zip(reports) {
        if reports.len() > 1 {
            write!(text, "\n## Run {number}\n").expect("a String takes any text");
        }
        text += &run(report);
    }
    text.push_str(
        "\nA ratio is subject / peer by time, formed pair by pair: below 1 the subject is faster. In brackets the 95 % interval; \
         `=` where it holds 1.\n",
    );
    text
}

fn run(report: &Report) -> String {
    let host = &report.host;
    let mut text = String::new();
    let mut say = |what: &str, value: &str| {
        if !value.is_empty() {
            writeln!(text, "- {what}: {value}").expect("a String takes any text");
        }
    };
    say("started", &report.started);
    say("suite", &report.suite);
    say("commit", &report.commit);
    say(
        "machine",
        &format!(
            "{} with {} processors (may use {}), {}, {}, governor {}, turbo {}, {}, load {}, clock {}",
            host.cpu,
            host.processors,
            host.affinity,
            host.memory,
            host.uname,
            host.governor,
            host.turbo,
            host.r#virtual,
            host.load,
            host.clock
        ),
    );
    say("peers", &pairs(&report.peers));
    say("knobs", &pairs(&report.knobs));
    say("tools", &pairs(&report.tools));
    if let Some(why) = baseline::refusal(report) {
        say("mind", &format!("{why}: it judges nothing"));
    }
    for finding in doctor::examine(host) {
        if finding.state == State::Mind {
            let what = format!("{}: {}. {}", finding.name, finding.value, finding.advice);
            say("mind", &what);
        }
    }
    format!("\n{text}\n{}", table::markdown(report))
}

fn pairs(map: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = map.iter().map(|(k, v)| format!("{k} {v}")).collect();
    pairs.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    #[test]
    fn machine_knobs_and_table_of_every_run_are_there() {
        let mut second = sample();
        second.knobs.insert("quick".to_owned(), "true".to_owned());
        let text = markdown(&[sample(), second]);
        for part in [
            "## Run 2",
            "A processor with 2 processors (may use 0-1)",
            "knobs: quick true",
            "mind: it is from a quick run: it judges nothing",
            "mind: virtual: kvm.",
            "| search_overhead |",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!markdown(&[sample()]).contains("Run 1"));
    }
}
