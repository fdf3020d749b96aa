//! A workload's ratios: a dot and its interval for each row, a line at 1, and the target if there
//! is one.
//!
//! Positions are percentages, and the numbers are next to the plot, not in it, so that a chart is
//! as legible on a phone as on a desktop.

use std::fmt::Write;

use crate::page::axis::{Axis, label};
use crate::page::entry::{Group, Section};
use crate::page::text::{escape, heading as heading_of, measured, ratio};
use crate::report::{Row, Winner};
use crate::table::quantity;

/// The explanation of the marks.
pub const LEGEND: &str = r#"<aside class="legend" aria-label="How to read the charts">
<p><svg class="key" width="46" height="14" aria-hidden="true"><line x1="4" x2="42" y1="7" y2="7" class="interval faster"/><circle cx="23" cy="7" r="5" class="dot faster"/></svg> Thalweg is faster</p>
<p><svg class="key" width="46" height="14" aria-hidden="true"><line x1="4" x2="42" y1="7" y2="7" class="interval even"/><circle cx="23" cy="7" r="5" class="dot even"/></svg> even: the interval holds 1</p>
<p><svg class="key" width="46" height="14" aria-hidden="true"><line x1="4" x2="42" y1="7" y2="7" class="interval slower"/><circle cx="23" cy="7" r="5" class="dot slower"/></svg> Thalweg is slower</p>
<p><svg class="key" width="46" height="14" aria-hidden="true"><line x1="23" x2="23" y1="0" y2="14" class="target"/></svg> target: stay left of it</p>
<p class="note">Dot: median of the ratio Thalweg / peer, formed pair by pair within one run. Bar: its 95 % interval. Left of 1.0 Thalweg takes less time. The axis is logarithmic.</p>
</aside>
"#;

/// Number of rows from which the axis is repeated below the chart.
const LONG: usize = 12;

/// The chart of a workload, and its rows without a peer.
#[must_use]
pub fn html(section: &Section<'_>, several_runs: bool) -> String {
    let groups = section.groups();
    let has_ratio = |row: &&Row| row.ratio.is_some();
    let rows = groups
        .iter()
        .flat_map(|g| &g.rows)
        .copied()
        .filter(has_ratio)
        .count();
    let mut html = String::new();
    if rows > 0 {
        let axis = Axis::holding(section.entries.iter().flat_map(|entry| ends(entry.row)));
        html.push_str("<div class=\"chart\">\n");
        html += &scale(&axis, true);
        if section.by_point() {
            for group in groups
                .iter()
                .filter(|group| group.rows.iter().any(&has_ratio))
            {
                let heading = heading(group, several_runs);
                if !heading.is_empty() {
                    writeln!(html, "<h3>{}</h3>", escape(&heading))
                        .expect("a String takes any text");
                }
                for (_, row) in sorted(group.rows.iter().map(|row| (String::new(), *row))) {
                    html += &plotted(&axis, &against(row), "", row);
                }
            }
        } else {
            let all = groups.iter().flat_map(|group| {
                let heading = heading(group, several_runs);
                group.rows.iter().map(move |row| (heading.clone(), *row))
            });
            for (name, row) in sorted(all) {
                let against = match section.only_peer() {
                    Some(_) => String::new(),
                    None => against(row),
                };
                html += &plotted(&axis, &escape(&name), &against, row);
            }
        }
        if rows > LONG {
            html += &scale(&axis, false);
        }
        html.push_str("</div>\n");
    }
    html + &alone(&groups, several_runs)
}

/// The values of a row that must fit on the axis.
fn ends(row: &Row) -> Vec<f64> {
    let ratio = row.ratio.map(|ratio| [ratio.low, ratio.median, ratio.high]);
    let target = row.ratio.and(target_of(row));
    ratio.into_iter().flatten().chain(target).collect()
}

/// The limit of the ratio in a row's target.
fn target_of(row: &Row) -> Option<f64> {
    let limits = row.target.as_deref()?.split(" and ");
    limits
        .filter_map(|limit| limit.strip_prefix("ratio <= "))
        .find_map(|limit| limit.parse().ok())
}

fn heading(group: &Group<'_>, several_runs: bool) -> String {
    match (several_runs, group.label.is_empty()) {
        (false, _) => group.label.clone(),
        (true, true) => format!("run {}", group.run),
        (true, false) => format!("run {}, {}", group.run, group.label),
    }
}

/// Rows that have a ratio, the smallest ratio first.
fn sorted<'a>(rows: impl Iterator<Item = (String, &'a Row)>) -> Vec<(String, &'a Row)> {
    let mut rows: Vec<_> = rows
        .filter_map(|(name, row)| Some((row.ratio?.median, name, row)))
        .collect();
    rows.sort_by(|one, other| one.0.total_cmp(&other.0));
    rows.into_iter().map(|(_, name, row)| (name, row)).collect()
}

fn scale(axis: &Axis, with_words: bool) -> String {
    let mut html = "<div class=\"scale\" aria-hidden=\"true\"><div class=\"marks\">".to_owned();
    for mark in &axis.marks {
        let (place, text) = (axis.place(*mark), label(*mark));
        let one = if text == "1.0" { " class=\"one\"" } else { "" };
        write!(html, "<span{one} style=\"left:{place:.2}%\">{text}</span>")
            .expect("a String takes any text");
    }
    html.push_str("</div>");
    if with_words {
        let one = axis.place(1.0);
        // Only if there is space for the words.
        if one > 22.0 {
            write!(
                html,
                "<div class=\"words\"><span class=\"left\" style=\"right:{:.2}%\">&#8592; faster</span>",
                100.0 - one
            )
            .expect("a String takes any text");
        } else {
            html.push_str("<div class=\"words\">");
        }
        if one < 78.0 {
            write!(
                html,
                "<span class=\"right\" style=\"left:{one:.2}%\">slower &#8594;</span>"
            )
            .expect("a String takes any text");
        }
        html.push_str("</div>");
    }
    html + "</div>\n"
}

/// The subject and the peer of a row.
fn against(row: &Row) -> String {
    let subject = if row.subject == "thalweg" {
        String::new()
    } else {
        format!("{} ", escape(&row.subject))
    };
    let peer = escape(row.peer.as_deref().unwrap_or_default());
    format!("{subject}<span class=\"against\">against</span> <b>{peer}</b>")
}

/// A row with its plot; `name` and `more` are markup.
fn plotted(axis: &Axis, name: &str, more: &str, row: &Row) -> String {
    let Some(figure) = row.ratio else {
        return String::new();
    };
    let class = match row.winner {
        Some(Winner::Subject) => "faster",
        Some(Winner::Peer) => "slower",
        _ => "even",
    };
    let more = if more.is_empty() {
        String::new()
    } else {
        format!("<span class=\"more\">{more}</span>")
    };
    format!(
        "<div class=\"row\"><div class=\"who\">{name}{more}</div>\
         <div class=\"plot\">{}</div>\
         <div class=\"value {class}\"><b>{}</b> <span class=\"range\">{}&#8211;{}</span></div>\
         <div class=\"verdict\">{}</div></div>\n",
        plot(axis, row, class),
        ratio(figure.median),
        ratio(figure.low),
        ratio(figure.high),
        verdict(row),
    )
}

fn plot(axis: &Axis, row: &Row, class: &str) -> String {
    let Some(figure) = row.ratio else {
        return String::new();
    };
    let one = axis.place(1.0);
    let mut svg = format!(
        "<svg role=\"img\" aria-label=\"ratio {}, 95 % interval {} to {}: {class}\"><rect class=\"better\" x=\"0\" y=\"0\" width=\"{one:.2}%\" height=\"100%\"/>",
        ratio(figure.median),
        ratio(figure.low),
        ratio(figure.high)
    );
    for mark in &axis.marks {
        let place = axis.place(*mark);
        write!(
            svg,
            "<line class=\"grid\" x1=\"{place:.2}%\" x2=\"{place:.2}%\" y1=\"0\" y2=\"100%\"/>"
        )
        .expect("a String takes any text");
    }
    write!(
        svg,
        "<line class=\"one\" x1=\"{one:.2}%\" x2=\"{one:.2}%\" y1=\"0\" y2=\"100%\"/>"
    )
    .expect("a String takes any text");
    if let Some(target) = target_of(row) {
        let place = axis.place(target);
        write!(
            svg,
            "<line class=\"target\" x1=\"{place:.2}%\" x2=\"{place:.2}%\" y1=\"0\" y2=\"100%\"/>"
        )
        .expect("a String takes any text");
    }
    let (low, middle, high) = (
        axis.place(figure.low),
        axis.place(figure.median),
        axis.place(figure.high),
    );
    write!(
        svg,
        "<line class=\"interval {class}\" x1=\"{low:.2}%\" x2=\"{high:.2}%\" y1=\"50%\" y2=\"50%\"/>\
         <circle class=\"dot {class}\" cx=\"{middle:.2}%\" cy=\"50%\" r=\"5\"/></svg>"
    )
    .expect("a String takes any text");
    svg
}

/// The verdict as a badge, with its target.
fn verdict(row: &Row) -> String {
    let (Some(target), Some(verdict)) = (&row.target, &row.verdict) else {
        return String::new();
    };
    let (class, mark) = match verdict.as_str() {
        "met" => ("passed", "&#10003; "),
        "missed" => ("failed", "&#10007; "),
        _ => ("open", ""),
    };
    format!(
        "<span class=\"badge {class}\">{mark}{}</span> <span class=\"limit\">{}</span>",
        escape(verdict),
        escape(&spelled(row, target))
    )
}

/// A target in readable form, with the value of the limited figure: `p50 ≤ 3.00 us, is 2.61 us`.
fn spelled(row: &Row, target: &str) -> String {
    let limit = |text: &str| {
        let (name, sign, limit) = match (text.split_once(" <= "), text.split_once(" >= ")) {
            (Some((name, limit)), _) => (name, "\u{2264}", limit),
            (_, Some((name, limit))) => (name, "\u{2265}", limit),
            _ => return text.to_owned(),
        };
        match (limit.parse::<f64>(), row.metrics.get(name)) {
            (Ok(limit), Some(value)) => format!(
                "{} {sign} {}, is {}",
                heading_of(name).0,
                measured(name, limit),
                measured(name, *value)
            ),
            _ => format!("{name} {sign} {limit}"),
        }
    };
    let limits: Vec<String> = target.split(" and ").map(limit).collect();
    limits.join("; ")
}

/// The rows that have no peer: the figures that they are judged by, and the verdict.
fn alone(groups: &[Group<'_>], several_runs: bool) -> String {
    let mut html = String::new();
    for group in groups {
        for row in group.rows.iter().filter(|row| row.ratio.is_none()) {
            let name = heading(group, several_runs);
            let name = if name.is_empty() { &row.subject } else { &name };
            writeln!(
                html,
                "<div class=\"row\"><div class=\"who\">{}</div><div class=\"value\"><b>{}</b></div><div class=\"verdict\">{}</div></div>",
                escape(name),
                escape(&quantity(row.subject_median, &row.unit)),
                verdict(row)
            )
            .expect("a String takes any text");
        }
    }
    if html.is_empty() {
        html
    } else {
        format!("<div class=\"alone\">\n{html}</div>\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judgement::Target;
    use crate::page::entry::sections;
    use crate::report::Report;
    use crate::report::tests::sample;
    use crate::statistics::tests::in_three;

    fn report(rows: &[(&str, &str, f64)]) -> Report {
        let mut report = sample();
        report.results = rows
            .iter()
            .map(|(capacity, peer, ratio)| {
                Row::new(
                    ("w", "queue"),
                    &[("capacity", *capacity)],
                    "ns",
                    ("thalweg", in_three(&[*ratio; 5])),
                    Some((peer, in_three(&[1.0; 5]))),
                )
                .held_to(&Target::Ratio(1.5), None)
            })
            .collect();
        report
    }

    fn order(html: &str, words: &[&str]) -> bool {
        let places: Vec<Option<usize>> = words.iter().map(|word| html.find(word)).collect();
        places.iter().all(Option::is_some) && places.is_sorted()
    }

    #[test]
    fn peers_are_sorted_below_their_point() {
        let report = report(&[
            ("64", "flume", 0.9),
            ("64", "rtrb", 0.4),
            ("8", "kanal", 2.0),
            ("8", "std", 0.5),
        ]);
        let reports = [report];
        let html = html(&sections(&reports)[0], false);
        let words = [
            "capacity 64",
            "rtrb",
            "flume",
            "capacity 8",
            ">std",
            "kanal",
        ];
        assert!(order(&html, &words), "{html}");
    }

    #[test]
    fn points_with_one_peer_each_are_sorted_together() {
        let report = report(&[
            ("64", "eventfd", 0.9),
            ("8", "eventfd", 0.4),
            ("16", "x", 2.0),
        ]);
        let reports = [report];
        let html = html(&sections(&reports)[0], false);
        assert!(!html.contains("<h3>"));
        assert!(
            order(&html, &["capacity 8<", "capacity 64<", "capacity 16<"]),
            "{html}"
        );
    }

    #[test]
    fn a_row_shows_ratio_interval_target_and_verdict() {
        let reports = [report(&[("64", "rtrb", 2.0)])];
        let html = html(&sections(&reports)[0], false);
        for part in [
            "<b>2.00</b>",
            "2.00&#8211;2.00",
            "slower",
            "class=\"target\"",
            "&#10007; missed",
            "ratio \u{2264} 1.5",
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
    }

    #[test]
    fn a_row_without_a_peer_shows_its_figure_and_verdict() {
        let mut report = sample();
        report.results = vec![
            Row::new(
                ("idle", "boundary"),
                &[],
                "switches",
                ("thalweg", vec![0.0]),
                None,
            )
            .held_to(&Target::Worst(1.0), None),
        ];
        let reports = [report];
        let html = html(&sections(&reports)[0], true);
        assert!(
            html.contains("0 switches") && html.contains("run 1"),
            "{html}"
        );
        assert!(!html.contains("<svg"));
    }

    #[test]
    fn a_limit_is_spelled_with_what_the_figure_is() {
        let mut row = report(&[("64", "rtrb", 2.0)]).results.remove(0);
        row.metrics.insert("p50_ns".to_owned(), 2613.0);
        assert_eq!(
            spelled(&row, "p50_ns <= 3000 and ratio <= 1.5"),
            "p50 \u{2264} 3.00 us, is 2.61 us; ratio \u{2264} 1.5"
        );
        assert_eq!(
            spelled(&row, "worst / median <= 1.1 and ops_per_s >= 30000000"),
            "worst / median \u{2264} 1.1; ops_per_s \u{2265} 30000000"
        );
        assert_eq!(spelled(&row, "something else"), "something else");
    }

    #[test]
    fn the_limit_of_a_ratio_is_found_among_others() {
        let mut row = report(&[("64", "rtrb", 2.0)]).results.remove(0);
        row.target = Some("p50_ns <= 10000 and ratio <= 1.5".to_owned());
        assert_eq!(target_of(&row), Some(1.5));
        row.target = Some("p50_ns <= 10000".to_owned());
        assert_eq!(target_of(&row), None);
    }
}
