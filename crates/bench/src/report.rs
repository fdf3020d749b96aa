//! The result file: one JSON document per run, one schema, number 1.
//!
//! `result.schema.json` in the crate's folder is its JSON Schema, generated from these types; a test
//! compares the two and validates every committed result.
//!
//! Every field is always present; a field that does not apply is `null` or empty. Times are in the unit that
//! `unit` names. Ratios are subject / peer by time, so lower is better. Field names do not change
//! within a schema number. New fields may be added; an older file reads back with `null` or
//! `unknown` in them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::judgement::{Figures, NOT_JUDGED, Target, judge};
use crate::round_trip::RoundTrips;
use crate::statistics::{self, Interval, Ratio, Samples, interval, median, ratio_of_pairs};

/// The number of this schema.
pub const SCHEMA: u32 = 1;

/// A run: the figures, the machine, the tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The number of this schema.
    #[cfg_attr(test, schemars(range(min = SCHEMA, max = SCHEMA)))]
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
    /// How far apart two processors were, by the workload that was measured. Missing in older files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub round_trips: BTreeMap<String, RoundTrips>,
    /// The rows.
    pub results: Vec<Row>,
}

/// The machine that a run was taken on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// The process of each sample: `[0, 0, 1, 1, 2, 2]`. Missing in older files.
    #[serde(default)]
    pub process: Vec<u32>,
    /// The subject's samples, in the order of the rounds. Missing in older files.
    #[serde(default)]
    pub subject_samples: Vec<f64>,
    /// The peer's samples; those at one index are a pair. Empty without a peer.
    #[serde(default)]
    pub peer_samples: Vec<f64>,
    /// The checks made while measuring. A row whose check failed is never written.
    pub checks: Vec<String>,
    /// Further figures.
    pub metrics: BTreeMap<String, f64>,
    /// The 95 % intervals of those metrics that are estimates. A metric without one is a count, or
    /// the file is older.
    #[serde(default)]
    pub metric_intervals: BTreeMap<String, Interval>,
    /// The target of the row.
    pub target: Option<String>,
    /// `met`, `missed`, `undecided`, `not judged: why`. Files from before the whole interval
    /// counted contain `passed` and `failed`.
    #[cfg_attr(test, schemars(regex(pattern = VERDICTS)))]
    pub verdict: Option<String>,
    /// Whether this peer is the best of all that were measured in the same cell. `null` without a
    /// ratio, and in older files.
    #[serde(default)]
    pub best_peer: Option<bool>,
}

/// The verdicts of a result file.
#[cfg(test)]
const VERDICTS: &str = "^(met|missed|undecided|passed|failed|not judged: .+)$";

/// Metrics, and the intervals of those that are estimates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    values: BTreeMap<String, f64>,
    intervals: BTreeMap<String, Interval>,
}

impl Metrics {
    /// Adds a figure that is exact.
    pub fn count(&mut self, name: &str, value: f64) {
        self.values.insert(name.to_owned(), value);
        self.intervals.remove(name);
    }

    /// Adds an estimate.
    pub fn estimate(&mut self, name: &str, value: f64, interval: Interval) {
        self.count(name, value);
        self.intervals.insert(name.to_owned(), interval);
    }

    /// Adds the median of `samples`, if there are any.
    pub fn median(&mut self, name: &str, samples: &Samples) {
        if let (Some(value), Some(interval)) = (median(samples), interval(samples)) {
            self.estimate(name, value, interval);
        }
    }

    /// Adds `of` divided by the median of `times`, if that is positive: operations per second for
    /// `1e9` and nanoseconds per operation.
    pub fn rate(&mut self, name: &str, of: f64, times: &Samples) {
        if let (Some(value), Some(interval)) = (median(times), interval(times))
            && interval.low > 0.0
        {
            self.estimate(name, of / value, interval.map(|time| of / time));
        }
    }

    /// The metric and its interval.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<(f64, Interval)> {
        let value = *self.values.get(name)?;
        let interval = self.intervals.get(name).copied();
        Some((value, interval.unwrap_or(Interval::point(value))))
    }
}

impl Row {
    /// A row of `subject` samples with medians. With `peer` (name and samples) the row also has a
    /// ratio and a winner. A plain list of samples is from one process.
    ///
    /// # Panics
    /// The subject has no sample, or the two sides were not taken in pairs.
    #[must_use]
    pub fn new<S: Into<Samples>>(
        (workload, group): (&str, &str),
        params: &[(&str, &str)],
        unit: &str,
        subject: (&str, S),
        peer: Option<(&str, S)>,
    ) -> Self {
        let (subject_name, subject) = (subject.0, subject.1.into());
        let (peer_name, peer) = peer.map(|(name, peer)| (name, peer.into())).unzip();
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
            peer_interval: peer.as_ref().and_then(interval),
            ratio,
            winner: ratio.map(winner),
            samples: subject.len() as u64,
            checks: Vec::new(),
            metrics: BTreeMap::new(),
            metric_intervals: BTreeMap::new(),
            target: None,
            verdict: None,
            best_peer: None,
            process: subject.process().to_vec(),
            subject_samples: subject.into_values(),
            peer_samples: peer.unwrap_or_default().into_values(),
        }
    }

    /// A row that was not measured, and why.
    #[must_use]
    pub fn not_measured(of: (&str, &str), params: &[(&str, &str)], unit: &str, why: &str) -> Self {
        let row = Self::new(of, params, unit, ("thalweg", vec![0.0]), None);
        Self {
            samples: 0,
            process: Vec::new(),
            subject_samples: Vec::new(),
            subject_interval: None,
            verdict: Some(format!("{NOT_JUDGED}{why}")),
            ..row
        }
    }

    /// The number of processes that took the samples; `None` in a file from before this was known.
    #[must_use]
    pub fn processes(&self) -> Option<usize> {
        (!self.process.is_empty()).then(|| statistics::distinct(&self.process))
    }

    /// Adds `metrics`, each with `prefix` before its name.
    pub fn add_metrics(&mut self, prefix: &str, metrics: Metrics) {
        let named = |name: String| format!("{prefix}{name}");
        let values = metrics.values.into_iter();
        self.metrics
            .extend(values.map(|(name, value)| (named(name), value)));
        let intervals = metrics.intervals.into_iter();
        self.metric_intervals
            .extend(intervals.map(|(name, interval)| (named(name), interval)));
    }

    /// Like [`Row::add_metrics`], for a chain of calls.
    #[must_use]
    pub fn with_metrics(mut self, prefix: &str, metrics: Metrics) -> Self {
        self.add_metrics(prefix, metrics);
        self
    }

    /// Adds a check to the row.
    #[must_use]
    pub fn checked(mut self, what: impl Into<String>) -> Self {
        self.checks.push(what.into());
        self
    }

    /// The figures that a target is compared with.
    #[must_use]
    pub fn figures(&self) -> Figures<'_> {
        let of_median = |end| end / self.subject_median;
        let spread = self
            .subject_interval
            .filter(|_| self.subject_median != 0.0)
            .map(|interval| interval.map(of_median));
        Figures {
            ratio: self.ratio,
            metrics: &self.metrics,
            intervals: &self.metric_intervals,
            samples: &self.subject_samples,
            spread: spread.unwrap_or(Interval::point(1.0)),
            processes: self.processes(),
        }
    }

    /// Sets the row's target. Call it last, because the verdict reads ratio and metrics. `refusal`
    /// is the reason why this run gives no verdicts, if there is one.
    #[must_use]
    pub fn held_to(mut self, target: &Target, refusal: Option<&str>) -> Self {
        self.verdict = Some(target.verdict(self.figures(), refusal));
        self.target = Some(target.text());
        self
    }

    /// Checks what a JSON Schema cannot express: the lists of samples have equal lengths.
    ///
    /// # Errors
    /// They do not; the text names the row.
    pub fn check(&self) -> Result<(), String> {
        let samples = usize::try_from(self.samples).unwrap_or(usize::MAX);
        let (subject, peer) = (self.subject_samples.len(), self.peer_samples.len());
        let peers = if self.peer_median.is_some() {
            samples
        } else {
            0
        };
        let lengths = (self.process.len(), subject, peer);
        if lengths == (samples, samples, peers) || lengths == (0, 0, 0) {
            return Ok(());
        }
        Err(format!(
            "{}: {samples} samples, but lists of {subject} and {peer} with {} processes",
            self.workload,
            self.process.len()
        ))
    }

    /// Judges the row again by the text of its target, unless the run refused to judge it. Files
    /// from before the whole interval counted contain `passed` and `failed`.
    pub fn judge_again(&mut self) {
        let (Some(target), Some(verdict)) = (&self.target, &self.verdict) else {
            return;
        };
        if !verdict.starts_with(NOT_JUDGED) {
            let judged = judge(target, self.figures());
            let why = || format!("{NOT_JUDGED}`{verdict}` by an older rule");
            self.verdict = Some(judged.map_or_else(why, |judged| judged.verdict()));
        }
    }
}

/// Marks in each cell the row against the best peer: that with the largest ratio, so the one that
/// looks worst for the subject. A cell is the rows of one workload with the same params and
/// subject. Every peer with a ratio counts; the subject itself with another setting
/// (`thalweg@4`) is no peer.
pub fn mark_best(rows: &mut [Row]) {
    for place in 0..rows.len() {
        let row = &rows[place];
        let is_peer = |row: &Row| {
            row.peer
                .as_ref()
                .is_some_and(|peer| peer.split('@').next() != row.subject.split('@').next())
        };
        let ratio = |row: &Row| row.ratio.filter(|_| is_peer(row)).map(|ratio| ratio.median);
        let best = rows
            .iter()
            .filter(|other| {
                (&other.workload, &other.params, &other.subject)
                    == (&row.workload, &row.params, &row.subject)
            })
            .filter_map(ratio)
            .fold(0.0, f64::max);
        rows[place].best_peer = ratio(row).map(|ratio| ratio >= best);
    }
}

/// Sets `target` on the row against the best of all peers that were measured in each cell of
/// `rows`: see [`mark_best`].
pub fn hold_best(rows: &mut [Row], target: &Target, refusal: Option<&str>) {
    mark_best(rows);
    for row in rows.iter_mut().filter(|row| row.best_peer == Some(true)) {
        *row = row.clone().held_to(target, refusal);
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
    use crate::statistics::tests::in_three;

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
            round_trips: BTreeMap::new(),
            results: vec![
                Row::new(
                    ("search_overhead", "boundary"),
                    &[("workers", "2")],
                    "s",
                    ("thalweg", in_three(&[1.0; 3])),
                    Some(("direct", in_three(&[2.0; 3]))),
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
                "winner": "subject", "samples": 3, "process": [0, 1, 2],
                "subject_samples": [1.0, 1.0, 1.0], "peer_samples": [2.0, 2.0, 2.0],
                "checks": ["counts equal"], "metrics": {}, "metric_intervals": {},
                "target": "ratio <= 1.05", "verdict": "met", "best_peer": null,
            })
        );
        let alone = value["results"][1].as_object().unwrap();
        for absent in [
            "peer",
            "peer_median",
            "ratio",
            "winner",
            "verdict",
            "best_peer",
        ] {
            assert_eq!(alone.get(absent), Some(&Value::Null), "{absent}");
        }
    }

    /// The schema, generated from the types.
    fn generated() -> Value {
        let mut schema = schemars::schema_for!(Report).to_value();
        schema["title"] = json!("A result file of thalweg-bench");
        schema
    }

    #[test]
    fn committed_schema_is_that_of_the_types() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("result.schema.json");
        let text = serde_json::to_string_pretty(&generated()).unwrap() + "\n";
        if std::env::var_os("THALWEG_WRITE_SCHEMA").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        let committed = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            committed == text,
            "run this test with THALWEG_WRITE_SCHEMA=1"
        );
        assert_eq!(
            generated()["$schema"],
            "https://json-schema.org/draft/2020-12/schema"
        );
    }

    #[test]
    fn schema_accepts_a_report_and_refuses_any_damage() {
        let validator = jsonschema::validator_for(&generated()).unwrap();
        let whole = serde_json::to_value(sample()).unwrap();
        assert!(validator.is_valid(&whole));
        for (pointer, wrong) in [
            ("/schema", json!(2)),
            ("/host/processors", json!(-1)),
            ("/results/0/unit", Value::Null),
            ("/results/0/ratio/low", json!("fast")),
            ("/results/0/winner", json!("ours")),
            ("/results/0/process/0", json!(0.5)),
            ("/results/0/metrics", json!({"p50_ns": "3"})),
            ("/results/0/verdict", json!("good")),
            ("/results/0/verdict", json!("not judged")),
            (
                "/results/0/ratio",
                json!({"median": 1.0, "low": 1.0, "high": 1.0, "more": 1.0}),
            ),
        ] {
            let mut damaged = whole.clone();
            *damaged.pointer_mut(pointer).unwrap() = wrong.clone();
            assert!(!validator.is_valid(&damaged), "{pointer}: {wrong}");
        }
    }

    #[test]
    fn lists_of_samples_have_equal_lengths() {
        let whole = sample().results.remove(0);
        whole.check().unwrap();
        let change: [fn(&mut Row); 4] = [
            |row| row.process.truncate(1),
            |row| row.subject_samples.truncate(1),
            |row| row.peer_samples.clear(),
            |row| row.samples += 1,
        ];
        for change in change {
            let mut row = whole.clone();
            change(&mut row);
            assert!(row.check().unwrap_err().starts_with("search_overhead: "));
        }
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
        for newer in [
            "subject_interval",
            "peer_interval",
            "process",
            "subject_samples",
            "peer_samples",
            "metric_intervals",
            "best_peer",
        ] {
            row.remove(newer).unwrap();
        }
        let report: Report = serde_json::from_value(value).unwrap();
        assert_eq!(report.host.clock, "unknown");
        assert_eq!(report.results[0].subject_interval, None);
        assert_eq!(report.results[0].processes(), None);
    }

    #[test]
    fn what_was_written_reads_back() {
        let report = sample();
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
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

    /// A row of `cell` against `peer`, with this ratio in three processes.
    fn against(cell: &str, peer: &str, ratio: f64) -> Row {
        let sides = (in_three(&[ratio; 6]), in_three(&[1.0; 6]));
        let params = [("capacity", cell)];
        Row::new(
            ("mpsc", "queue"),
            &params,
            "ns",
            ("thalweg", sides.0),
            Some((peer, sides.1)),
        )
    }

    #[test]
    fn target_is_set_against_the_best_of_all_peers_of_a_cell() {
        let mut rows = [
            against("64", "std", 0.3),
            against("64", "vyukov", 1.2),
            against("64", "thalweg@4", 9.0),
            against("16", "std", 0.5),
            against("64", "go_chan", 5.0),
        ];
        // A peer that is missing on this machine.
        rows[4].ratio = None;
        hold_best(&mut rows, &Target::Ratio(1.0), None);
        let found = rows
            .each_ref()
            .map(|row| (row.best_peer, row.verdict.as_deref()));
        assert_eq!(
            found,
            [
                (Some(false), None),
                (Some(true), Some("missed")),
                (None, None),
                (Some(true), Some("met")),
                (None, None),
            ]
        );
    }

    #[test]
    fn verdict_of_an_old_file_is_computed_again() {
        for (target, old, new) in [
            ("ratio <= 1.05", "passed", "met"),
            ("ratio <= 0.6", "failed", "met"),
            ("ratio <= 0.5", "passed", "undecided"),
            ("ratio <= 0.4", "passed", "missed"),
            (
                "ratio <= 0.4",
                "not judged: quick run",
                "not judged: quick run",
            ),
            (
                "as fast as it can",
                "passed",
                "not judged: `passed` by an older rule",
            ),
            ("p50_ns <= 1", "passed", "not judged: not measured"),
        ] {
            let mut row = against("64", "std", 0.5);
            row.process.clear();
            row.ratio = Some(Ratio {
                median: 0.5,
                low: 0.45,
                high: 0.55,
            });
            row.target = Some(target.to_owned());
            row.verdict = Some(old.to_owned());
            row.judge_again();
            assert_eq!(row.verdict.as_deref(), Some(new), "{target}, {old}");
        }
    }
}
