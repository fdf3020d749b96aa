//! The result file: one JSON document per run, one schema, number 1.
//!
//! Every field is always present; a field that does not apply is `null`. Times are in the unit that
//! `unit` names. Ratios are subject / peer by time, so lower is better. Field names do not change
//! within a schema number. New fields may be added; an older file reads back with `null` or
//! `unknown` in them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::judgement::{Figures, Target};
use crate::statistics::{Interval, Ratio, interval, median, ratio_of_pairs};

/// The number of this schema.
pub const SCHEMA: u32 = 1;

/// A run: the figures, the machine, the tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `thalweg-bench` and its version.
    pub suite: String,
    /// When the run began, RFC 3339 in UTC.
    pub started: String,
    /// The machine.
    pub host: Host,
    /// Compilers and interpreters: name and version.
    pub tools: BTreeMap<String, String>,
    /// The peers: name and version.
    pub peers: BTreeMap<String, String>,
    /// The knobs and their values.
    pub knobs: BTreeMap<String, String>,
    /// The commit, with `-dirty` if the work tree had changes.
    pub commit: String,
    /// The rows.
    pub results: Vec<Row>,
}

/// The machine that a run was taken on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Kernel and architecture; the machine's own name is left out.
    pub uname: String,
    /// The processor's name.
    pub cpu: String,
    /// Processors that the machine has online.
    pub processors: u32,
    /// Processors that the run was allowed to use: `0-1,4`.
    pub affinity: String,
    /// The frequency governor of the first processor, or `none`.
    pub governor: String,
    /// Main memory in MiB, as text with its unit.
    pub memory: String,
    /// The virtualisation: `kvm`, `docker`, .. or `none`.
    pub r#virtual: String,
    /// Whether the clock may rise above its nominal rate: `on`, `off`.
    #[serde(default = "unknown")]
    pub turbo: String,
    /// Load average over the minute before the run.
    #[serde(default = "unknown")]
    pub load: String,
    /// Share of the processors' time that the hypervisor has given to others since boot.
    #[serde(default = "unknown")]
    pub stolen: String,
    /// The number of processors that the control group may use, or `none`.
    #[serde(default = "unknown")]
    pub quota: String,
    /// Limit of open files: soft and hard.
    #[serde(default = "unknown")]
    pub open_files: String,
    /// Limit of locked memory: soft and hard.
    #[serde(default = "unknown")]
    pub locked_memory: String,
    /// The clock source of the kernel, and the cost of a reading.
    #[serde(default = "unknown")]
    pub clock: String,
}

/// The value of an unknown property.
#[must_use]
pub fn unknown() -> String {
    "unknown".to_owned()
}

/// Which side was faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Winner {
    /// The whole interval is below 1.
    Subject,
    /// The whole interval is above 1.
    Peer,
    /// The interval contains 1: the run cannot tell the sides apart.
    Even,
}

impl Winner {
    /// The spelling in a result file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Subject => "subject",
            Self::Peer => "peer",
            Self::Even => "even",
        }
    }
}

/// One figure: a workload at one point of its parameters, one subject, at most one peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The workload's public name.
    pub workload: String,
    /// The workload's group.
    pub group: String,
    /// All of its parameters.
    pub params: BTreeMap<String, String>,
    /// The subject.
    pub subject: String,
    /// The peer.
    pub peer: Option<String>,
    /// Unit of the two medians: `s`, `ns` ..
    pub unit: String,
    /// Median of the subject's samples.
    pub subject_median: f64,
    /// Median of the peer's samples.
    pub peer_median: Option<f64>,
    /// The 95 % interval of the subject's median.
    #[serde(default)]
    pub subject_interval: Option<Interval>,
    /// The 95 % interval of the peer's median.
    #[serde(default)]
    pub peer_interval: Option<Interval>,
    /// The ratio, formed pair by pair.
    pub ratio: Option<Ratio>,
    /// The faster side, by the ratio's interval.
    pub winner: Option<Winner>,
    /// Samples of each side.
    pub samples: u64,
    /// The checks made while measuring. A row whose check failed is never written.
    pub checks: Vec<String>,
    /// Further figures.
    pub metrics: BTreeMap<String, f64>,
    /// The target of the row.
    pub target: Option<String>,
    /// `passed`, `failed`, `not judged: why`.
    pub verdict: Option<String>,
    /// The samples themselves, for the CSV: the subject's, and the peer's.
    #[serde(skip)]
    pub raw: Raw,
}

/// The samples behind a row, in the order of the rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Raw {
    /// The subject's.
    pub subject: Vec<f64>,
    /// The peer's samples; empty if there is none.
    pub peer: Vec<f64>,
}

impl Row {
    /// A row of `subject` samples with medians. With `peer` (name and samples) the row also has a
    /// ratio and a winner.
    ///
    /// # Panics
    /// The subject has no sample, or the peer has a different number of samples.
    #[must_use]
    pub fn new(
        (workload, group): (&str, &str),
        params: &[(&str, &str)],
        unit: &str,
        subject: (&str, Vec<f64>),
        peer: Option<(&str, Vec<f64>)>,
    ) -> Self {
        let (subject_name, subject) = subject;
        let (peer_name, peer) = peer.unzip();
        let ratio = peer
            .as_ref()
            .and_then(|peer| ratio_of_pairs(&subject, peer));
        Self {
            workload: workload.to_owned(),
            group: group.to_owned(),
            params: params
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            subject: subject_name.to_owned(),
            peer: peer_name.map(str::to_owned),
            unit: unit.to_owned(),
            subject_median: median(&subject).expect("a row has at least one sample"),
            peer_median: peer.as_deref().and_then(median),
            subject_interval: interval(&subject),
            peer_interval: peer.as_deref().and_then(interval),
            ratio,
            winner: ratio.map(winner),
            samples: subject.len() as u64,
            checks: Vec::new(),
            metrics: BTreeMap::new(),
            target: None,
            verdict: None,
            raw: Raw {
                subject,
                peer: peer.unwrap_or_default(),
            },
        }
    }

    /// Adds a check to the row.
    #[must_use]
    pub fn checked(mut self, what: impl Into<String>) -> Self {
        self.checks.push(what.into());
        self
    }

    /// Sets the row's target. Call it last, because the verdict reads ratio and metrics. `refusal`
    /// is the reason why this run gives no verdicts, if there is one.
    #[must_use]
    pub fn held_to(mut self, target: &Target, refusal: Option<&str>) -> Self {
        let figures = Figures {
            ratio: self.ratio.as_ref(),
            metrics: &self.metrics,
            samples: &self.raw.subject,
        };
        self.verdict = Some(target.verdict(figures, refusal));
        self.target = Some(target.text());
        self
    }
}

fn winner(ratio: Ratio) -> Winner {
    if ratio.high < 1.0 {
        Winner::Subject
    } else if ratio.low > 1.0 {
        Winner::Peer
    } else {
        Winner::Even
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;

    pub(crate) fn sample() -> Report {
        Report {
            schema: SCHEMA,
            suite: "thalweg-bench 0.1.0".to_owned(),
            started: "2026-01-02T03:04:05Z".to_owned(),
            host: Host {
                uname: "Linux 6.1.0 x86_64".to_owned(),
                cpu: "A processor".to_owned(),
                processors: 2,
                affinity: "0-1".to_owned(),
                governor: "none".to_owned(),
                memory: "2048 MiB".to_owned(),
                r#virtual: "kvm".to_owned(),
                turbo: "on".to_owned(),
                load: "0.10".to_owned(),
                stolen: "0.0 %".to_owned(),
                quota: "none".to_owned(),
                open_files: "1024 of 4096".to_owned(),
                locked_memory: "8192 KiB of 8192 KiB".to_owned(),
                clock: "tsc, 25 ns a reading".to_owned(),
            },
            tools: BTreeMap::from([("rustc".to_owned(), "1.95.0".to_owned())]),
            peers: BTreeMap::new(),
            knobs: BTreeMap::new(),
            commit: "0123abcd".to_owned(),
            results: vec![
                Row::new(
                    ("search_overhead", "boundary"),
                    &[("workers", "2")],
                    "s",
                    ("thalweg", vec![1.0, 1.0, 1.0]),
                    Some(("direct", vec![2.0, 2.0, 2.0])),
                )
                .checked("counts equal")
                .held_to(&Target::Ratio(1.05), None),
                Row::new(
                    ("idle", "boundary"),
                    &[],
                    "switches",
                    ("thalweg", vec![0.0]),
                    None,
                ),
            ],
        }
    }

    #[test]
    fn the_document_has_the_agreed_fields_and_no_other() {
        let value = serde_json::to_value(sample()).unwrap();
        assert_eq!(
            value["results"][0],
            json!({
                "workload": "search_overhead", "group": "boundary", "params": {"workers": "2"},
                "subject": "thalweg", "peer": "direct", "unit": "s",
                "subject_median": 1.0, "peer_median": 2.0,
                "subject_interval": {"low": 1.0, "high": 1.0},
                "peer_interval": {"low": 2.0, "high": 2.0},
                "ratio": {"median": 0.5, "low": 0.5, "high": 0.5},
                "winner": "subject", "samples": 3, "checks": ["counts equal"], "metrics": {},
                "target": "ratio <= 1.05", "verdict": "passed",
            })
        );
        let row = &value["results"][1];
        for absent in [
            "peer",
            "peer_median",
            "ratio",
            "winner",
            "target",
            "verdict",
        ] {
            assert_eq!(
                row.get(absent),
                Some(&Value::Null),
                "{absent} is there, and null"
            );
        }
        let names = |value: &Value| {
            value
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect::<Vec<_>>()
        };
        let mut top = names(&value);
        top.sort();
        assert_eq!(
            top,
            [
                "commit", "host", "knobs", "peers", "results", "schema", "started", "suite",
                "tools"
            ]
        );
        let mut host = names(&value["host"]);
        host.sort();
        assert_eq!(
            host,
            [
                "affinity",
                "clock",
                "cpu",
                "governor",
                "load",
                "locked_memory",
                "memory",
                "open_files",
                "processors",
                "quota",
                "stolen",
                "turbo",
                "uname",
                "virtual"
            ]
        );
    }

    #[test]
    fn a_file_from_before_the_newer_fields_still_reads() {
        let mut value = serde_json::to_value(sample()).unwrap();
        let host = value["host"].as_object_mut().unwrap();
        for newer in [
            "turbo",
            "load",
            "stolen",
            "quota",
            "open_files",
            "locked_memory",
            "clock",
        ] {
            host.remove(newer).unwrap();
        }
        let row = value["results"][0].as_object_mut().unwrap();
        row.remove("subject_interval").unwrap();
        row.remove("peer_interval").unwrap();
        let report: Report = serde_json::from_value(value).unwrap();
        assert_eq!(report.host.clock, "unknown");
        assert_eq!(report.results[0].subject_interval, None);
    }

    #[test]
    fn what_was_written_reads_back() {
        let mut report = sample();
        let text = serde_json::to_string(&report).unwrap();
        for row in &mut report.results {
            row.raw = Raw::default();
        }
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }

    #[test]
    fn a_field_that_nobody_knows_is_refused() {
        let mut value = serde_json::to_value(sample()).unwrap();
        value["more"] = json!(1);
        assert!(serde_json::from_value::<Report>(value).is_err());
    }

    #[test]
    fn nobody_wins_where_the_interval_holds_one() {
        let at = |low, high| {
            winner(Ratio {
                median: 1.0,
                low,
                high,
            })
        };
        assert_eq!(at(0.9, 1.1), Winner::Even);
        assert_eq!(at(1.0, 1.1), Winner::Even);
        assert_eq!(at(0.8, 0.99), Winner::Subject);
        assert_eq!(at(1.01, 1.2), Winner::Peer);
    }
}
