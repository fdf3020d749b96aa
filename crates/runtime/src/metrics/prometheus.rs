//! The Prometheus text exposition format, version 0.0.4.
//!
//! Each metric has a `HELP` line, a `TYPE` line, and one line per combination of labels. Units are
//! seconds and bytes, counters end in `_total`, and a histogram's buckets are cumulative and end
//! with `+Inf`.

use std::fmt::{self, Write};

use super::{Counters, Histogram, Metrics, WorkerMetrics};

/// A label that Prometheus would reject.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelError {
    /// The name is invalid. A name consists of letters, digits and `_`, begins with no digit, and
    /// does not begin with `__`.
    Name(String),
    /// The text already uses this name.
    Taken(String),
}

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{name:?} is not a valid label name"),
            Self::Taken(name) => write!(f, "the label {name} is already used"),
        }
    }
}

impl std::error::Error for LabelError {}

/// The labels that this module uses.
const OURS: [&str; 4] = ["worker", "kind", "reason", "le"];

type Of<T> = fn(&T) -> u64;

/// The counters of each worker.
const BY_WORKER: [(&str, &str, Of<Counters>); 9] = [
    (
        "thalweg_messages_handled_total",
        "Messages that behaviour actors handled, including those during which they ended.",
        |counters| counters.messages,
    ),
    (
        "thalweg_messages_dropped_total",
        "Messages that were dropped because a mailbox was full.",
        |counters| counters.dropped_messages,
    ),
    (
        "thalweg_restarts_total",
        "Children that supervisors restarted.",
        |counters| counters.restarts,
    ),
    (
        "thalweg_slices_total",
        "How often an actor, or a turn of one, got the worker.",
        |counters| counters.slices,
    ),
    (
        "thalweg_waits_total",
        "How often an actor was suspended to wait.",
        |counters| counters.waits,
    ),
    (
        "thalweg_remote_wakes_total",
        "Actors that were woken by a thread other than their worker.",
        |counters| counters.remote_wakes,
    ),
    (
        "thalweg_deadlines_total",
        "Actors that were woken by a deadline.",
        |counters| counters.deadlines,
    ),
    (
        "thalweg_steals_total",
        "How often a worker without work stole from another worker.",
        |counters| counters.steals,
    ),
    (
        "thalweg_worker_sleeps_total",
        "How often a worker found no work and went to sleep.",
        |counters| counters.sleeps,
    ),
];

/// The gauges of each worker.
const GAUGES: [(&str, &str, Of<WorkerMetrics>); 2] = [
    (
        "thalweg_stacks",
        "Stacks of a worker, used or free.",
        |worker| worker.stacks as u64,
    ),
    (
        "thalweg_queued",
        "Unstarted actors and turns, by worker; none: no worker has taken them yet.",
        |worker| worker.queued as u64,
    ),
];

impl Metrics {
    /// Returns the metrics in Prometheus text format. Its content type is `text/plain;
    /// version=0.0.4`.
    pub fn to_prometheus(&self) -> String {
        let mut page = Page::default();
        page.write(self);
        page.text
    }

    /// Like [`to_prometheus`](Self::to_prometheus), with these labels on each line.
    ///
    /// ```
    /// use thalweg_runtime::{Config, Runtime};
    ///
    /// let runtime = Runtime::start(Config::with_workers(1))?;
    /// let text = runtime.handle().metrics().to_prometheus_with(&[("service", "search")])?;
    /// assert!(text.contains("thalweg_timers_fired_total{service=\"search\"} 0\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A label has an invalid name, or a name that is used already.
    pub fn to_prometheus_with(&self, labels: &[(&str, &str)]) -> Result<String, LabelError> {
        for (place, (name, _)) in labels.iter().enumerate() {
            if !is_name(name) {
                return Err(LabelError::Name((*name).to_owned()));
            }
            let others = labels[..place].iter().map(|(other, _)| other);
            if OURS.iter().chain(others).any(|other| other == name) {
                return Err(LabelError::Taken((*name).to_owned()));
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
    /// Added to each line.
    labels: &'a [(&'a str, &'a str)],
}

impl Page<'_> {
    fn write(&mut self, metrics: &Metrics) {
        let total = metrics.total();
        self.actors(&total);
        for (name, help, of) in BY_WORKER {
            self.begin(name, help, "counter");
            for (index, worker) in metrics.workers.iter().enumerate() {
                self.line(
                    name,
                    &[("worker", &index.to_string())],
                    of(&worker.counters),
                );
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
            "Fired timers of the timer thread: deadlines of calls, and delayed messages.",
            "counter",
        );
        self.line(name, &[], metrics.timers_fired);
        if let Some(slices) = &metrics.slices {
            self.histogram(
                "thalweg_slice_seconds",
                "How long actors had their worker without interruption.",
                slices,
            );
        }
    }

    fn actors(&mut self, total: &Counters) {
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
            "Actors that were spawned, and incarnations of behaviour actors that were started.",
            "counter",
        );
        for (kind, started, _) in kinds {
            self.line(name, &[("kind", kind)], started);
        }
        let name = "thalweg_actors_ended_total";
        self.begin(
            name,
            "Actors and incarnations that ended, by reason.",
            "counter",
        );
        for (kind, _, ended) in kinds {
            for (reason, count) in ended {
                self.line(name, &[("kind", kind), ("reason", reason)], *count);
            }
        }
        let name = "thalweg_actors";
        self.begin(name, "Live actors and incarnations.", "gauge");
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
        debug_assert!(written.is_ok(), "writing to a string cannot fail");
    }
}

/// A label value: backslashes, quotation marks and line feeds are escaped.
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
    fn label_value_escapes_three_characters() {
        assert_eq!(Escaped("a\\b\"c\nd\te").to_string(), "a\\\\b\\\"c\\nd\te");
    }

    #[test]
    fn label_names_are_validated() {
        for good in ["a", "_a", "A9_", "service"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "9a", "a-b", "a b", "é", "__a", "a\n"] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }
}
