//! Samples from several fresh processes.
//!
//! The allocator, the loader and the kernel place things differently in every process, and the
//! placement stays the same for the life of the process. A single process is therefore only one
//! random draw, even with many samples, and each row is measured in at least [`PROCESSES`]. "15
//! pairs over 3 processes":
//!
//! ```no_run
//! # use thalweg_bench::{cell::Cell, lab::Lab, processes::{self, PROCESSES}, report::Row};
//! # fn run(lab: &Lab) -> Result<Row, thalweg_bench::problem::Problem> {
//! let params = [("capacity", "1024"), ("batch", "1"), ("placement", "free")];
//! let cell = Cell::new("spsc_threads", &params, &["thalweg", "rtrb", "crossbeam"]);
//! // Fifteen samples of each subject, five in each of three processes,
//! // A B C C B A A B C .. in each.
//! let taken = processes::sample(lab, &cell, lab.plan(Some(15)), PROCESSES)?;
//! let row = Row::new(
//!     ("spsc_threads", "queue"),
//!     &params,
//!     "ns",
//!     ("thalweg", processes::times(&taken[0])),
//!     Some(("rtrb", processes::times(&taken[1]))),
//! );
//! # Ok(row.with_metrics("", processes::metrics(&taken[0]))) }
//! ```
//!
//! 1. [`sample`] measures a cell of a workload: a process is this program again, as `thalweg-bench
//!    cell` ([`crate::cell`]), or its variant with a preempting allocator. It sets up all subjects
//!    of the cell and takes one sample per line. The workload registers the set-up function as
//!    `cells: Some(open)` in its `Workload`.
//! 2. [`ask`] does the same with a host program ([`crate::child`]): a side is a line that the
//!    program answers. [`measure`] accepts any other [`Process`].
//! 3. Processes run one after another. In each process the sides take turns and the warm-up is
//!    repeated. The rounds of the plan are divided among the processes; the first processes take
//!    one more round if the division is uneven.
//! 4. The result is one list per side, each as long as the plan's rounds, and each sample has the
//!    number of its process. The samples at one index of these lists are from one round of one
//!    process, so ratios may be formed pair by pair.
//! 5. A check that fails in a process is a [`Problem::Check`] here.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::process::Command;

use serde::de::DeserializeOwned;

use crate::cell::{Answer, Cell, Sample};
use crate::child::{HostProgram, beside};
use crate::interleave::{Plan, Side, interleave};
use crate::lab::Lab;
use crate::latency;
use crate::problem::Problem;
use crate::report::Metrics;
use crate::statistics::{FEWEST_PROCESSES, Samples};
use crate::workloads::runtime::point::{ALLOCATOR, PREEMPTING};

/// The number of processes of a row, unless the workload has a reason for more.
pub const PROCESSES: usize = FEWEST_PROCESSES;

/// A process that takes samples of several sides.
pub trait Process: Sized {
    /// What it returns for one sample.
    type Sample;

    /// Takes one sample of the side at index `side`.
    ///
    /// # Errors
    /// Something failed in the process, or it died.
    fn take(&mut self, side: usize) -> Result<Self::Sample, Problem>;

    /// Ends the process.
    ///
    /// # Errors
    /// The process did not exit successfully.
    fn finish(self) -> Result<(), Problem>;
}

/// Takes the samples of `sides` sides in `processes` fresh processes that `start` starts. See the
/// module. `title` is shown with the progress.
///
/// # Errors
/// A process cannot be started, or something failed in it.
pub fn measure<P: Process>(
    lab: &Lab,
    title: &str,
    sides: usize,
    plan: Plan,
    processes: usize,
    mut start: impl FnMut() -> Result<P, Problem>,
) -> Result<Vec<Samples<P::Sample>>, Problem> {
    let shares = shares(plan.rounds, processes);
    lab.begin(title, sides * (plan.warm_up * shares.len() + plan.rounds));
    let mut taken: Vec<Samples<P::Sample>> = (0..sides).map(|_| Samples::default()).collect();
    for (number, rounds) in (0..).zip(shares) {
        lab.note_round_trip();
        let process = RefCell::new(start()?);
        let mut turns: Vec<Side<'_, P::Sample>> = Vec::with_capacity(sides);
        for place in 0..sides {
            let process = &process;
            turns.push(Side::new(move || process.borrow_mut().take(place)));
        }
        let samples = interleave(&mut turns, Plan { rounds, ..plan }, || lab.step())?;
        drop(turns);
        lab.note_round_trip();
        process.into_inner().finish()?;
        for (all, new) in taken.iter_mut().zip(samples) {
            all.extend(number, new);
        }
    }
    Ok(taken)
}

/// Takes the samples of `cell` in `processes` fresh processes, one list per subject.
///
/// # Errors
/// A process cannot be started, or something failed in it.
pub fn sample(
    lab: &Lab,
    cell: &Cell,
    plan: Plan,
    processes: usize,
) -> Result<Vec<Samples<Sample>>, Problem> {
    let params: Vec<String> = cell
        .params
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    let title = format!("{} {}", cell.workload, params.join(" "));
    let mut cell = cell.clone();
    cell.quick |= lab.quick();
    measure(lab, &title, cell.subjects.len(), plan, processes, || {
        CellProcess::start(&cell)
    })
}

/// Takes the samples of a host program that `start` starts, in `processes` fresh processes, one
/// list per line of `lines`. `read` checks the program's answer to the line at an index and turns
/// it into the sample.
///
/// # Errors
/// A program cannot be started, something failed in it, or `read` refuses an answer.
pub fn ask<A: DeserializeOwned, S>(
    lab: &Lab,
    title: &str,
    lines: &[String],
    plan: Plan,
    processes: usize,
    start: impl Fn() -> Result<HostProgram, Problem>,
    read: impl Fn(usize, A) -> Result<S, Problem>,
) -> Result<Vec<Samples<S>>, Problem> {
    measure(lab, title, lines.len(), plan, processes, || {
        Ok(Asked {
            program: start()?,
            lines,
            read: &read,
            answer: PhantomData,
        })
    })
}

/// A host program that answers the line of a side.
struct Asked<'a, A, R> {
    program: HostProgram,
    lines: &'a [String],
    read: &'a R,
    answer: PhantomData<A>,
}

impl<A, S, R> Process for Asked<'_, A, R>
where
    A: DeserializeOwned,
    R: Fn(usize, A) -> Result<S, Problem>,
{
    type Sample = S;

    fn take(&mut self, side: usize) -> Result<S, Problem> {
        (self.read)(side, self.program.ask(&self.lines[side])?)
    }

    fn finish(self) -> Result<(), Problem> {
        self.program.finish()
    }
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
    program: HostProgram,
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
                program,
            }),
            other => Err(unexpected(&cell.workload, other)),
        }
    }
}

impl Process for CellProcess {
    type Sample = Sample;

    fn take(&mut self, side: usize) -> Result<Sample, Problem> {
        match self.program.ask(&side.to_string())? {
            Answer::Sample(sample) => Ok(sample),
            other => Err(unexpected(&self.workload, other)),
        }
    }

    fn finish(self) -> Result<(), Problem> {
        self.program.finish()
    }
}

/// Several processes of one side each, as one process of several sides.
impl<P: Process> Process for Vec<P> {
    type Sample = P::Sample;

    fn take(&mut self, side: usize) -> Result<P::Sample, Problem> {
        self[side].take(0)
    }

    fn finish(self) -> Result<(), Problem> {
        self.into_iter().try_for_each(P::finish)
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
pub fn times(samples: &Samples<Sample>) -> Samples {
    samples.map(|sample| sample.ns)
}

/// The metrics of `samples`: `ops_per_s`, the median of each metric, and the percentiles of all
/// latencies together, each with its interval.
///
/// For a metric that some samples lack, the median is taken over the samples that have it.
#[must_use]
pub fn metrics(samples: &Samples<Sample>) -> Metrics {
    let mut found: BTreeMap<&str, Samples> = BTreeMap::new();
    for (sample, process) in samples.iter().zip(samples.process()) {
        for (name, value) in &sample.metrics {
            found.entry(name).or_default().extend(*process, [*value]);
        }
    }
    let mut metrics = Metrics::default();
    for (name, values) in &found {
        metrics.median(name, values);
    }
    metrics.rate("ops_per_s", 1e9, &times(samples));
    latency::percentiles(
        &samples.map(|sample| sample.latencies.as_slice()),
        &mut metrics,
    );
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Placement;

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
    fn shares_of_rounds_lose_none() {
        assert_eq!(shares(15, 3), [5, 5, 5]);
        assert_eq!(shares(5, 3), [2, 2, 1]);
        assert_eq!(shares(2, 3), [1, 1]);
        assert_eq!(shares(5, 0), [5]);
    }

    #[test]
    fn process_returns_a_sample_of_the_side() {
        let mut process = process(r#"echo "{\"ns\": 1$line.5}""#).unwrap();
        assert_eq!(process.take(1).unwrap().ns, 11.5);
        assert_eq!(process.take(0).unwrap().ns, 10.5);
        process.finish().unwrap();
    }

    #[test]
    fn failed_check_in_the_process_is_a_failed_check() {
        let mut process = process(r#"echo '{"check": true, "failed": "counts differ"}'"#).unwrap();
        let problem = process.take(0).unwrap_err();
        assert!(matches!(problem, Problem::Check(text) if text == "counts differ"));
    }

    #[test]
    fn environment_of_a_cell_reaches_its_process() {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            r#"echo '{"ready": true}'; read cell; echo '{"opened": 0}'; read line; echo "{\"ns\": $A_KNOB}""#,
        ]);
        let mut cell = Cell::new("w", &[], &[]);
        cell.environment
            .insert("A_KNOB".to_owned(), "42".to_owned());
        let mut process = CellProcess::start_command(command, &cell).unwrap();
        assert_eq!(process.take(0).unwrap().ns, 42.0);
    }

    #[test]
    fn measured_samples_know_their_process() {
        /// Counts its samples from 10 times the number of the process.
        struct Counting(u32);
        impl Process for Counting {
            type Sample = u32;
            fn take(&mut self, side: usize) -> Result<u32, Problem> {
                self.0 += 1;
                Ok(self.0 + 100 * side as u32)
            }
            fn finish(self) -> Result<(), Problem> {
                Ok(())
            }
        }
        let lab = Lab::new(true, None);
        let plan = Plan {
            warm_up: 1,
            rounds: 5,
        };
        let mut started = 0;
        let taken = measure(&lab, "counting", 2, plan, 3, || {
            started += 10;
            Ok(Counting(started))
        })
        .unwrap();
        for side in &taken {
            assert_eq!(side.process(), [0, 0, 1, 1, 2]);
        }
        // Samples 1 and 2 of each process are the warm-up.
        assert_eq!(*taken[0], [13, 16, 23, 26, 33]);
        assert_eq!(*taken[1], [114, 115, 124, 125, 134]);
    }

    #[test]
    fn host_program_is_asked_line_by_line_in_each_process() {
        let start = || {
            let mut command = Command::new("sh");
            command.args([
                "-c",
                r#"echo '{"ready": true}'; while read line; do echo "$line"; done"#,
            ]);
            HostProgram::start("echo", command, Placement::Free)
        };
        let plan = Plan {
            warm_up: 0,
            rounds: 3,
        };
        let lines = ["7".to_owned(), "9".to_owned()];
        let lab = Lab::new(true, None);
        let read = |line, answer: u32| Ok((line, answer));
        let taken = ask(&lab, "echo", &lines, plan, 3, start, read).unwrap();
        assert_eq!(*taken[1], [(1, 9); 3]);
        assert_eq!(taken[1].process(), [0, 1, 2]);
        let refuse = |_, _: u32| Err::<(), _>(Problem::Check("no".to_owned()));
        assert!(ask(&lab, "echo", &lines, plan, 3, start, refuse).is_err());
    }

    #[test]
    fn metrics_are_medians_and_percentiles_come_from_all_latencies() {
        let sample = |ns, failed, latency| Sample {
            ns,
            metrics: BTreeMap::from([("failed_sends".to_owned(), failed)]),
            latencies: vec![(latency, 60_000)],
        };
        let samples = vec![sample(2.0, 1.0, 10), sample(4.0, 9.0, 20)];
        let metrics = metrics(&Samples::new(samples, vec![0, 1]));
        let of = |name: &str| {
            let (value, interval) = metrics.get(name).unwrap();
            (value, interval.low, interval.high)
        };
        assert_eq!(of("failed_sends"), (5.0, 1.0, 9.0));
        assert_eq!(of("ops_per_s"), (1e9 / 3.0, 2.5e8, 5e8));
        assert_eq!(of("latencies"), (120_000.0, 120_000.0, 120_000.0));
        assert_eq!(of("p50_ns"), (10.0, 10.0, 20.0));
        assert_eq!(of("p99_ns"), (20.0, 10.0, 20.0));
    }
}
