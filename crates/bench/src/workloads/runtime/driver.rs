//! Times a [`Pair`].
//!
//! 1. Setting up a cell only installs its panic hook; nothing is started.
//! 2. A side's sample is a series of runs that takes 40 ms, because a run of some workloads takes
//!    only a few microseconds. The side determines the number of runs in its first sample, which is
//!    warm-up.
//! 3. `cold`: each run has its own runtime, and the time includes its start and stop. `warm`: one
//!    runtime serves the whole series, and the work is done once before the timer starts.
//! 4. The results of the runs are kept until the timer has stopped; then all of them are checked.

use std::collections::BTreeMap;
use std::fs::File;
use std::panic;
use std::time::{Duration, Instant};

use thalweg_peers::tokio_runtime::Tokio;

use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::lab::Lab;
use crate::latency::Latencies;
use crate::placement::allowed;
use crate::problem::Problem;
use crate::report::Row;
use crate::statistics::median;
use crate::workloads::queue::rows::{self, Rigour};
use crate::workloads::queue::subjects::THALWEG;

use super::pair::Pair;
use super::panics::PLANNED;
use super::point::{Point, points};

/// The intended duration of a sample: long enough that neither the clock nor a single timer tick of
/// the kernel matters.
const SAMPLE: Duration = Duration::from_millis(40);
/// The same in a quick run.
const QUICK_SAMPLE: Duration = Duration::from_millis(2);
/// The largest number of runs per sample.
const MOST_RUNS: u32 = 10_000;

/// Takes the samples of every point of the workload.
///
/// # Errors
/// A knob is invalid, or something failed in a cell's process.
pub fn run<P: Pair>(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let mut all = Vec::new();
    for mut cell in points(lab, P::WORKLOAD) {
        let point = Point::of(&cell)?;
        let pair = P::of(&cell)?;
        let target = pair.target(point);
        let libraries = pair.libraries();
        let peers = P::OTHER_FORM.into_iter().chain([point.peer()]);
        let peers = peers.chain(libraries.iter().copied());
        cell.subjects = [THALWEG]
            .into_iter()
            .chain(peers)
            .map(str::to_owned)
            .collect();
        let rigour = match target {
            Some(_) => Rigour::Bar,
            None => Rigour::Look,
        };
        let mut rows = rows::measure(lab, P::WORKLOAD, cell, rigour)?.rows("ns", &[P::CHECKED]);
        if let Some(target) = target {
            let processors = allowed().len();
            let few = (processors < point.workers).then(|| format!("{processors} processors"));
            let refusal = lab.refusal().or(few.as_deref());
            let tokio = [point.peer()];
            let held = if libraries.is_empty() {
                &tokio
            } else {
                libraries
            };
            for peer in held {
                rows::hold(&mut rows, peer, &target, refusal);
            }
        }
        all.append(&mut rows);
    }
    Ok(all)
}

/// Sets up both sides of a cell.
///
/// # Errors
/// A parameter is missing or invalid, or there is no /dev/null.
pub fn open<P: Pair>(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let point = Point::of(cell)?;
    let pair = P::of(cell)?;
    point.check_environment()?;
    hook(point.silent)?;
    let sample = if cell.quick { QUICK_SAMPLE } else { SAMPLE };
    let sides = cell.subjects.iter().map(|name| {
        let library = pair.libraries().iter().find(|library| *library == name);
        let series: TakeSeries<P> = match name.as_str() {
            THALWEG => Box::new(move |runs| ours(pair, point, runs)),
            name if Some(name) == P::OTHER_FORM => {
                Box::new(move |runs| ours(pair.other_form(), point, runs))
            }
            name if name == point.peer() => {
                Box::new(move |runs| tokio(point, runs, move || pair.tokio()))
            }
            _ if let Some(library) = library => {
                Box::new(move |runs| tokio(point, runs, move || pair.library(library)))
            }
            other => {
                return Err(Problem::Usage(format!(
                    "{other} is not measured on {} workers",
                    point.workers
                )));
            }
        };
        let name = name.clone();
        let mut settled = None;
        Ok(Side::new(move || {
            // The first sample, which is warm-up, consists of the last runs that settle the number.
            let series = match settled {
                Some(runs) => series(runs)?,
                None => {
                    let (runs, last) = settle(sample, &series)?;
                    settled = Some(runs);
                    last
                }
            };
            sample_of(pair, &series).map_err(|what| Problem::Check(format!("{name}: {what}")))
        }))
    });
    sides.collect()
}

/// Installs a hook that does not print planned panics. Any other panic means that the lab itself is
/// broken, and is printed.
fn hook(silent: bool) -> Result<(), Problem> {
    if silent {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            if panicked.payload().downcast_ref::<&str>() != Some(&PLANNED) {
                before(panicked);
            }
        }));
        Ok(())
    } else {
        let null = File::options().write(true).open("/dev/null");
        null.and_then(|null| Ok(rustix::stdio::dup2_stderr(null)?))
            .map_err(Problem::io("/dev/null"))
    }
}

/// Some runs and their results.
struct Series<F> {
    elapsed: Duration,
    found: Vec<F>,
}

/// Takes this many runs of one side.
type TakeSeries<P> = Box<dyn Fn(u32) -> Result<Series<<P as Pair>::Found>, Problem>>;

impl<F> Series<F> {
    fn of(runs: u32) -> (Self, Instant) {
        let found = Vec::with_capacity(runs as usize);
        let elapsed = Duration::ZERO;
        (Self { elapsed, found }, Instant::now())
    }

    fn ended(mut self, began: Instant) -> Self {
        self.elapsed = began.elapsed();
        self
    }
}

fn ours<P: Pair>(pair: P, point: Point, runs: u32) -> Result<Series<P::Found>, Problem> {
    if point.cold {
        let (mut series, began) = Series::of(runs);
        for _ in 0..runs {
            series.found.push(point.ready()?.run(move || pair.ours()));
        }
        return Ok(series.ended(began));
    }
    Ok(point.ready()?.run(move || {
        drop(pair.ours());
        let (mut series, began) = Series::of(runs);
        for _ in 0..runs {
            series.found.push(pair.ours());
        }
        series.ended(began)
    }))
}

fn tokio<T, F>(
    point: Point,
    runs: u32,
    once: impl Fn() -> F + Send + 'static,
) -> Result<Series<T>, Problem>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let start = || {
        Tokio::start(point.workers, point.io).map_err(Problem::io("cannot start tokio's runtime"))
    };
    if point.cold {
        let (mut series, began) = Series::of(runs);
        for _ in 0..runs {
            series.found.push(start()?.run(once()));
        }
        return Ok(series.ended(began));
    }
    Ok(start()?.run(async move {
        drop(once().await);
        let (mut series, began) = Series::of(runs);
        for _ in 0..runs {
            series.found.push(once().await);
        }
        series.ended(began)
    }))
}

/// Takes runs until they show how many of them take as long as a sample should. Returns that number
/// and the last runs.
fn settle<F>(
    sample: Duration,
    series: impl Fn(u32) -> Result<Series<F>, Problem>,
) -> Result<(u32, Series<F>), Problem> {
    let mut runs = 1;
    loop {
        let taken = series(runs)?;
        let elapsed = taken.elapsed.max(Duration::from_nanos(1));
        let exact = f64::from(runs) * sample.as_secs_f64() / elapsed.as_secs_f64();
        let wanted = exact.ceil().clamp(1.0, f64::from(MOST_RUNS)) as u32;
        // The first runs of a process are slower than the rest, so a long series gives a better
        // estimate than a short one.
        if wanted <= runs.saturating_mul(4) {
            return Ok((wanted, taken));
        }
        runs = wanted.min(runs * 16);
    }
}

fn sample_of<P: Pair>(pair: P, series: &Series<P::Found>) -> Result<Sample, String> {
    let mut latencies = Latencies::new();
    let mut metrics: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for found in &series.found {
        pair.check(found)?;
        P::record(found, &mut latencies);
        for (name, value) in pair.metrics(found) {
            metrics.entry(name).or_default().push(value);
        }
    }
    let runs = series.found.len() as u64;
    let mut sample = Sample::of(series.elapsed, runs * pair.operations());
    for (name, values) in metrics {
        sample = sample.with(name, median(&values).expect("there is one at least"));
    }
    Ok(sample.with("runs", runs as f64).with_latencies(&latencies))
}
