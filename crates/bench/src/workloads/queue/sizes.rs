//! `sizes`: finds the best capacity, and whether the difference is significant.
//!
//! All capacities take turns in one process. The last row compares the best with the next best. If
//! the interval of their ratio contains 1, no size is better.

use thalweg_peers::channel::Channel;

use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::processes::{self, PROCESSES, times};
use crate::report::{Row, Winner};
use crate::statistics::{Samples, median};
use crate::workloads::{Knob, Workload};

use thalweg_peers::versions;

use super::grid::{self, Grid};
use super::run::{Messages, Sampler};
use super::subjects::{THALWEG, one_to_one};
use super::threads::{CHECKED_ONE, Threads, hand_over};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "sizes",
    group: "queue",
    what: "Two threads over capacities of 8 to 4,096: the best, and whether its interval separates it from the next.",
    source: "nimsync's benchmark_sizes, whose ring never held more than one number, so that its best size was noise",
    peers: &PEERS,
    seconds: 25,
    run,
    knobs: &[MESSAGES, grid::FULL],
    cells: Some(open),
};

const MESSAGES: Knob = Knob {
    name: "messages",
    default: "100000",
    what: "messages a run, as a list",
};
const PEERS: [&str; 2] = ["rtrb", "crossbeam"];
const CAPACITIES: [usize; 10] = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let grid = Grid::of(lab)?;
    for peer in PEERS {
        lab.peers.insert(peer.to_owned(), versions::of(peer));
    }
    let mut all = Vec::new();
    for messages in grid.numbers(lab, &MESSAGES, "100000,10000000")? {
        all.extend(all_sizes(lab, &messages.to_string())?);
    }
    Ok(all)
}

fn all_sizes(lab: &Lab, messages: &str) -> Result<Vec<Row>, Problem> {
    let names = grid::with_ours(&PEERS);
    let subjects: Vec<String> = CAPACITIES
        .iter()
        .flat_map(|capacity| names.iter().map(move |name| format!("{name}@{capacity}")))
        .collect();
    let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
    let params = [("messages", messages), ("placement", "free")];
    let cell = Cell::new(WORKLOAD.name, &params, &subjects);
    let taken = processes::sample(lab, &cell, lab.plan(None), PROCESSES)?;

    let mut rows = Vec::new();
    let mut ours = Vec::new();
    for (capacity, samples) in CAPACITIES.iter().zip(taken.chunks(names.len())) {
        let text = capacity.to_string();
        let params = [("capacity", text.as_str()), params[0], params[1]];
        for (peer, of_peer) in PEERS.iter().zip(&samples[1..]) {
            let mut row = Row::new(
                (WORKLOAD.name, WORKLOAD.group),
                &params,
                "ns",
                (THALWEG, times(&samples[0])),
                Some((peer, times(of_peer))),
            )
            .checked(CHECKED_ONE);
            row.add_metrics("", processes::metrics(&samples[0]));
            rows.push(row);
        }
        ours.push((*capacity, times(&samples[0])));
    }
    rows.push(best(ours, &params));
    Ok(rows)
}

/// The best capacity against the next best. The lists belong to the same rounds.
fn best(mut ours: Vec<(usize, Samples)>, params: &[(&str, &str)]) -> Row {
    let of = |samples: &[f64]| median(samples).unwrap_or(f64::INFINITY);
    ours.sort_by(|a, b| of(&a.1).total_cmp(&of(&b.1)));
    let mut ours = ours.into_iter();
    let (best, samples) = ours.next().expect("there are ten capacities");
    let (next, of_next) = ours.next().expect("there are ten capacities");
    let (subject, peer) = (format!("{THALWEG}@{best}"), format!("{THALWEG}@{next}"));
    let mut row = Row::new(
        (WORKLOAD.name, WORKLOAD.group),
        &[&[("capacity", "best")], params].concat(),
        "ns",
        (&subject, samples),
        Some((&peer, of_next)),
    );
    row.metrics.insert("best_capacity".to_owned(), best as f64);
    row.metrics.insert("next_capacity".to_owned(), next as f64);
    let separated = row.winner == Some(Winner::Subject);
    row.checked(if separated {
        "the interval separates the best size from the next"
    } else {
        "the interval does not separate the best size from the next: no size is better"
    })
}

fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let messages = Messages::Exactly(cell.number("messages")?);
    let sides = cell.subjects.iter().map(|subject| {
        let parts = subject.split_once('@');
        let Some((name, capacity)) = parts.and_then(|(n, c)| Some((n, c.parse().ok()?))) else {
            return Err(Problem::Usage(format!(
                "a subject is like rtrb@64, not `{subject}`"
            )));
        };
        one_to_one!(name, side(capacity, messages, cell.quick))
    });
    sides.collect()
}

fn side<C: Channel>(
    capacity: usize,
    messages: Messages,
    quick: bool,
) -> Result<Side<'static, Sample>, Problem> {
    let threads = Threads {
        batch: 1,
        split: false,
    };
    let mut sampler = Sampler::new(messages, 1, quick);
    Ok(Side::new(move || {
        sampler.take(|messages| {
            let (sender, receiver) = C::bounded(capacity);
            hand_over::<C>(vec![sender], vec![receiver], messages, threads)
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_size_is_better_where_the_interval_holds_one() {
        let steady = |ns: f64| Samples::from(vec![ns; 5]);
        let row = best(
            vec![(8, steady(9.0)), (16, steady(3.0)), (32, steady(4.0))],
            &[],
        );
        assert_eq!(row.subject, "thalweg@16");
        assert_eq!(row.peer.as_deref(), Some("thalweg@32"));
        assert!(row.checks[0].starts_with("the interval separates"));
        let shaky = vec![2.0, 4.1, 2.0, 4.1, 3.0];
        let row = best(
            vec![(8, shaky.into()), (16, steady(3.1)), (32, steady(9.0))],
            &[],
        );
        assert_eq!(row.metrics["best_capacity"], 8.0);
        assert!(
            row.checks[0].ends_with("no size is better"),
            "{:?}",
            row.ratio
        );
    }

    #[test]
    fn every_capacity_takes_a_sample() {
        let params = [("messages", "1000")];
        let mut cell = Cell::new(
            WORKLOAD.name,
            &params,
            &["thalweg@8", "rtrb@8", "crossbeam@4096"],
        );
        cell.quick = true;
        for mut side in open(&cell).unwrap() {
            assert!(side.take().unwrap().ns > 0.0);
        }
        assert!(open(&Cell::new(WORKLOAD.name, &params, &["rtrb"])).is_err());
    }
}
