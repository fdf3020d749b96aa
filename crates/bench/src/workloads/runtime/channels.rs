//! `mpsc_contention`, `uncontended_channel`: many actors send to one, and one sends to one.

use thalweg_peers::tokio_runtime;
use thalweg_runtime::{channel, spawn};

use crate::cell::Cell;
use crate::problem::Problem;
use crate::workloads::Workload;

use super::driver::{open, run};
use super::pair::{ENDS, Pair, same};
use super::point::knobs;

/// Many to one.
pub const MPSC_CONTENTION: Workload = Workload {
    name: "mpsc_contention",
    group: "runtime",
    what: "Many actors send to one over one unbounded channel.",
    source: "smarm's benchmark of this name: 32 producers, 10,000 messages each",
    peers: &["tokio_current_thread", "tokio_multi_thread"],
    seconds: 30,
    run: run::<Funnel<true>>,
    knobs: knobs![
        ("producers", "32", "actors that send"),
        ("each", "10000", "messages of each")
    ],
    cells: Some(open::<Funnel<true>>),
};

/// One to one.
pub const UNCONTENDED_CHANNEL: Workload = Workload {
    name: "uncontended_channel",
    what: "One actor sends to another over an unbounded channel.",
    source: "smarm's benchmark of this name: 1,000,000 messages",
    seconds: 40,
    run: run::<Funnel<false>>,
    knobs: knobs![
        ("producers", "1", "actors that send"),
        ("each", "1000000", "messages of each")
    ],
    cells: Some(open::<Funnel<false>>),
    ..MPSC_CONTENTION
};

/// Both workloads: they differ only in their sizes.
#[derive(Clone, Copy, Debug)]
pub struct Funnel<const CONTENDED: bool> {
    producers: u32,
    each: u32,
}

impl<const CONTENDED: bool> Pair for Funnel<CONTENDED> {
    const WORKLOAD: &'static Workload = if CONTENDED {
        &MPSC_CONTENTION
    } else {
        &UNCONTENDED_CHANNEL
    };
    const BARS: Option<(f64, f64)> = Some((if CONTENDED { 0.6 } else { 0.4 }, 0.5));
    const CHECKED: &'static str =
        "an operation is a message; all of each producer arrived, and in its order";
    /// The number of messages from each producer, and of those out of order.
    type Found = (Vec<u32>, u64);

    fn of(cell: &Cell) -> Result<Self, Problem> {
        Ok(Self {
            producers: cell.number("producers")? as u32,
            each: cell.number("each")? as u32,
        })
    }

    fn operations(self) -> u64 {
        u64::from(self.producers) * u64::from(self.each)
    }

    fn ours(self) -> Self::Found {
        let (sender, receiver) = channel();
        for producer in 0..self.producers {
            let sender = sender.clone();
            drop(spawn(move || {
                for number in 0..self.each {
                    sender.send((producer, number)).expect(ENDS);
                }
            }));
        }
        drop(sender);
        let consumer = spawn(move || {
            let (mut got, mut wrong) = (vec![0; self.producers as usize], 0);
            while let Ok((producer, number)) = receiver.recv() {
                let due = &mut got[producer as usize];
                wrong += u64::from(number != *due);
                *due += 1;
            }
            (got, wrong)
        });
        consumer.join().expect(ENDS)
    }

    fn tokio(self) -> impl Future<Output = Self::Found> + Send + 'static {
        tokio_runtime::funnel(self.producers, self.each)
    }

    fn check(self, (got, wrong): &Self::Found) -> Result<(), String> {
        same("messages out of order", *wrong, 0)?;
        let due = vec![self.each; self.producers as usize];
        same("messages of each producer", got, &due)
    }
}
