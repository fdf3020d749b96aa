//! `io_simulation`: a producer and a consumer that mostly wait for something else, like programs
//! that do I/O.
//!
//! Both sleep before each message. The sleep times are exponentially distributed and come from a
//! seed. The producer is a quarter faster than the consumer, so that the channel fills up and its
//! overflow policy takes effect. The two sides are threads, not actors, because the workload
//! examines the queue.
//!
//! The question is whether throughput is steady. The consumer's messages are divided into ten
//! windows of equal number, and no window may differ from their median by more than 10 %. Every
//! window sleeps for the same times in another order, so differences between windows are not random
//! variation of the sleeps.

use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::set_current_timer_slack;
use thalweg::queue::{Options, Overflow, mpmc};
use thalweg_peers::channel::Channel;
use thalweg_peers::channels::Tokio;

use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::Row;
use crate::statistics::median;
use crate::workloads::Workload;

use super::driver::Driver;
use super::grid::{self, Axis, Grid};
use super::rows::{self, Rigour};
use super::subjects::THALWEG;

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "io_simulation",
    group: "queue",
    what: "Producer and consumer that sleep for random times: is throughput steady with each policy?",
    source: "nimsync's database, pipeline and websocket scenarios, which never used a channel",
    peers: &["tokio"],
    seconds: 40,
    run,
    knobs: &[AXES[0].knob, AXES[1].knob, AXES[2].knob, grid::FULL],
    cells: Some(open),
};

const AXES: [Axis; 3] = [
    Axis::partly(
        "mean_us",
        "500",
        "50,500,5000",
        "mean of the consumer's sleeps in microseconds, as a list",
    ),
    Axis::partly(
        "capacity",
        "64",
        "16,64,256,1024,4096",
        "capacities, as a list",
    ),
    Axis::whole(
        "policy",
        "block,fail,drop_newest,drop_oldest,latest",
        "policies for a full channel, as a list",
    ),
];

const WINDOWS: usize = 10;
/// The ratio of the producer's mean to the consumer's.
const PRODUCER: f64 = 0.8;
const SEED: u64 = 0x696f_7369_6d75;

const SPREAD: &str = "window_spread_percent";
const CHECKED: &str = "what arrived was in order; delivered + dropped = published";
const LEVEL: &str = "two threads, not actors";

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let mut all = Vec::new();
    for point in Grid::of(lab)?.points(lab, &AXES) {
        // The number of messages per window: 50 ms at the median, but at least 20 messages.
        let window = match lab.quick() {
            true => 20,
            false => (50_000 / point.number("mean_us")?.max(1)).max(20),
        };
        // tokio's channel can neither drop the oldest value nor keep only the latest.
        let peers: &[&str] = match point.get("policy") {
            "drop_oldest" | "latest" => &[],
            _ => &["tokio"],
        };
        let point = point.with("window", &window.to_string());
        let point = point.with("seed", &SEED.to_string());
        let cell = Cell::new(WORKLOAD.name, &point.params(), &grid::with_ours(peers));
        let measured = rows::measure(lab, &WORKLOAD, cell, Rigour::Look)?;
        all.extend(measured.rows("ns", &[CHECKED, LEVEL]));
        let target = Target::Metric(SPREAD, 10.0);
        let alone = measured.alone("ns", &[CHECKED, LEVEL]);
        all.push(alone.held_to(&target, lab.refusal()));
    }
    Ok(all)
}

fn policy_of(name: &str) -> Result<Overflow, Problem> {
    Ok(match name {
        "block" => Overflow::Block,
        "fail" => Overflow::Fail,
        "drop_newest" => Overflow::DropNewest,
        "drop_oldest" => Overflow::DropOldest,
        "latest" => Overflow::Latest,
        other => {
            return Err(Problem::Usage(format!("there is no policy `{other}`")));
        }
    })
}

fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let policy = policy_of(cell.text("policy")?)?;
    let capacity = cell.number("capacity")? as usize;
    let pace = Pace {
        mean: Duration::from_micros(cell.number("mean_us")?),
        window: cell.number("window")? as usize,
    };
    let sides = cell.subjects.iter().map(|name| match name.as_str() {
        THALWEG => Ok(Side::new(move || ours(policy, capacity, pace))),
        "tokio" => Ok(Side::new(move || tokio(policy, capacity, pace))),
        other => super::subjects::unknown(other),
    });
    sides.collect()
}

#[derive(Clone, Copy)]
struct Pace {
    mean: Duration,
    window: usize,
}

impl Pace {
    /// The sleeps of one side, window by window: the quantiles of an exponential distribution with
    /// this mean, shuffled.
    fn sleeps(self, share: f64, seed: u64) -> Vec<Duration> {
        let mut random = fastrand::Rng::with_seed(seed);
        let count = self.window;
        let quantile = |place: usize| {
            let below = (place as f64 + 0.5) / count as f64;
            self.mean.mul_f64(share * -(1.0 - below).ln())
        };
        let mut all = Vec::with_capacity(count * WINDOWS);
        for _ in 0..WINDOWS {
            let mut window: Vec<Duration> = (0..count).map(quantile).collect();
            random.shuffle(&mut window);
            all.extend(window);
        }
        all
    }
}

/// Makes sleeps of this thread precise: the kernel's default timer slack is as long as the shortest
/// mean.
fn sleep_exactly() {
    let _ = set_current_timer_slack(NonZeroU64::new(1_000));
}

fn ours(policy: Overflow, capacity: usize, pace: Pace) -> Result<Sample, Problem> {
    let options = Options::new().overflow(policy);
    let (sender, receiver) =
        mpmc::with(capacity, options).map_err(|why| Problem::Usage(why.to_string()))?;
    let watcher = receiver.clone();
    let run = simulate(
        pace,
        move |message| sender.send(message).is_ok(),
        move || receiver.recv().ok(),
    )?;
    let stats = watcher.stats();
    let dropped = stats.dropped_newest + stats.dropped_oldest + stats.conflated;
    finish(THALWEG, &run, run.refused + dropped)
}

fn tokio(policy: Overflow, capacity: usize, pace: Pace) -> Result<Sample, Problem> {
    let (mut sender, mut receiver) = Tokio::bounded(capacity);
    let run = simulate(
        pace,
        move |message| {
            if policy == Overflow::Block {
                Tokio::send(&mut sender, message);
                true
            } else {
                Tokio::try_send(&mut sender, message)
            }
        },
        move || receiver.message(),
    )?;
    finish("tokio", &run, run.refused)
}

/// The results of both threads.
#[derive(Debug, Default)]
struct Simulated {
    published: u64,
    refused: u64,
    in_order: bool,
    /// The time at which each message was processed, counted from the first arrival.
    done: Vec<Duration>,
}

fn simulate(
    pace: Pace,
    mut send: impl FnMut(u64) -> bool + Send + 'static,
    mut receive: impl FnMut() -> Option<u64> + Send + 'static,
) -> Result<Simulated, Problem> {
    let mut driver = Driver::new(WORKLOAD.name, 2, 0);
    let sleeps = pace.sleeps(PRODUCER, SEED);
    driver.produce(None, move |mark| {
        sleep_exactly();
        let mut run = Simulated::default();
        for (message, time) in (mark..).zip(sleeps) {
            thread::sleep(time);
            run.published += 1;
            run.refused += u64::from(!send(message));
        }
        run
    })?;
    let sleeps = pace.sleeps(1.0, SEED + 1);
    driver.consume(None, move |mark| {
        sleep_exactly();
        let mut run = Simulated {
            in_order: true,
            ..Simulated::default()
        };
        // A message from before the start has a smaller number.
        let mut last = Some(mark - 1);
        let mut first = None;
        // No policy delivers more messages than are published.
        for time in sleeps {
            let Some(message) = receive() else {
                break;
            };
            run.in_order &= last.replace(message).is_none_or(|before| before < message);
            let first = *first.get_or_insert_with(Instant::now);
            thread::sleep(time);
            run.done.push(first.elapsed());
        }
        run
    })?;
    let mut both = Simulated {
        in_order: true,
        ..Simulated::default()
    };
    for end in driver.run()?.0 {
        both.published += end.published;
        both.refused += end.refused;
        if !end.done.is_empty() {
            both.in_order &= end.in_order;
            both.done = end.done;
        }
    }
    Ok(both)
}

fn finish(subject: &str, run: &Simulated, dropped: u64) -> Result<Sample, Problem> {
    let delivered = run.done.len() as u64;
    if !run.in_order || delivered + dropped != run.published {
        return Err(Problem::Check(format!(
            "{subject}: {} published, {delivered} delivered, {dropped} dropped{}",
            run.published,
            if run.in_order { "" } else { ", out of order" }
        )));
    }
    let all = run.done.last().copied().unwrap_or_default();
    let mut sample = Sample::of(all, delivered.max(1))
        .with("delivered", delivered as f64)
        .with("dropped", dropped as f64);
    if let Some(spread) = spread(&run.done) {
        sample = sample.with(SPREAD, spread);
    }
    Ok(sample)
}

/// The largest deviation of a window from the median window, in percent.
fn spread(done: &[Duration]) -> Option<f64> {
    let window = done.len() / WINDOWS;
    if window == 0 {
        return None;
    }
    let ends = (0..=WINDOWS).map(|number| match number * window {
        0 => Duration::ZERO,
        count => done[count - 1],
    });
    let ends: Vec<Duration> = ends.collect();
    let took: Vec<f64> = ends
        .windows(2)
        .map(|w| (w[1] - w[0]).as_secs_f64())
        .collect();
    let middle = median(&took)?;
    let furthest = took
        .iter()
        .map(|t| (t / middle - 1.0).abs())
        .reduce(f64::max)?;
    Some(100.0 * furthest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace {
        mean: Duration::from_micros(50),
        window: 20,
    };

    #[test]
    fn every_windows_sleeps_are_the_same_in_another_order() {
        let sleeps = PACE.sleeps(1.0, 7);
        let mut windows: Vec<Vec<Duration>> = sleeps.chunks(20).map(<[_]>::to_vec).collect();
        assert_eq!(windows.len(), WINDOWS);
        assert_ne!(windows[0], windows[1]);
        windows.iter_mut().for_each(|window| window.sort());
        assert_eq!(windows[0], windows[9]);
        let mean = sleeps.iter().sum::<Duration>() / 200;
        assert!((45..=55).contains(&mean.as_micros()), "{mean:?}");
    }

    #[test]
    fn the_spread_is_that_of_the_worst_window() {
        let done: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        assert!(spread(&done).unwrap() < 1e-9);
        let late = done
            .iter()
            .enumerate()
            .map(|(place, time)| *time + Duration::from_millis(if place >= 50 { 5 } else { 0 }));
        let spread = spread(&late.collect::<Vec<_>>()).unwrap();
        assert!((49.9..50.1).contains(&spread), "{spread}");
    }

    #[test]
    fn every_policy_accounts_for_all() {
        for name in ["block", "fail", "drop_newest", "drop_oldest", "latest"] {
            let policy = policy_of(name).unwrap();
            assert!(ours(policy, 4, PACE).unwrap().metrics["delivered"] > 0.0);
        }
        for name in ["block", "fail"] {
            assert!(tokio(policy_of(name).unwrap(), 4, PACE).unwrap().ns > 0.0);
        }
    }
}
