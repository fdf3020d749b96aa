//! Formats text and numbers for the page.

use crate::table::quantity;

/// Escapes `text` for use in markup.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // XML cannot represent these characters.
            c if c.is_control() && c != '\n' && c != '\t' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// A ratio with the digits that a reader compares.
#[must_use]
pub fn ratio(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 0.1 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

/// A count or a rate: thousands become k, millions M, billions G.
#[must_use]
pub fn amount(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, " G"),
        size if size >= 1e6 => (value / 1e6, " M"),
        size if size >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let digits = match scaled.abs() {
        size if size >= 100.0 || scaled.fract() == 0.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{scaled:.digits$}{unit}")
}

/// The value of a metric in readable form: a time in a suitable unit, anything else as a count or a
/// rate.
#[must_use]
pub fn measured(metric: &str, value: f64) -> String {
    if heading(metric).1 {
        quantity(value, "ns")
    } else {
        amount(value)
    }
}

/// The heading of a metric, and whether it is a time in ns.
#[must_use]
pub fn heading(metric: &str) -> (String, bool) {
    let known = match metric {
        "ops_per_s" => "op/s",
        "mib_per_s" => "MiB/s",
        "scaling_vs_1" => "x of one",
        "rss_slope_kib_per_h" => "RSS, KiB an hour",
        "syscalls_per_op" => "syscalls an op",
        "items_per_wake" => "items a wake",
        "cpu_percent" => "CPU, %",
        "p99_9_ns" => return ("p99.9".to_owned(), true),
        _ => "",
    };
    if known.is_empty() {
        match metric.strip_suffix("_ns") {
            Some(name) => (name.replace('_', " "), true),
            None => (metric.replace('_', " "), false),
        }
    } else {
        (known.to_owned(), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_markup_would_read_is_escaped() {
        assert_eq!(
            escape("<a href=\"x\">'&'\u{0}"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;\u{fffd}"
        );
    }

    #[test]
    fn numbers_have_the_digits_that_matter() {
        let ratios = [0.0123, 0.934, 1.0, 12.34, 345.6].map(ratio);
        assert_eq!(ratios, ["0.012", "0.93", "1.00", "12.3", "346"]);
        let amounts = [0.0, 7.0, 3.456, 99_900.0, 1.5e6, 615e6, 2e9].map(amount);
        assert_eq!(
            amounts,
            ["0", "7", "3.46", "99.9 k", "1.50 M", "615 M", "2 G"]
        );
    }

    #[test]
    fn metrics_have_headings_that_people_read() {
        assert_eq!(heading("p50_ns"), ("p50".to_owned(), true));
        assert_eq!(heading("p99_9_ns"), ("p99.9".to_owned(), true));
        assert_eq!(heading("ops_per_s"), ("op/s".to_owned(), false));
        assert_eq!(heading("failed_sends"), ("failed sends".to_owned(), false));
        assert_eq!(measured("p50_ns", 2613.0), "2.61 us");
        assert_eq!(measured("ops_per_s", 3e7), "30 M");
    }
}
