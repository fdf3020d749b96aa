//! Samples of one cell from several fresh processes.
//!
//! The allocator, the loader and the kernel place things differently in every process, and the
//! placement stays the same for the life of the process. A single process is therefore only one
//! random draw, even with many samples, and each row is measured in several processes. "15 pairs
//! over 3 processes":
//!
//! ```no_run
//! # use thalweg_bench::{cell::Cell, lab::Lab, processes, report::Row};
//! # fn run(lab: &Lab) -> Result<Row, thalweg_bench::problem::Problem> {
//! let params = [("capacity", "1024"), ("batch", "1"), ("placement", "free")];
//! let cell = Cell::new("spsc_threads", &params, &["thalweg", "rtrb", "crossbeam"]);
//! // Fifteen samples of each subject, five in each of three processes,
//! // A B C C B A A B C .. in each.
//! let taken = processes::sample(lab, &cell, lab.plan(Some(15)), 3)?;
//! let mut row = Row::new(
//!     ("spsc_threads", "queue"),
//!     &params,
//!     "ns",
//!     ("thalweg", processes::times(&taken[0])),
//!     Some(("rtrb", processes::times(&taken[1]))),
//! );
//! row.metrics = processes::metrics(&taken[0]);
//! # Ok(row) }
//! ```
//!
//! 1. A process is this program again, as `thalweg-bench cell` ([`crate::cell`]), or its variant
//!    with a preempting allocator. It sets up all subjects of the cell and takes one sample per
//!    line. The workload registers the set-up function as `cells: Some(open)` in its `Workload`.
//! 2. Processes run one after another. In each process the sides take turns and the warm-up is
//!    repeated. The rounds of the plan are divided among the processes; the first processes take
//!    one more round if the division is uneven.
//! 3. The result is one list per subject, in the order of `cell.subjects`, each as long as the
//!    plan's rounds. The samples at one index of these lists are from one round of one process, so
//!    ratios may be formed pair by pair.
//! 4. A check that fails in a process is a [`Problem::Check`] here.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::cell::{Answer, Cell, Sample};
use crate::child::{HostProgram, beside};
use crate::interleave::{Plan, Side, interleave};
use crate::lab::Lab;
use crate::latency::Latencies;
use crate::problem::Problem;
use crate::statistics::median;
use crate::workloads::runtime::point::{ALLOCATOR, PREEMPTING};

/// Takes the samples of `cell` in `processes` fresh processes. See the module.
///
/// # Errors
/// A process cannot be started, or something failed in it.
pub fn sample(
    lab: &Lab,
    cell: &Cell,
    plan: Plan,
    processes: usize,
) -> Result<Vec<Vec<Sample>>, Problem> {
    let shares = shares(plan.rounds, processes);
    let title: Vec<String> = cell
        .params
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    lab.begin(
        &format!("{} {}", cell.workload, title.join(" ")),
        cell.subjects.len() * (plan.warm_up * shares.len() + plan.rounds),
    );
    let mut cell = cell.clone();
    cell.quick |= lab.quick();
    let mut taken = vec![Vec::with_capacity(plan.rounds); cell.subjects.len()];
    for rounds in shares {
        let process = CellProcess::start(&cell)?;
        let mut sides: Vec<Side<'_, Sample>> = (0..cell.subjects.len())
            .map(|place| {
                let process = &process;
                Side::new(move || process.take(place))
            })
            .collect();
        let share = Plan { rounds, ..plan };
        let samples = interleave(&mut sides, share, || lab.step())?;
        drop(sides);
        process.finish()?;
        for (all, new) in taken.iter_mut().zip(samples) {
            all.extend(new);
        }
    }
    Ok(taken)
}

/// The number of rounds of each process. No process takes zero rounds, so there may be fewer
/// processes.
#[must_use]
pub fn shares(rounds: usize, processes: usize) -> Vec<usize> {
    let processes = processes.clamp(1, rounds.max(1));
    (0..processes)
        .map(|number| rounds / processes + usize::from(number < rounds % processes))
        .collect()
}

/// One process that has set up a cell.
#[derive(Debug)]
pub struct CellProcess {
    workload: String,
    program: RefCell<HostProgram>,
}

impl CellProcess {
    /// Starts this program again and sets up `cell` in it.
    ///
    /// # Errors
    /// The process cannot be started, or the cell cannot be set up.
    pub fn start(cell: &Cell) -> Result<Self, Problem> {
        cell.check()?;
        let mut command = Command::new(program(cell)?);
        command.arg("cell");
        Self::start_command(command, cell)
    }

    fn start_command(mut command: Command, cell: &Cell) -> Result<Self, Problem> {
        // A panic would pay for its backtrace, and the default hook would print pages of it.
        command.env("RUST_BACKTRACE", "0").envs(&cell.environment);
        let name = format!("{}'s process", cell.workload);
        let mut program = HostProgram::start(&name, command, cell.placement)?;
        let line = serde_json::to_string(cell).expect("a cell has no odd keys");
        match program.ask(&line)? {
            Answer::Opened { opened } if opened == cell.subjects.len() => Ok(Self {
                workload: cell.workload.clone(),
                program: RefCell::new(program),
            }),
            other => Err(unexpected(&cell.workload, other)),
        }
    }

    /// Takes one sample of the subject at index `place`.
    ///
    /// # Errors
    /// Something failed in the process, or it died.
    pub fn take(&self, place: usize) -> Result<Sample, Problem> {
        match self.program.borrow_mut().ask(&place.to_string())? {
            Answer::Sample(sample) => Ok(sample),
            other => Err(unexpected(&self.workload, other)),
        }
    }

    /// Ends the process.
    ///
    /// # Errors
    /// The process did not exit successfully.
    pub fn finish(self) -> Result<(), Problem> {
        self.program.into_inner().finish()
    }
}

/// The program that serves `cell`: this program, or its variant with the preempting allocator.
fn program(cell: &Cell) -> Result<PathBuf, Problem> {
    if cell
        .params
        .get(ALLOCATOR.name)
        .is_some_and(|name| name == PREEMPTING)
    {
        return beside("thalweg-bench-preempting");
    }
    env::current_exe().map_err(Problem::io("cannot find this program's own file"))
}

fn unexpected(workload: &str, answer: Answer) -> Problem {
    match answer {
        Answer::Failed {
            check: true,
            failed,
        } => Problem::Check(failed),
        Answer::Failed { failed, .. } => Problem::Host(failed),
        other => Problem::Host(format!("{workload}'s process answered {other:?}")),
    }
}

/// The times of `samples`, in ns per operation.
#[must_use]
pub fn times(samples: &[Sample]) -> Vec<f64> {
    samples.iter().map(|sample| sample.ns).collect()
}

/// The metrics of a row from `samples`: `ops_per_s`, the median of each metric, and the percentiles
/// of all latencies together.
///
/// For a metric that some samples lack, the median is taken over the samples that have it.
#[must_use]
pub fn metrics(samples: &[Sample]) -> BTreeMap<String, f64> {
    let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut latencies = Latencies::new();
    for sample in samples {
        for (name, value) in &sample.metrics {
            found.entry(name.clone()).or_default().push(*value);
        }
        latencies.add(&sample.latencies);
    }
    let mut metrics: BTreeMap<String, f64> = found
        .into_iter()
        .filter_map(|(name, values)| Some((name, median(&values)?)))
        .collect();
    if let Some(ns) = median(&times(samples)).filter(|ns| *ns > 0.0) {
        metrics.insert("ops_per_s".to_owned(), 1e9 / ns);
    }
    if latencies.count() > 0 {
        latencies.write("", &mut metrics);
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that answers like a cell; `then` handles the side index `$line`.
    fn process(then: &str) -> Result<CellProcess, Problem> {
        let script = format!(
            r#"echo '{{"ready": true}}'; read cell; echo '{{"opened": 2}}'; while read line; do {then}; done"#
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        CellProcess::start_command(command, &Cell::new("w", &[], &["thalweg", "rtrb"]))
    }

    #[test]
    fn rounds_are_shared_out_and_none_is_lost() {
        assert_eq!(shares(15, 3), [5, 5, 5]);
        assert_eq!(shares(5, 3), [2, 2, 1]);
        assert_eq!(shares(2, 3), [1, 1]);
        assert_eq!(shares(5, 0), [5]);
    }

    #[test]
    fn a_process_gives_the_sample_of_the_side_that_is_asked_for() {
        let process = process(r#"echo "{\"ns\": 1$line.5}""#).unwrap();
        assert_eq!(process.take(1).unwrap().ns, 11.5);
        assert_eq!(process.take(0).unwrap().ns, 10.5);
        process.finish().unwrap();
    }

    #[test]
    fn a_check_that_fails_there_fails_here() {
        let process = process(r#"echo '{"check": true, "failed": "counts differ"}'"#).unwrap();
        let problem = process.take(0).unwrap_err();
        assert!(matches!(problem, Problem::Check(text) if text == "counts differ"));
    }

    #[test]
    fn the_environment_of_a_cell_reaches_its_process() {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            r#"echo '{"ready": true}'; read cell; echo '{"opened": 0}'; read line; echo "{\"ns\": $A_KNOB}""#,
        ]);
        let mut cell = Cell::new("w", &[], &[]);
        cell.environment
            .insert("A_KNOB".to_owned(), "42".to_owned());
        let process = CellProcess::start_command(command, &cell).unwrap();
        assert_eq!(process.take(0).unwrap().ns, 42.0);
    }

    #[test]
    fn metrics_are_medians_and_percentiles_come_from_all_latencies() {
        let sample = |ns, failed, latency| Sample {
            ns,
            metrics: BTreeMap::from([("failed_sends".to_owned(), failed)]),
            latencies: vec![(latency, 60_000)],
        };
        let samples = [sample(2.0, 1.0, 10), sample(4.0, 9.0, 20)];
        let metrics = metrics(&samples);
        assert_eq!(metrics["failed_sends"], 5.0);
        assert_eq!(metrics["ops_per_s"], 1e9 / 3.0);
        assert_eq!(metrics["latencies"], 120_000.0);
        assert_eq!((metrics["p50_ns"], metrics["p99_ns"]), (10.0, 20.0));
    }
}
