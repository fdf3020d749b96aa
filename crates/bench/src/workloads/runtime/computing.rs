//! `fan_out_compute`, `multi_thread_scaling`: actors that compute and never wait.

use std::collections::BTreeMap;

use thalweg_peers::tokio_runtime;
use thalweg_runtime::spawn;

use crate::cell::Cell;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::{Knob, Workload};

use super::driver::{open, run};
use super::pair::{ENDS, Pair, same};
use super::point::{DRIVERS, EACH, HOOK, LIFETIME, OWN, Point, WORKERS, knobs};

/// One actor per chunk.
pub const FAN_OUT_COMPUTE: Workload = Workload {
    name: "fan_out_compute",
    group: "runtime",
    what: "The primes below 200,000 are counted in chunks, an actor each, and the counts joined.",
    source: "smarm's benchmark of this name, after its `primes`",
    peers: &["tokio_current_thread", "tokio_multi_thread"],
    seconds: 20,
    run: run::<Primes<false>>,
    knobs: knobs![("chunks", "64", "actors, 1 to 200000")],
    cells: Some(open::<Primes<false>>),
};

/// The same with more and more workers.
pub const MULTI_THREAD_SCALING: Workload = Workload {
    name: "multi_thread_scaling",
    what: "The same on 1, 2, 4 .. workers, up to the number of processors: the speed-up of each.",
    source: "smarm's `multi_scheduler`, which its authors ran on one processor",
    run: scaling,
    knobs: &[
        LIFETIME,
        Knob {
            default: EACH,
            ..WORKERS
        },
        DRIVERS,
        HOOK,
        OWN[0],
        OWN[1],
        OWN[2],
        Knob {
            name: "chunks",
            default: "64",
            what: "actors, 1 to 200000",
        },
    ],
    cells: Some(open::<Primes<true>>),
    ..FAN_OUT_COMPUTE
};

/// The exclusive upper bound of the tested numbers.
const BELOW: u64 = 200_000;
/// The number of primes below it.
const FOUND: u64 = 17_984;

/// Both workloads: they differ only in the workers.
#[derive(Clone, Copy, Debug)]
pub struct Primes<const SCALING: bool>(u64);

impl<const SCALING: bool> Primes<SCALING> {
    /// The number of primes in a chunk. Both sides run the same machine code.
    #[inline(never)]
    fn primes(self, chunk: u64) -> u64 {
        let numbers = BELOW * chunk / self.0..BELOW * (chunk + 1) / self.0;
        numbers.filter(|number| is_prime(*number)).count() as u64
    }
}

/// By trial division, which computes for a long time and touches no memory.
fn is_prime(number: u64) -> bool {
    let mut divisor = 2;
    while divisor * divisor <= number {
        if number.is_multiple_of(divisor) {
            return false;
        }
        divisor += 1;
    }
    number >= 2
}

impl<const SCALING: bool> Pair for Primes<SCALING> {
    const WORKLOAD: &'static Workload = if SCALING {
        &MULTI_THREAD_SCALING
    } else {
        &FAN_OUT_COMPUTE
    };
    const CHECKED: &'static str = "an operation is a whole run; the number of primes";
    type Found = u64;

    fn of(cell: &Cell) -> Result<Self, Problem> {
        cell.number("chunks").map(Self)
    }

    fn operations(self) -> u64 {
        1
    }

    fn ours(self) -> u64 {
        let working = |chunk| spawn(move || self.primes(chunk));
        let actors: Vec<_> = (0..self.0).map(working).collect();
        actors
            .into_iter()
            .map(|actor| actor.join().expect(ENDS))
            .sum()
    }

    fn tokio(self) -> impl Future<Output = u64> + Send + 'static {
        tokio_runtime::fan_out(self.0, move |chunk| self.primes(chunk))
    }

    fn check(self, found: &u64) -> Result<(), String> {
        same("primes", *found, FOUND)
    }

    fn target(self, point: Point) -> Option<Target> {
        point.is_barred().then_some(Target::Ratio(1.05))
    }
}

fn scaling(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let mut rows = run::<Primes<true>>(lab)?;
    against_one_worker(&mut rows);
    Ok(rows)
}

/// Writes `scaling_vs_1` and `peer_scaling_vs_1` into each row: the speed relative to one worker,
/// if that was measured.
fn against_one_worker(rows: &mut [Row]) {
    let but_workers = |row: &Row| {
        let mut params = row.params.clone();
        let workers = params.remove(WORKERS.name);
        (params, workers)
    };
    let alone: BTreeMap<_, _> = rows
        .iter()
        .filter_map(|row| match but_workers(row) {
            (params, Some(workers)) if workers == "1" => {
                Some((params, (row.subject_median, row.peer_median)))
            }
            _ => None,
        })
        .collect();
    for row in rows {
        if let Some((ours, peers)) = alone.get(&but_workers(row).0) {
            let scaling = ours / row.subject_median;
            row.metrics.insert("scaling_vs_1".to_owned(), scaling);
            if let (Some(one), Some(many)) = (peers, row.peer_median) {
                let scaling = one / many;
                row.metrics.insert("peer_scaling_vs_1".to_owned(), scaling);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_chunks_finds_all_primes() {
        for chunks in [1, 7, 64] {
            let primes = Primes::<false>(chunks);
            let found = (0..chunks).map(|chunk| primes.primes(chunk)).sum();
            assert_eq!(primes.check(&found), Ok(()), "{chunks}");
        }
    }

    #[test]
    fn scaling_is_against_the_row_of_one_worker_with_the_same_lifetime() {
        let row = |lifetime, workers, ours, peers| {
            Row::new(
                ("multi_thread_scaling", "runtime"),
                &[("lifetime", lifetime), ("workers", workers)],
                "ns",
                ("thalweg", vec![ours; 5]),
                Some(("tokio_multi_thread", vec![peers; 5])),
            )
        };
        let mut rows = [
            row("cold", "1", 8.0, 9.0),
            row("cold", "4", 2.0, 3.0),
            row("warm", "4", 2.0, 3.0),
        ];
        against_one_worker(&mut rows);
        assert_eq!(rows[0].metrics["scaling_vs_1"], 1.0);
        assert_eq!(rows[1].metrics["scaling_vs_1"], 4.0);
        assert_eq!(rows[1].metrics["peer_scaling_vs_1"], 3.0);
        assert!(!rows[2].metrics.contains_key("scaling_vs_1"));
    }
}
