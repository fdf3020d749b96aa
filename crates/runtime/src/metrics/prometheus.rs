//! The text that Prometheus scrapes: its exposition format, version 0.0.4.
//!
//! For each metric a line that says what it is, one that says of which type, and one for each combination of labels. Units are seconds and bytes, counters end in
//! `_total`, a histogram's buckets are cumulative and end with `+Inf`.

use std::fmt::{self, Write};

use super::{Counted, Histogram, Metrics, WorkerMetrics};

/// A label that Prometheus would refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadLabel {
    /// A name has letters, digits and `_`, no digit first, and does not begin with `__`.
    Name(String),
    /// This name is one that the text has already.
    Taken(String),
}

impl fmt::Display for BadLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{name:?} is no name for a label"),
            Self::Taken(name) => write!(f, "the label {name} is there already"),
        }
    }
}

impl std::error::Error for BadLabel {}

/// Labels of ours.
const OURS: [&str; 4] = ["worker", "kind", "reason", "le"];

type Of<T> = fn(&T) -> u64;

/// Counters that each worker has.
const BY_WORKER: [(&str, &str, Of<Counted>); 9] = [
    (
        "thalweg_messages_handled_total",
        "Messages that behaviour actors have handled, or ended in.",
        |counted| counted.messages,
    ),
    (
        "thalweg_messages_dropped_total",
        "Messages that found a mailbox full and were dropped.",
        |counted| counted.dropped_messages,
    ),
    (
        "thalweg_restarts_total",
        "Children that supervisors started again.",
        |counted| counted.restarts,
    ),
    (
        "thalweg_slices_total",
        "How often an actor, or a turn of one, was given its worker.",
        |counted| counted.slices,
    ),
    (
        "thalweg_waits_total",
        "How often an actor was put aside until it is woken.",
        |counted| counted.waits,
    ),
    (
        "thalweg_wakes_from_afar_total",
        "Actors that others than their worker woke.",
        |counted| counted.wakes_from_afar,
    ),
    (
        "thalweg_deadlines_total",
        "Actors whose deadline was what woke them.",
        |counted| counted.deadlines,
    ),
    (
        "thalweg_steals_total",
        "How often a worker without work took some of another one's.",
        |counted| counted.steals,
    ),
    (
        "thalweg_worker_sleeps_total",
        "How often a worker found nothing to do, and went to sleep.",
        |counted| counted.sleeps,
    ),
];

/// What each worker has just now.
const GAUGES: [(&str, &str, Of<WorkerMetrics>); 2] = [
    (
        "thalweg_stacks",
        "Stacks that a worker has, in use or not.",
        |worker| worker.stacks as u64,
    ),
    (
        "thalweg_queued",
        "Actors and turns that have not begun, by the worker that has them; none: no worker has taken them yet.",
        |worker| worker.queued as u64,
    ),
];

impl Metrics {
    /// As Prometheus' text, whose content type is `text/plain; version=0.0.4`.
    pub fn to_prometheus(&self) -> String {
        let mut page = Page::default();
        page.write(self);
        page.text
    }

    /// The same, with these labels on each line.
    ///
    /// ```
    /// use thalweg_runtime::{Config, Runtime};
    ///
    /// let runtime = Runtime::start(Config::exact(1))?;
    /// let text = runtime.handle().metrics().to_prometheus_with(&[("service", "search")])?;
    /// assert!(text.contains("thalweg_timers_fired_total{service=\"search\"} 0\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// One of them has no good name, or one that is taken.
    pub fn to_prometheus_with(&self, labels: &[(&str, &str)]) -> Result<String, BadLabel> {
        for (place, (name, _)) in labels.iter().enumerate() {
            if !is_name(name) {
                return Err(BadLabel::Name((*name).to_owned()));
            }
            let others = labels[..place].iter().map(|(other, _)| other);
            if OURS.iter().chain(others).any(|other| other == name) {
                return Err(BadLabel::Taken((*name).to_owned()));
            }
        }
        let mut page = Page {
            labels,
            ..Page::default()
        };
        page.write(self);
        Ok(page.text)
    }
}

fn is_name(name: &str) -> bool {
    let first = name.bytes().next();
    first.is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
        && name.bytes().all(|c| c == b'_' || c.is_ascii_alphanumeric())
        && !name.starts_with("__")
}

#[derive(Default)]
struct Page<'a> {
    text: String,
    /// On each line.
    labels: &'a [(&'a str, &'a str)],
}

impl Page<'_> {
    fn write(&mut self, metrics: &Metrics) {
        let total = metrics.total();
        self.actors(&total);
        for (name, help, of) in BY_WORKER {
            self.begin(name, help, "counter");
            for (index, worker) in metrics.workers.iter().enumerate() {
                self.line(name, &[("worker", &index.to_string())], of(&worker.counted));
            }
            self.line(name, &[("worker", "none")], of(&metrics.outside));
        }
        for (name, help, of) in GAUGES {
            self.begin(name, help, "gauge");
            for (index, worker) in metrics.workers.iter().enumerate() {
                self.line(name, &[("worker", &index.to_string())], of(worker));
            }
            if name == "thalweg_queued" {
                self.line(name, &[("worker", "none")], metrics.injected as u64);
            }
        }
        let name = "thalweg_timers_fired_total";
        self.begin(
            name,
            "Deadlines of calls, and messages to be sent later, that came.",
            "counter",
        );
        self.line(name, &[], metrics.timers_fired);
        if let Some(slices) = &metrics.slices {
            self.histogram(
                "thalweg_slice_seconds",
                "How long actors had their worker at a time.",
                slices,
            );
        }
    }

    fn actors(&mut self, total: &Counted) {
        let kinds = [
            ("stack", total.started_stacks, &total.ended_stacks),
            (
                "behaviour",
                total.started_behaviours,
                &total.ended_behaviours,
            ),
        ];
        let name = "thalweg_actors_started_total";
        self.begin(
            name,
            "Actors that were spawned, and incarnations of behaviour actors.",
            "counter",
        );
        for (kind, started, _) in kinds {
            self.line(name, &[("kind", kind)], started);
        }
        let name = "thalweg_actors_ended_total";
        self.begin(name, "The same that ended, by the reason.", "counter");
        for (kind, _, ended) in kinds {
            for (reason, count) in ended {
                self.line(name, &[("kind", kind), ("reason", reason)], *count);
            }
        }
        let name = "thalweg_actors";
        self.begin(name, "The same that live.", "gauge");
        for (kind, started, ended) in kinds {
            let ended: u64 = ended.values().sum();
            self.line(name, &[("kind", kind)], started.saturating_sub(ended));
        }
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.begin(name, help, "histogram");
        let bucket = format!("{name}_bucket");
        for (bound, count) in &histogram.buckets {
            let bound = bound.map_or_else(|| "+Inf".into(), |at| at.as_secs_f64().to_string());
            self.line(&bucket, &[("le", &bound)], *count);
        }
        let sum = histogram.sum.as_secs_f64();
        self.line(&format!("{name}_sum"), &[], sum);
        self.line(&format!("{name}_count"), &[], histogram.count());
    }

    fn begin(&mut self, name: &str, help: &str, of: &str) {
        self.put(format_args!("# HELP {name} {help}\n# TYPE {name} {of}\n"));
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl fmt::Display) {
        self.put(format_args!("{name}"));
        let mut before = '{';
        for (label, text) in self.labels.iter().chain(labels) {
            self.put(format_args!("{before}{label}=\"{}\"", Escaped(text)));
            before = ',';
        }
        let end = if before == ',' { "}" } else { "" };
        self.put(format_args!("{end} {value}\n"));
    }

    fn put(&mut self, what: fmt::Arguments<'_>) {
        let written = self.text.write_fmt(what);
        debug_assert!(written.is_ok(), "a string takes everything");
    }
}

/// A label's text: a backslash, a quotation mark and the end of a line are escaped, nothing else.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Escaped, is_name};

    #[test]
    fn three_characters_are_escaped() {
        assert_eq!(Escaped("a\\b\"c\nd\te").to_string(), "a\\\\b\\\"c\\nd\te");
    }

    #[test]
    fn names_of_labels() {
        for good in ["a", "_a", "A9_", "service"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "9a", "a-b", "a b", "é", "__a", "a\n"] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }
}
