//! How figures are written for people: ratios with their interval and mark, times, targets in words.

use std::fmt::Write;

use crate::report::{Row, Winner};

/// `met`, `missed`, `undecided` or `not judged`, if the row has a target. Reading a file judges its
/// rows again by the whole interval, whatever the file says.
#[must_use]
pub fn verdict(row: &Row) -> Option<&str> {
    let verdict = row.verdict.as_deref()?;
    Some(verdict.split_once(": ").map_or(verdict, |(word, _)| word))
}

/// A target in words: `0.6`, `≤ 60 ns`, `≥ 5 M per s`, `bytes ≤ 0.1 of the peer's`.
#[must_use]
pub fn target(row: &Row) -> Option<String> {
    let text = row.target.as_deref()?;
    let several = text.contains(" and ");
    let limit = |text: &str| {
        let (name, sign, limit) = match (text.split_once(" <= "), text.split_once(" >= ")) {
            (Some((name, limit)), _) => (name, "≤", limit),
            (_, Some((name, limit))) => (name, "≥", limit),
            _ => return text.to_owned(),
        };
        let Ok(value) = limit.parse::<f64>() else {
            return text.to_owned();
        };
        match (name, name.split_once(" / ")) {
            ("ratio", _) if !several => limit.to_owned(),
            ("ratio's high end", _) => format!("{limit} at the high end"),
            (_, Some(("worst", _))) => format!("worst {sign} {limit} of the median"),
            (_, Some((ours, _))) => format!("{} {sign} {limit} of the peer's", words(ours)),
            ("ns" | "wake_ns", _) => format!("{sign} {}", round(name, value)),
            ("per_s" | "ops_per_s", _) => format!("{sign} {} per s", round(name, value)),
            (name, _) => format!("{} {sign} {}", words(name), round(name, value)),
        }
    };
    let limits = text.split(" and ").map(limit);
    Some(limits.collect::<Vec<_>>().join(" and "))
}

/// A limit without the zeros after its point.
fn round(name: &str, limit: f64) -> String {
    let text = metric(name, limit);
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    };
    format!("{number} {unit}").trim_end().to_owned()
}

/// The name of a metric in words.
fn words(name: &str) -> String {
    name.strip_suffix("_ns").unwrap_or(name).replace('_', " ")
}

/// A ratio with its interval: bold if Thalweg is faster, `=` if neither side won.
#[must_use]
pub fn ratio(row: &Row) -> String {
    let Some(ratio) = row.ratio else {
        return "no ratio".to_owned();
    };
    let text = format!(
        "{} ({} to {})",
        digits(ratio.median),
        digits(ratio.low),
        digits(ratio.high)
    );
    match row.winner {
        Some(Winner::Subject) => format!("**{text}**"),
        Some(Winner::Even) => format!("{text} ="),
        _ => text,
    }
}

/// The ratio, the peer if `peer` is given, and the target if it is missed or undecided.
#[must_use]
pub fn judged_ratio(row: &Row, peer: Option<&str>) -> String {
    let text = ratio(row);
    let (figure, mark) = match text.strip_suffix(" =") {
        Some(figure) => (figure, " ="),
        None => (text.as_str(), ""),
    };
    let peer = peer.map_or(String::new(), |peer| format!(" of {peer}"));
    let mut text = format!("{figure}{peer}{mark}");
    if let (Some(verdict), Some(target)) = (verdict(row), target(row))
        && verdict != "met"
    {
        write!(text, " {verdict} {target}").expect("a String takes any text");
    }
    text
}

/// A value in its unit, times with three digits: `222 ns`, `1.23 us`, `296 bytes`.
#[must_use]
pub fn quantity(value: f64, unit: &str) -> String {
    let ns = match unit {
        "ns" => value,
        "ms" => value * 1e6,
        "s" => value * 1e9,
        _ => return format!("{} {unit}", number(value)),
    };
    let (scaled, unit) = match ns.abs() {
        size if size >= 1e9 => (ns / 1e9, "s"),
        size if size >= 1e6 => (ns / 1e6, "ms"),
        size if size >= 1e3 => (ns / 1e3, "us"),
        _ => (ns, "ns"),
    };
    format!("{} {unit}", digits(scaled))
}

/// A metric: a time with its unit if its name says so, otherwise a number.
#[must_use]
pub fn metric(name: &str, value: f64) -> String {
    if name == "ns" || name.ends_with("_ns") {
        quantity(value, "ns")
    } else {
        number(value)
    }
}

/// A number with three digits: `0.052`, `4.28`, `42.8`, `6,344`, `1.25 M`. A small whole number has
/// no point.
#[must_use]
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{} M", digits(value / 1e6)),
        size if size >= 1e3 => {
            let whole = value.round() as i64;
            format!("{},{:03}", whole / 1000, whole % 1000)
        }
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        _ => digits(value),
    }
}

/// Three digits, as ratios and times have them: `222`, `12.3`, `0.31`, `0.052`.
#[must_use]
pub fn digits(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 || size == 0.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(target: Option<&str>) -> Row {
        let sides = (("thalweg", vec![2.0; 5]), Some(("std", vec![1.0; 5])));
        let mut row = Row::new(("w", "queue"), &[], "ns", sides.0, sides.1);
        row.target = target.map(str::to_owned);
        row
    }

    #[test]
    fn target_is_written_in_words() {
        for (text, written) in [
            ("ratio <= 0.6", "0.6"),
            ("wake_ns <= 60", "≤ 60 ns"),
            (
                "p50_ns <= 10000 and ratio <= 1.5",
                "p50 ≤ 10 us and ratio ≤ 1.5",
            ),
            ("per_s >= 5000000", "≥ 5 M per s"),
            ("bytes / peer_bytes <= 0.1", "bytes ≤ 0.1 of the peer's"),
            ("worst / median <= 1.5", "worst ≤ 1.5 of the median"),
            ("smallest_share >= 0.5", "smallest share ≥ 0.5"),
        ] {
            let row = row(Some(text));
            assert_eq!(target(&row).unwrap(), written);
        }
    }

    #[test]
    fn figures_have_three_digits() {
        let times = [222.3, 5.58, 2_345.0, 12_300_000.0].map(|ns| quantity(ns, "ns"));
        assert_eq!(times, ["222 ns", "5.58 ns", "2.35 us", "12.3 ms"]);
        let numbers = [0.0, 7.0, 0.0523, 42.84, 296.0, 6344.0, 9_040_000.0].map(number);
        assert_eq!(
            numbers,
            ["0", "7", "0.052", "42.8", "296", "6,344", "9.04 M"]
        );
        assert_eq!(metric("p50_ns", 2613.0), "2.61 us");
        let mut row = row(Some("ratio <= 1.5"));
        row.verdict = Some("missed".to_owned());
        assert_eq!(
            judged_ratio(&row, Some("std")),
            "2.00 (2.00 to 2.00) of std missed 1.5"
        );
        row.winner = Some(Winner::Subject);
        row.target = None;
        assert_eq!(judged_ratio(&row, None), "**2.00 (2.00 to 2.00)**");
    }
}
