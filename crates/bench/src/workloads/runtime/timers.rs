//! `many_timers`: many actors sleep, and each is woken at its deadline.

use std::time::{Duration, Instant};

use thalweg_peers::tokio_runtime;
use thalweg_runtime::{sleep, spawn};

use crate::cell::Cell;
use crate::judgement::Target;
use crate::latency::Latencies;
use crate::problem::Problem;
use crate::workloads::Workload;

use super::driver::{open, run};
use super::pair::{ENDS, Pair, same};
use super::point::{Point, knobs};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "many_timers",
    group: "runtime",
    what: "Actors that sleep for 1 to 10 ms, all at once: until the last has woken, and how late each did.",
    source: "smarm's benchmark of this name: 10,000 pending sleeps",
    peers: &["tokio_current_thread", "tokio_multi_thread"],
    seconds: 30,
    run: run::<ManyTimers>,
    knobs: knobs![(
        "sleeps",
        "10000",
        "sleeps that are pending at once; a million takes memory for as many stacks"
    )],
    cells: Some(open::<ManyTimers>),
};

/// The seed of all sleep times, so that each run of either side has the same.
const SEED: u64 = 0x7a17;

/// See [`WORKLOAD`].
#[derive(Clone, Copy, Debug)]
pub struct ManyTimers(u64);

impl Pair for ManyTimers {
    const WORKLOAD: &'static Workload = &WORKLOAD;
    const CHECKED: &'static str = "an operation is a whole run; as many woke as slept, and none too early; latencies are by how much they overslept";
    /// By how many ns each sleeper woke too late.
    type Found = Vec<i64>;

    fn of(cell: &Cell) -> Result<Self, Problem> {
        cell.number("sleeps").map(Self)
    }

    fn operations(self) -> u64 {
        1
    }

    fn ours(self) -> Self::Found {
        let sleeping = |number| {
            spawn(move || {
                let nap = nap(number);
                let began = Instant::now();
                sleep(nap);
                began.elapsed().as_nanos() as i64 - nap.as_nanos() as i64
            })
        };
        let sleepers: Vec<_> = (0..self.0).map(sleeping).collect();
        sleepers
            .into_iter()
            .map(|sleeper| sleeper.join().expect(ENDS))
            .collect()
    }

    fn tokio(self) -> impl Future<Output = Self::Found> + Send + 'static {
        tokio_runtime::many_timers(self.0, nap)
    }

    fn check(self, late: &Self::Found) -> Result<(), String> {
        same("sleepers", late.len() as u64, self.0)?;
        let early = late.iter().filter(|late| **late < 0).count();
        same("sleepers that woke too early", early, 0)
    }

    fn record(late: &Self::Found, latencies: &mut Latencies) {
        for late in late {
            latencies.record(late.unsigned_abs());
        }
    }

    fn target(self, point: Point) -> Option<Target> {
        point.bars(1.05, 1.05).map(|_| {
            Target::All(vec![
                Target::Ratio(1.05),
                Target::AtMostPeers("p50_ns", 1.0),
            ])
        })
    }
}

/// The sleep time of the sleeper with this number: 1 to 10 ms.
fn nap(number: u64) -> Duration {
    let mut random = fastrand::Rng::with_seed(SEED ^ number);
    Duration::from_nanos(random.u64(1_000_000..=10_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naps_fill_the_whole_range_and_are_the_same_again() {
        let naps: Vec<Duration> = (0..10_000).map(nap).collect();
        let within = Duration::from_millis(1)..=Duration::from_millis(10);
        assert!(naps.iter().all(|nap| within.contains(nap)));
        for millis in 1..10 {
            let of_this = naps.iter().filter(|nap| nap.as_millis() == millis).count();
            assert!((900..1_300).contains(&of_this), "{millis} ms: {of_this}");
        }
        assert_eq!(naps[7], nap(7));
    }
}
