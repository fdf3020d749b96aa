//! The head of the page: the results at a glance, and links to the workloads.

use std::fmt::Write;

use crate::baseline;
use crate::page::entry::Section;
use crate::page::text::escape;
use crate::report::{Report, Row, Winner};

/// The end of the page.
pub const FOOTER: &str = "<footer><p>Sides take turns within one run and a ratio is formed pair by pair; no sample is thrown away; wall clock throughout. \
What to quote is a ratio with its interval: an absolute time belongs to the machine above.</p></footer>\n";

#[derive(Default)]
struct Counts {
    faster: usize,
    even: usize,
    slower: usize,
    passed: usize,
    failed: usize,
    open: usize,
}

impl Counts {
    fn of<'a>(rows: impl Iterator<Item = &'a Row>) -> Self {
        let mut counts = Self::default();
        for row in rows {
            match row.winner {
                Some(Winner::Subject) => counts.faster += 1,
                Some(Winner::Even) => counts.even += 1,
                Some(Winner::Peer) => counts.slower += 1,
                None => {}
            }
            match row.verdict.as_deref() {
                Some("met") => counts.passed += 1,
                Some("missed") => counts.failed += 1,
                Some(_) => counts.open += 1,
                None => {}
            }
        }
        counts
    }

    fn against_peers(&self) -> usize {
        self.faster + self.even + self.slower
    }

    fn targets(&self) -> usize {
        self.passed + self.failed + self.open
    }
}

/// The title, the kind of run, the counts, and the list of workloads.
#[must_use]
pub fn header(reports: &[Report], sections: &[Section<'_>]) -> String {
    let mut html = "<header>\n<h1>Thalweg benchmarks</h1>\n".to_owned();
    for (number, report) in (1..).zip(reports) {
        let run = if reports.len() > 1 {
            format!("Run {number}: ")
        } else {
            String::new()
        };
        let commit: String = report.commit.chars().take(12).collect();
        let changed = if report.commit.ends_with("-dirty") {
            ", with changes that are not committed"
        } else {
            ""
        };
        let host = &report.host;
        writeln!(
            html,
            "<p class=\"run\">{run}{}, {} with {} processors, commit <code>{}</code>{changed}</p>",
            escape(&report.started.replace('T', " ").replace('Z', " UTC")),
            escape(&host.cpu),
            host.processors,
            escape(&commit)
        )
        .expect("a String takes any text");
        if let Some(why) = baseline::refusal(report) {
            writeln!(
                html,
                "<p class=\"warning\">{run}{why}: it judges nothing, quote nothing of it.</p>"
            )
            .expect("a String takes any text");
        }
    }
    let counts = Counts::of(reports.iter().flat_map(|report| &report.results));
    html += &tiles(&counts);
    html.push_str("<nav aria-label=\"Workloads\"><ul>\n");
    for section in sections {
        let counts = Counts::of(section.entries.iter().map(|entry| entry.row));
        let name = escape(section.workload);
        writeln!(
            html,
            "<li><a href=\"#{name}\">{name}</a>{}<span class=\"said\">{}</span></li>",
            bar(&counts),
            said(&counts)
        )
        .expect("a String takes any text");
    }
    html + "<li><a href=\"#machine\">machine, peers, knobs</a></li>\n<li><a href=\"#rows\">all rows</a></li>\n</ul></nav>\n</header>\n"
}

fn tiles(counts: &Counts) -> String {
    let mut html = "<div class=\"tiles\">\n".to_owned();
    let mut tile = |class: &str, count: usize, what: &str| {
        writeln!(
            html,
            "<div class=\"tile {class}\"><b>{count}</b><span>{what}</span></div>"
        )
        .expect("a String takes any text");
    };
    if counts.against_peers() > 0 {
        tile("faster", counts.faster, "rows faster than the peer");
        tile("even", counts.even, "even");
        tile("slower", counts.slower, "slower");
    }
    if counts.targets() > 0 {
        tile("passed", counts.passed, "targets kept");
        tile("failed", counts.failed, "missed");
        tile("open", counts.open, "not judged");
    }
    html + "</div>\n"
}

/// The numbers of faster, even and slower rows as parts of one bar.
fn bar(counts: &Counts) -> String {
    let all = counts.against_peers();
    if all == 0 {
        return "<span class=\"bar\"></span>".to_owned();
    }
    let mut svg = "<svg class=\"bar\" aria-hidden=\"true\">".to_owned();
    let mut from = 0.0;
    for (class, count) in [
        ("faster", counts.faster),
        ("even", counts.even),
        ("slower", counts.slower),
    ] {
        let width = 100.0 * count as f64 / all as f64;
        if count > 0 {
            write!(
                svg,
                "<rect class=\"part {class}\" x=\"{from:.2}%\" y=\"0\" width=\"{width:.2}%\" height=\"100%\"/>"
            )
            .expect("a String takes any text");
        }
        from += width;
    }
    svg + "</svg>"
}

/// `2 faster, 1 even, 3 slower; targets: 1 kept, 1 missed`.
fn said(counts: &Counts) -> String {
    let join = |pairs: &[(usize, &str)]| {
        let some = pairs.iter().filter(|(count, _)| *count > 0);
        let words: Vec<String> = some
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        words.join(", ")
    };
    let against = join(&[
        (counts.faster, "faster"),
        (counts.even, "even"),
        (counts.slower, "slower"),
    ]);
    let targets = join(&[
        (counts.passed, "kept"),
        (counts.failed, "missed"),
        (counts.open, "not judged"),
    ]);
    match (against.is_empty(), targets.is_empty()) {
        (false, false) => format!("{against}; targets: {targets}"),
        (false, true) => against,
        (true, false) => format!("targets: {targets}"),
        (true, true) => "no peer and no target".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::entry::sections;
    use crate::report::tests::sample;

    #[test]
    fn what_came_out_is_counted() {
        let mut report = sample();
        report.results.push(report.results[0].clone());
        report.results[2].winner = Some(Winner::Peer);
        report.results[2].verdict = Some("missed".to_owned());
        let reports = [report];
        let html = header(&reports, &sections(&reports));
        assert!(
            html.contains("1 faster, 1 slower; targets: 1 kept, 1 missed"),
            "{html}"
        );
        assert!(html.contains("<b>1</b><span>missed</span>"));
        assert!(html.contains("no peer and no target"), "idle has neither");
        assert!(!html.contains("warning"));
    }

    #[test]
    fn a_quick_run_says_so_before_anything_else() {
        let mut report = sample();
        report.knobs.insert("quick".to_owned(), "true".to_owned());
        let reports = [report];
        let html = header(&reports, &sections(&reports));
        assert!(
            html.contains("it is from a quick run: it judges nothing"),
            "{html}"
        );
        assert!(html.find("warning") < html.find("tiles"));
    }
}
