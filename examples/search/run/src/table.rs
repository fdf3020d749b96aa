//! The table that is printed at the end.

use std::fmt::Write;
use std::time::Duration;

use crate::host::Measured;

const HEADINGS: [&str; 5] = ["host", "matches", "first match after", "time", "ratio"];

/// The table: medians of each host's runs, and how they compare to the first host's. Where `width`
/// has no room for it, one paragraph a host.
pub fn table(hosts: &[(&str, &[Measured])], width: usize) -> String {
    let direct = hosts
        .first()
        .map_or(1, |(_, runs)| median(runs, |run| run.total_ns));
    let rows: Vec<[String; 5]> = hosts
        .iter()
        .map(|(name, runs)| {
            let matches = runs.first().map_or(0, |run| run.matches);
            let total = median(runs, |run| run.total_ns);
            let first = match matches {
                0 => "-".to_owned(),
                _ => time(median(runs, |run| run.first_match_ns)),
            };
            let ratio = format!("{:.2}", total as f64 / direct.max(1) as f64);
            [
                (*name).to_owned(),
                grouped(matches),
                first,
                time(total),
                ratio,
            ]
        })
        .collect();
    let widths: [usize; 5] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(HEADINGS[column].len())
    });
    let mut text = String::new();
    if widths.iter().sum::<usize>() + 2 * widths.len() <= width {
        write_row(&mut text, &HEADINGS.map(str::to_owned), &widths);
        for row in &rows {
            write_row(&mut text, row, &widths);
        }
    } else {
        for row in &rows {
            let _ = writeln!(text, "{}", row[0]);
            for (heading, cell) in HEADINGS.iter().zip(row).skip(1) {
                let _ = writeln!(text, "  {heading}: {cell}");
            }
        }
    }
    text
}

/// The first cell to the left, numbers to the right.
fn write_row(text: &mut String, row: &[String; 5], widths: &[usize; 5]) {
    let _ = write!(text, "  {:<width$}", row[0], width = widths[0]);
    for (cell, width) in row.iter().zip(widths).skip(1) {
        let _ = write!(text, "  {cell:>width$}");
    }
    text.push('\n');
}

/// The middle one; of an even number, the lower of the two in the middle.
fn median(runs: &[Measured], value: impl Fn(&Measured) -> u64) -> u64 {
    let mut values: Vec<u64> = runs.iter().map(value).collect();
    values.sort_unstable();
    values
        .get(values.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(0)
}

/// `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 file`, `1,234 files`.
pub fn counted(number: u64, thing: &str) -> String {
    format!(
        "{} {thing}{}",
        grouped(number),
        if number == 1 { "" } else { "s" }
    )
}

/// Three digits and a unit.
fn time(ns: u64) -> String {
    let time = Duration::from_nanos(ns);
    let (value, unit) = match ns {
        0..1_000_000 => (time.as_secs_f64() * 1e6, "us"),
        1_000_000..1_000_000_000 => (time.as_secs_f64() * 1e3, "ms"),
        _ => (time.as_secs_f64(), "s"),
    };
    let decimals = if value < 10.0 {
        2
    } else {
        usize::from(value < 100.0)
    };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(total_ns: u64) -> Measured {
        Measured {
            matches: 12_345,
            lines_sum: 0,
            first_match_ns: 1_500_000,
            total_ns,
        }
    }

    #[test]
    fn columns_line_up_and_ratios_are_of_medians() {
        let direct = [run(100_000_000), run(500_000_000), run(90_000_000)];
        let c = [run(110_000_000), run(110_000_000), run(1)];
        let text = table(&[("direct", &direct), ("C", &c)], 80);
        assert_eq!(
            text,
            "  host    matches  first match after    time  ratio\n  \
               direct   12,345            1.50 ms  100 ms   1.00\n  \
               C        12,345            1.50 ms  110 ms   1.10\n"
        );
    }

    #[test]
    fn a_narrow_terminal_gets_paragraphs_that_fit() {
        let text = table(&[("Python async", &[run(1)])], 40);
        assert!(text.lines().all(|line| line.len() <= 40), "{text}");
        assert!(text.contains("first match after: 1.50 ms"));
    }

    #[test]
    fn without_a_match_there_is_no_first_one() {
        let none = [Measured {
            matches: 0,
            ..run(5)
        }];
        assert!(table(&[("direct", &none)], 80).contains("  -  "));
    }

    #[test]
    fn numbers_are_grouped_and_times_have_three_digits() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [counted(1, "file"), counted(2_000, "file")],
            ["1 file", "2,000 files"]
        );
        let times = [950, 1_500, 43_800_000, 999_000_000, 12_340_000_000];
        assert_eq!(
            times.map(time),
            ["0.95 us", "1.50 us", "43.8 ms", "999 ms", "12.3 s"]
        );
    }
}
