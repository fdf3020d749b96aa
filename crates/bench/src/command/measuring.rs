//! The common part of `run`, `regress` and `report`: selects workloads and measures them.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use clap::Args;

use crate::catalogue::{self, Wanted};
use crate::command::tell;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::{Host, Report, Row, SCHEMA, mark_best};
use crate::round_trip::RoundTrips;
use crate::workloads::Workload;
use crate::{doctor, machine, tools};

/// The selected workloads, and the settings of the measurement.
#[derive(Args, Debug)]
pub struct Measuring {
    /// The workloads to run; default: all except those that run only on request
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// All workloads of a group
    #[arg(long = "group", value_name = "GROUP")]
    pub groups: Vec<String>,
    /// Take short samples: checks that everything works, gives no verdicts
    #[arg(long)]
    pub quick: bool,
    /// Samples of each side, at least 5; overrides the workloads' own numbers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(5..))]
    pub samples: Option<u16>,
    /// The duration of workloads that run for a fixed time: 10s, 1h
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub duration: Option<Duration>,
    /// Also measure payloads of 1 MiB
    #[arg(long)]
    pub include_1mib: bool,
    /// Set a knob that a workload declares; `list` shows the knobs
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Measure even with a debug build; the result records it and has no verdicts
    #[arg(long)]
    pub allow_debug: bool,
}

fn some_time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("longer than nothing".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

impl Measuring {
    /// The workloads that the arguments name.
    ///
    /// # Errors
    /// A name or a group does not exist.
    pub fn chosen(&self) -> Result<Vec<&'static Workload>, Problem> {
        catalogue::choose(Wanted {
            names: &self.names,
            groups: &self.groups,
        })
    }

    /// The lab for these workloads.
    ///
    /// # Errors
    /// No chosen workload has a given knob, or this is a debug build without `--allow-debug`.
    pub fn lab(&self, chosen: &[&Workload]) -> Result<Lab, Problem> {
        let set = catalogue::settings(&self.set, chosen)?;
        refuse_debug(self.allow_debug)?;
        Ok(Lab::new(self.quick, self.samples.map(usize::from))
            .lasting(self.duration)
            .with_1mib(self.include_1mib)
            .setting(set))
    }
}

/// Refuses to measure with a debug build unless it is allowed.
pub fn refuse_debug(allowed: bool) -> Result<(), Problem> {
    if tools::profile() == "debug" && !allowed {
        return Err(Problem::NotReady(
            "this is a debug build: build with --release, or pass --allow-debug and do not trust the figures"
                .to_owned(),
        ));
    }
    Ok(())
}

/// A run and its errors. If a workload fails, the next one still runs.
#[derive(Debug)]
pub struct Measured {
    /// The measurements.
    pub report: Report,
    /// The errors of the workloads that failed.
    pub problems: Vec<Problem>,
}

/// Runs `chosen`. After each workload `keep` receives the report so far, so an interrupted run
/// loses at most one workload.
///
/// # Errors
/// The error that `keep` returns.
pub fn measure(
    chosen: &[&Workload],
    mut lab: Lab,
    mut keep: impl FnMut(&Report) -> Result<(), Problem>,
) -> Result<Measured, Problem> {
    let host = machine::describe();
    if doctor::busy(&host.load) {
        tell(format_args!(
            "this machine is not idle (load {}): do not quote this run",
            host.load
        ));
    }
    let mut report = begun(&lab, host);
    let mut problems = Vec::new();
    for workload in chosen {
        lab.note_knobs(workload);
        lab.note_round_trip();
        let rows = (workload.run)(&mut lab);
        lab.note_round_trip();
        lab.end();
        if let Some(round_trips) = lab.take_round_trips() {
            if round_trips.differ() {
                let RoundTrips { least, greatest } = round_trips;
                tell(format_args!(
                    "the processors moved during {}: a cache line went back and forth in {least:.0} to {greatest:.0} ns",
                    workload.name
                ));
            }
            let name = workload.name.to_owned();
            report.round_trips.insert(name, round_trips);
        }
        match rows.and_then(not_empty) {
            Ok(mut rows) => {
                mark_best(&mut rows);
                report.results.extend(rows);
            }
            Err(problem) => {
                let problem = named(workload, problem);
                tell(&problem);
                problems.push(problem);
            }
        }
        report.peers.clone_from(&lab.peers);
        report.knobs.clone_from(&lab.knobs);
        keep(&report)?;
    }
    Ok(Measured { report, problems })
}

/// The report of a run on `host` that starts now.
#[must_use]
pub fn begun(lab: &Lab, host: Host) -> Report {
    Report {
        schema: SCHEMA,
        suite: format!("thalweg-bench {}", env!("CARGO_PKG_VERSION")),
        started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        host,
        tools: tools::versions(),
        commit: lab.commit(),
        round_trips: BTreeMap::new(),
        peers: lab.peers.clone(),
        knobs: lab.knobs.clone(),
        results: Vec::new(),
    }
}

fn not_empty(rows: Vec<Row>) -> Result<Vec<Row>, Problem> {
    if rows.is_empty() {
        let why = "nothing was measured: a list of --set is empty";
        return Err(Problem::Usage(why.to_owned()));
    }
    Ok(rows)
}

fn named(workload: &Workload, problem: Problem) -> Problem {
    let name = workload.name;
    match problem {
        Problem::Check(text) => Problem::Check(format!("{name}: {text}")),
        Problem::Host(text) => Problem::Host(format!("{name}: {text}")),
        Problem::NotReady(text) => Problem::NotReady(format!("{name}: {text}")),
        Problem::Usage(text) => Problem::Usage(format!("{name}: {text}")),
        other @ Problem::NotAResult(..) => other,
        Problem::Io(what, error) => Problem::Io(format!("{name}: {what}"), error),
    }
}

/// The largest exit status of `problems`; 0 if there is none.
#[must_use]
pub fn worst(problems: &[Problem]) -> u8 {
    let statuses = problems.iter().map(Problem::exit_status);
    statuses.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_row(_: &mut Lab) -> Result<Vec<Row>, Problem> {
        Ok(vec![Row::new(
            ("good", "queue"),
            &[],
            "ns",
            ("thalweg", vec![1.0]),
            None,
        )])
    }

    const GOOD: Workload = Workload {
        name: "good",
        run: one_row,
        ..Workload::USUAL
    };
    const BAD: Workload = Workload {
        name: "bad",
        run: |_| Err(Problem::Check("counts differ".to_owned())),
        ..Workload::USUAL
    };
    const EMPTY: Workload = Workload {
        name: "empty",
        run: |_| Ok(Vec::new()),
        ..Workload::USUAL
    };

    #[test]
    fn a_workload_that_fails_costs_only_its_own_rows() {
        let mut kept = Vec::new();
        let measured = measure(&[&BAD, &EMPTY, &GOOD], Lab::new(true, None), |report| {
            kept.push(report.results.len());
            Ok(())
        })
        .unwrap();
        assert_eq!(measured.report.results.len(), 1);
        assert_eq!(kept, [0, 0, 1]);
        let told: Vec<String> = measured.problems.iter().map(ToString::to_string).collect();
        let nothing = "empty: nothing was measured: a list of --set is empty";
        assert_eq!(told, ["check failed: bad: counts differ", nothing]);
        assert_eq!(worst(&measured.problems[..1]), 1);
        assert_eq!(worst(&measured.problems), 2);
        assert_eq!(worst(&[]), 0);
    }
}
