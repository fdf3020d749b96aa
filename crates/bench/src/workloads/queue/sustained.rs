//! `sustained`: the same load for seconds in every run, and for hours on request.
//!
//! Channels are created, used and dropped all the time, in turns: one to one, two to one, two to
//! two. Each runs for a round of at most a second, and every message is checked. Leaks of memory,
//! file descriptors or mappings become visible. One point per minute is written to a file as it is
//! taken, so a run that is killed keeps its points. A run that is interrupted (SIGINT, SIGTERM)
//! still writes its row.
//!
//! | what | judged after | target |
//! | --- | --- | --- |
//! | load | two hours | each hour within 10 % of the first |
//! | memory | twenty minutes | at most 64 KiB more per hour, after the first ten minutes |
//! | descriptors, mappings | twenty minutes | as many at the end as after the first ten minutes |

mod points;

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};
use thalweg_peers::Channel;

use crate::hosts;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::Workload;

use self::points::{Point, Watched};
use super::numbers::{ONE_BY_ONE, hand_over};
use super::run::{Run, Sampler};
use super::subjects::{Mpmc, Mpsc, Spsc, THALWEG};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "sustained",
    group: "queue",
    what: "3, 5 and 10 s of hand-off without a pause: throughput per window, and leaks.",
    source: "nimsync's benchmark_sustained, which called 10 s long",
    peers: &[],
    seconds: 20,
    run: |lab| run(lab, &WORKLOAD, &[3, 5, 10]),
    ..Workload::USUAL
};

/// The same for hours: `--duration 12h`.
pub const HOURS: Workload = Workload {
    name: "sustained_hours",
    group: "endurance",
    what: "Hand-off for hours: whether the last is as fast as the first, and whether anything leaks.",
    source: "nimsync's claims of 12 and 24 hours, which no program of theirs measured",
    peers: &[],
    seconds: 3600,
    run: |lab| run(lab, &HOURS, &[3600]),
    ..Workload::USUAL
};

/// Points are a minute apart, or a tenth of a shorter run.
const APART: Duration = Duration::from_secs(60);
/// The duration of a round of each kind of channel.
const ROUND: Duration = Duration::from_secs(1);
const CAPACITY: usize = 1024;

const CHECKED: &str = "every message of every round arrived once, each sender's in order";

fn run(lab: &mut Lab, workload: &Workload, seconds: &[u64]) -> Result<Vec<Row>, Problem> {
    let own = if lab.quick() { &seconds[..1] } else { seconds };
    let mut durations: Vec<Duration> = own
        .iter()
        .map(|seconds| lab.duration(Duration::from_secs(*seconds)))
        .collect();
    // A requested duration is run once.
    durations.dedup();
    let interrupted = Interrupted::watch()?;
    let mut rows = Vec::new();
    for duration in durations {
        if !interrupted.seen() {
            let points = points_of(lab, workload, Plan::of(duration), &interrupted)?;
            rows.extend(row(lab, workload, duration, &points, interrupted.seen()));
        }
    }
    if rows.is_empty() {
        return Err(Problem::NotReady(
            "interrupted before the first point".to_owned(),
        ));
    }
    Ok(rows)
}

/// The duration of a run and its division.
#[derive(Clone, Copy)]
struct Plan {
    duration: Duration,
    /// The time between points.
    apart: Duration,
    /// The duration of a round of one kind of channel.
    round: Duration,
}

impl Plan {
    fn of(duration: Duration) -> Self {
        let apart = APART.min(duration / 10);
        Self {
            duration,
            apart,
            round: ROUND.min(apart / 6),
        }
    }
}

fn points_of(
    lab: &Lab,
    workload: &Workload,
    plan: Plan,
    interrupted: &Interrupted,
) -> Result<Vec<Point>, Problem> {
    let count = plan.duration.as_secs_f64() / plan.apart.as_secs_f64();
    let span = humantime::format_duration(plan.duration).to_string();
    lab.begin(&format!("{} {span}", workload.name), count.ceil() as usize);
    let log = Log::create(workload.name, &span)?;
    let mut rounds = Rounds::new(plan.round);
    // Not counted: each kind determines the number of messages per round.
    rounds.turn()?;
    let began = Instant::now();
    let mut points = Vec::new();
    // The time of the last point. With the current time instead, a run could end too early.
    let mut ran = Duration::ZERO;
    while ran < plan.duration && !interrupted.seen() {
        let before = (began.elapsed(), rounds.messages);
        while began.elapsed() - before.0 < plan.apart && !interrupted.seen() {
            rounds.turn()?;
        }
        ran = began.elapsed();
        let point = Point {
            at: ran,
            took: ran - before.0,
            messages: rounds.messages - before.1,
            left: Watched::now()?,
        };
        log.write(&point)?;
        points.push(point);
        lab.step();
    }
    Ok(points)
}

/// `None` means that there is no point.
fn row(
    lab: &Lab,
    workload: &Workload,
    asked: Duration,
    points: &[Point],
    interrupted: bool,
) -> Option<Row> {
    let ran = points.last()?.at;
    let asked_text = humantime::format_duration(asked).to_string();
    let capacity = CAPACITY.to_string();
    let params = [
        ("duration", asked_text.as_str()),
        ("capacity", capacity.as_str()),
        ("channels", "1x1, 2x1, 2x2 in turns"),
    ];
    let times: Vec<f64> = points.iter().map(Point::ns).collect();
    let mut row = Row::new(
        (workload.name, workload.group),
        &params,
        "ns",
        (THALWEG, times),
        None,
    )
    .checked(CHECKED);
    row.metrics = points::metrics(points);
    row.metrics.insert("seconds".to_owned(), ran.as_secs_f64());
    if interrupted {
        let ran = humantime::format_duration(Duration::from_secs(ran.as_secs()));
        row = row.checked(format!("interrupted: the row is of the first {ran}"));
    }
    let mut targets = Vec::new();
    if points::hours(ran) >= 2 {
        targets.push(Target::Metric("worst_hour_percent", 10.0));
    }
    if points::is_long(ran) {
        targets.push(Target::Metric("rss_slope_kib_per_h", 64.0));
        targets.push(Target::Metric("fds_more", 0.0));
        targets.push(Target::Metric("mappings_more", 0.0));
    }
    Some(if targets.is_empty() {
        row
    } else {
        row.held_to(&Target::All(targets), lab.refusal())
    })
}

/// One kind of channel after the other, and the messages they moved.
struct Rounds {
    samplers: [Sampler; 3],
    messages: u64,
}

impl Rounds {
    fn new(round: Duration) -> Self {
        Self {
            samplers: [1, 2, 4].map(|unit| Sampler::lasting(round, unit)),
            messages: 0,
        }
    }

    /// Runs a round of each kind.
    fn turn(&mut self) -> Result<(), Problem> {
        let [spsc, mpsc, mpmc] = &mut self.samplers;
        let samples = [
            spsc.take(|messages| {
                let (sender, receiver) = Spsc::bounded(CAPACITY);
                once::<Spsc>(vec![sender], vec![receiver], messages)
            })?,
            mpsc.take(|messages| {
                let (sender, receiver) = Mpsc::bounded(CAPACITY);
                once::<Mpsc>(vec![sender; 2], vec![receiver], messages)
            })?,
            mpmc.take(|messages| {
                let (sender, receiver) = Mpmc::bounded(CAPACITY);
                once::<Mpmc>(vec![sender; 2], vec![receiver; 2], messages)
            })?,
        ];
        for sample in samples {
            self.messages += sample.metrics["messages"] as u64;
        }
        Ok(())
    }
}

fn once<C: Channel>(
    senders: Vec<C::Sender>,
    receivers: Vec<C::Receiver>,
    messages: u64,
) -> Result<Run, Problem> {
    hand_over::<C>(vec![(senders, receivers)], messages, ONE_BY_ONE, None)
}

/// Writes points to a file as they are taken.
struct Log {
    file: File,
    path: PathBuf,
}

impl Log {
    fn create(workload: &str, span: &str) -> Result<Self, Problem> {
        let folder = hosts::root().join("benchmarks/reports");
        fs::create_dir_all(&folder).map_err(Problem::io(folder.display().to_string()))?;
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let now = now.replace(['-', ':'], "");
        let span = span.replace(' ', "");
        let path = folder.join(format!("{workload}_{span}_{now}.csv"));
        let file = File::create(&path).map_err(Problem::io(path.display().to_string()))?;
        let log = Self { file, path };
        log.line(points::HEAD)?;
        Ok(log)
    }

    fn write(&self, point: &Point) -> Result<(), Problem> {
        self.line(&point.line())
    }

    fn line(&self, line: &str) -> Result<(), Problem> {
        // The file is unbuffered, so every line is written at once.
        writeln!(&self.file, "{line}").map_err(Problem::io(self.path.display().to_string()))
    }
}

/// Whether a signal requested the end of this run. A second signal ends the process.
struct Interrupted {
    seen: Arc<AtomicBool>,
    handlers: Vec<SigId>,
}

impl Interrupted {
    fn watch() -> Result<Self, Problem> {
        let mut watch = Self {
            seen: Arc::new(AtomicBool::new(false)),
            handlers: Vec::new(),
        };
        for signal in [SIGINT, SIGTERM] {
            let end = flag::register_conditional_default(signal, Arc::clone(&watch.seen));
            let note = flag::register(signal, Arc::clone(&watch.seen));
            for handler in [end, note] {
                watch
                    .handlers
                    .push(handler.map_err(Problem::io("cannot watch for signals"))?);
            }
        }
        Ok(watch)
    }

    fn seen(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupted {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            low_level::unregister(handler);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_has_ten_points_and_no_verdict() {
        let lab = Lab::new(false, None);
        let interrupted = Interrupted::watch().unwrap();
        let duration = Duration::from_millis(600);
        let points = points_of(&lab, &WORKLOAD, Plan::of(duration), &interrupted).unwrap();
        // If a round takes longer than a tenth of the run, there are fewer points.
        assert!((1..=11).contains(&points.len()), "{} points", points.len());
        let row = row(&lab, &WORKLOAD, duration, &points, false).unwrap();
        assert!(row.metrics["messages"] > 0.0 && row.metrics["seconds"] >= 0.6);
        assert_eq!(row.verdict, None);
    }

    #[test]
    fn a_run_that_is_interrupted_ends_with_what_it_has() {
        let interrupted = Interrupted::watch().unwrap();
        let seen = Arc::clone(&interrupted.seen);
        let raise = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(1_500));
            seen.store(true, Ordering::Relaxed);
        });
        let lab = Lab::new(false, None);
        let plan = Plan {
            duration: Duration::from_secs(3600),
            apart: Duration::from_millis(50),
            round: Duration::from_millis(5),
        };
        let points = points_of(&lab, &WORKLOAD, plan, &interrupted).unwrap();
        raise.join().unwrap();
        let row = row(&lab, &WORKLOAD, plan.duration, &points, true).unwrap();
        assert!(row.metrics["seconds"] < 60.0);
        assert!(
            row.checks
                .iter()
                .any(|check| check.starts_with("interrupted"))
        );
    }

    #[test]
    fn a_run_without_a_point_is_no_row() {
        let lab = Lab::new(false, None);
        assert!(row(&lab, &WORKLOAD, Duration::from_secs(3), &[], true).is_none());
    }

    #[test]
    fn an_hour_has_a_point_a_minute() {
        let plan = Plan::of(Duration::from_secs(12 * 3600));
        assert_eq!((plan.apart, plan.round), (APART, ROUND));
        assert_eq!(Plan::of(Duration::from_secs(3)).apart.as_millis(), 300);
    }
}
