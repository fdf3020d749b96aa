//! A run in readable form: one Markdown table.

use std::fmt::Write;

use crate::figure::quantity;
use crate::report::{Report, Row, Winner};
use crate::statistics::FEWEST_PROCESSES;

/// Columns of the table.
const HEAD: [&str; 8] = [
    "workload",
    "params",
    "subject",
    "peer",
    "ratio (95 %)",
    "p50 / p99",
    "target",
    "verdict",
];

/// The rows of `report` as a Markdown table, columns padded so that it also reads as plain text.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut lines = vec![HEAD.map(str::to_owned)];
    lines.extend(report.results.iter().map(cells));
    aligned(&lines)
}

/// A Markdown table with padded columns; its first line is the head.
#[must_use]
pub fn aligned<const N: usize>(lines: &[[String; N]]) -> String {
    let widths: Vec<usize> = (0..N)
        .map(|column| {
            lines
                .iter()
                .map(|line| line[column].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        text.push('|');
        for (cell, width) in line.iter().zip(&widths) {
            write!(text, " {cell:<width$} |").expect("a String takes any text");
        }
        text.push('\n');
        if number == 0 {
            text.push('|');
            for width in &widths {
                write!(text, " {} |", "-".repeat(*width)).expect("a String takes any text");
            }
            text.push('\n');
        }
    }
    text
}

fn cells(row: &Row) -> [String; 8] {
    let params: Vec<String> = row.params.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let side = |name: &str, value: f64| format!("{name} {}", quantity(value, &row.unit));
    let latency = |name: &str| row.metrics.get(name).map(|ns| quantity(*ns, "ns"));
    let target = row.target.as_deref().unwrap_or("-");
    [
        row.workload.clone(),
        params.join(" ").replace('|', "\\|"),
        side(&row.subject, row.subject_median),
        match (&row.peer, row.peer_median) {
            (Some(peer), Some(value)) => side(peer, value),
            // It was left out, and the verdict says why.
            (Some(peer), None) => format!("{peer} -"),
            (None, _) => "-".to_owned(),
        },
        row.ratio.map_or_else(
            || "-".to_owned(),
            |ratio| {
                let mark = match row.winner {
                    Some(Winner::Even) => " =",
                    _ => "",
                };
                let few = few_processes(row);
                format!(
                    "{:.3} ({:.3}-{:.3}){mark}{few}",
                    ratio.median, ratio.low, ratio.high
                )
            },
        ),
        match (latency("p50_ns"), latency("p99_ns")) {
            (Some(p50), Some(p99)) => format!("{p50} / {p99}"),
            _ => "-".to_owned(),
        },
        target.to_owned(),
        row.verdict.as_deref().unwrap_or("-").to_owned(),
    ]
}

/// The mark of a ratio whose interval does not contain the difference between processes: their
/// number, or `?` in a file from before the number was known.
#[must_use]
pub fn few_processes(row: &Row) -> String {
    match row.processes() {
        None => " [?]".to_owned(),
        Some(1) => " [1 process]".to_owned(),
        Some(count) if count < FEWEST_PROCESSES => format!(" [{count} processes]"),
        Some(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    #[test]
    fn a_row_shows_both_sides_its_ratio_and_its_verdict() {
        let text = markdown(&sample());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(
            lines
                .iter()
                .all(|line| line.chars().count() == lines[0].chars().count())
        );
        let row = lines[2];
        for part in [
            "workers=2",
            "thalweg 1.00 s",
            "direct 2.00 s",
            "0.500 (0.500-0.500)",
            "ratio <= 1.05",
            "| met ",
        ] {
            assert!(row.contains(part), "{part} in {row}");
        }
        assert!(lines[3].contains("0 switches"));
    }

    #[test]
    fn peer_that_was_left_out_is_named() {
        let mut report = sample();
        report.results[0].peer_median = None;
        assert!(markdown(&report).contains("| direct - "));
    }

    #[test]
    fn ratio_from_few_processes_is_marked() {
        let mut report = sample();
        for (process, mark) in [
            (vec![0, 1, 2], "(0.500-0.500) "),
            (vec![0, 0, 1], "(0.500-0.500) [2 processes]"),
            (vec![0, 0, 0], "(0.500-0.500) [1 process]"),
            (vec![], "(0.500-0.500) [?]"),
        ] {
            report.results[0].process = process;
            assert!(markdown(&report).contains(mark), "{mark}");
        }
    }

    #[test]
    fn a_bar_in_a_pattern_does_not_break_the_table() {
        let mut report = sample();
        report.results[0]
            .params
            .insert("pattern".to_owned(), "a|b".to_owned());
        assert!(markdown(&report).contains("pattern=a\\|b"));
    }
}
