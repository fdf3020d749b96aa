//! `overflow`: 10,000 numbers into 16 slots with each overflow policy, and the fate of each number.
//!
//! The receiver works for a microsecond on each number, so the channel is nearly always full. With
//! `block`, four senders share the 10,000 numbers on a first-come, first-served basis, and none may
//! starve.

use std::collections::BTreeMap;
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thalweg::queue::{Options, Overflow, SendError, Stats, mpmc, mpsc, spsc};
use thalweg_lab::gate::{self, SEQUENCE_BITS};

use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::Row;
use crate::statistics::median;
use crate::workloads::Workload;

use super::driver::Driver;
use super::subjects::THALWEG;

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "overflow",
    group: "queue",
    what: "A full channel with each policy: delivered + dropped = published, and no sender starves under block.",
    source: "nimsync's backpressure_test: sent 1,600, failed 8,400, \"success rate 100 %\"",
    peers: &[],
    seconds: 5,
    run,
    ..Workload::USUAL
};

const PUBLISHED: u64 = 10_000;
const CAPACITY: usize = 16;
const SENDERS: usize = 4;
const SEQUENCE: u64 = (1 << SEQUENCE_BITS) - 1;
/// The receiver's work for each number.
const WORK: Duration = Duration::from_micros(1);

const POLICIES: [(&str, Overflow); 5] = [
    ("block", Overflow::Block),
    ("fail", Overflow::Fail),
    ("drop_newest", Overflow::DropNewest),
    ("drop_oldest", Overflow::DropOldest),
    ("latest", Overflow::Latest),
];

/// A kind of channel, used through the operations that all kinds have.
trait Kind: 'static {
    const NAME: &'static str;
    /// Whether its senders can remove values, and therefore support every policy.
    const EVICTS: bool;
    type Sender: Send + 'static;
    type Receiver: Send + 'static;
    fn with(policy: Overflow) -> Result<(Self::Sender, Self::Receiver), Problem>;
    fn send(sender: &Self::Sender, message: u64) -> Result<(), SendError<u64>>;
    /// Returns `None` if the channel is closed and drained.
    fn receive(receiver: &Self::Receiver) -> Option<u64>;
    fn stats(receiver: &Self::Receiver) -> Stats;
}

/// A kind whose sending side can be cloned.
trait Shared: Kind {
    fn another(sender: &Self::Sender) -> Self::Sender;
}

macro_rules! kind {
    ($kind:ident, $module:ident, evicts: $evicts:literal) => {
        struct $kind;

        impl Kind for $kind {
            const NAME: &'static str = stringify!($module);
            const EVICTS: bool = $evicts;
            type Sender = $module::Sender<u64>;
            type Receiver = $module::Receiver<u64>;

            fn with(policy: Overflow) -> Result<(Self::Sender, Self::Receiver), Problem> {
                let options = Options::new().overflow(policy);
                $module::with(CAPACITY, options).map_err(|why| Problem::Check(why.to_string()))
            }

            fn send(sender: &Self::Sender, message: u64) -> Result<(), SendError<u64>> {
                sender.send(message)
            }

            fn receive(receiver: &Self::Receiver) -> Option<u64> {
                receiver.recv().ok()
            }

            fn stats(receiver: &Self::Receiver) -> Stats {
                receiver.stats()
            }
        }
    };
}

kind!(Spsc, spsc, evicts: false);
kind!(Mpsc, mpsc, evicts: false);
kind!(Mpmc, mpmc, evicts: true);

impl Shared for Mpsc {
    fn another(sender: &Self::Sender) -> Self::Sender {
        sender.clone()
    }
}

impl Shared for Mpmc {
    fn another(sender: &Self::Sender) -> Self::Sender {
        sender.clone()
    }
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let mut rows = Vec::new();
    for policy in POLICIES {
        rows.extend(of_policy::<Spsc>(lab, policy)?);
        rows.extend(of_policy::<Mpsc>(lab, policy)?);
        rows.extend(of_policy::<Mpmc>(lab, policy)?);
    }
    rows.push(shares::<Mpsc>(lab)?);
    rows.push(shares::<Mpmc>(lab)?);
    Ok(rows)
}

/// The fate of the numbers of one run.
#[derive(Debug, Default)]
struct Fate {
    elapsed: Duration,
    delivered: u64,
    dropped: u64,
    conflated: u64,
    /// The number of values that each sender sent successfully.
    shares: Vec<u64>,
}

fn of_policy<K: Kind>(lab: &Lab, (name, policy): (&str, Overflow)) -> Result<Option<Row>, Problem> {
    if !K::EVICTS && matches!(policy, Overflow::DropOldest | Overflow::Latest) {
        return Ok(None);
    }
    let plan = lab.plan(None);
    lab.begin(&format!("overflow {} {name}", K::NAME), plan.rounds);
    let mut fates = Vec::new();
    for _ in 0..plan.rounds {
        let (sender, receiver) = K::with(policy)?;
        let fate = publish::<K>(vec![sender], receiver)?;
        if policy == Overflow::Block && fate.delivered != PUBLISHED {
            return Err(Problem::Check(format!(
                "{}: block dropped something",
                K::NAME
            )));
        }
        fates.push(fate);
        lab.step();
    }
    let row = row(K::NAME, name, 1, &fates);
    Ok(Some(row))
}

fn shares<K: Shared>(lab: &Lab) -> Result<Row, Problem> {
    let plan = lab.plan(None);
    lab.begin(&format!("overflow {} shares", K::NAME), plan.rounds);
    let mut fates = Vec::new();
    for _ in 0..plan.rounds {
        let (sender, receiver) = K::with(Overflow::Block)?;
        let mut senders: Vec<_> = (1..SENDERS).map(|_| K::another(&sender)).collect();
        senders.push(sender);
        fates.push(publish::<K>(senders, receiver)?);
        lab.step();
    }
    let mut row = row(K::NAME, "block", SENDERS, &fates);
    let of_each: Vec<f64> = fates
        .iter()
        .map(|fate| {
            let least = fate.shares.iter().min().copied().unwrap_or_default();
            let most = fate.shares.iter().max().copied().unwrap_or_default();
            least as f64 / most as f64
        })
        .collect();
    if let Some(share) = median(&of_each) {
        row.metrics
            .insert("smallest_share_of_largest".to_owned(), share);
    }
    let target = Target::AtLeast("smallest_share_of_largest", 0.5);
    Ok(row.held_to(&target, lab.refusal()))
}

fn row(kind: &str, policy: &str, producers: usize, fates: &[Fate]) -> Row {
    let params = [
        ("channel", kind.to_owned()),
        ("policy", policy.to_owned()),
        ("producers", producers.to_string()),
        ("capacity", CAPACITY.to_string()),
        ("published", PUBLISHED.to_string()),
    ];
    let params: Vec<(&str, &str)> = params.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let times = fates
        .iter()
        .map(|fate| fate.elapsed.as_nanos() as f64 / PUBLISHED as f64);
    let mut row = Row::new(
        (WORKLOAD.name, WORKLOAD.group),
        &params,
        "ns",
        (THALWEG, times.collect::<Vec<_>>()),
        None,
    )
    .checked("delivered + dropped + conflated = published")
    .checked("each sender's numbers arrived in order")
    .checked("the receiver works for 1 us on each");
    let mut put = |name: &str, count: fn(&Fate) -> u64| {
        let counts: Vec<f64> = fates.iter().map(|fate| count(fate) as f64).collect();
        row.metrics
            .extend(median(&counts).map(|middle| (name.to_owned(), middle)));
    };
    put("delivered", |fate| fate.delivered);
    put("dropped", |fate| fate.dropped);
    put("conflated", |fate| fate.conflated);
    row
}

/// The result of one thread of a run.
enum End {
    Sent {
        number: usize,
        refused: u64,
        sent: u64,
        closed: bool,
    },
    Received {
        delivered: u64,
        in_order: bool,
        stats: Stats,
    },
}

fn publish<K: Kind>(senders: Vec<K::Sender>, receiver: K::Receiver) -> Result<Fate, Problem> {
    let count = senders.len();
    let budget = Arc::new(AtomicU64::new(0));
    let mut driver = Driver::new(THALWEG, count + 1, 0);
    for (number, sender) in senders.into_iter().enumerate() {
        let budget = Arc::clone(&budget);
        driver.produce(None, move |mark| {
            let (mut refused, mut sent, mut closed) = (0, 0, false);
            loop {
                let place = budget.fetch_add(1, Ordering::Relaxed);
                if place >= PUBLISHED {
                    break;
                }
                match K::send(&sender, gate::number(mark, number as u64, place)) {
                    Ok(()) => sent += 1,
                    Err(SendError::Closed(_)) => closed = true,
                    Err(SendError::Full(_) | SendError::TimedOut(_)) => refused += 1,
                }
            }
            End::Sent {
                number,
                refused,
                sent,
                closed,
            }
        })?;
    }
    driver.consume(None, move |mark| {
        let mut last = BTreeMap::new();
        let (mut delivered, mut in_order) = (0, true);
        while let Some(message) = K::receive(&receiver) {
            delivered += 1;
            let message = message.wrapping_sub(mark);
            let (sender, place) = (message >> SEQUENCE_BITS, message & SEQUENCE);
            in_order &= sender < SENDERS as u64
                && last
                    .insert(sender, place)
                    .is_none_or(|before| before < place);
            let work = Instant::now();
            while work.elapsed() < WORK {
                spin_loop();
            }
        }
        End::Received {
            delivered,
            in_order,
            stats: K::stats(&receiver),
        }
    })?;

    let mut fate = Fate {
        shares: vec![0; count],
        ..Fate::default()
    };
    let (ends, run) = driver.run()?;
    fate.elapsed = run.elapsed;
    for end in ends {
        match end {
            End::Sent { closed: true, .. } => {
                return Err(Problem::Check(format!(
                    "{}: closed while it was open",
                    K::NAME
                )));
            }
            End::Sent {
                number,
                refused,
                sent,
                ..
            } => {
                fate.dropped += refused;
                fate.shares[number] = sent;
            }
            End::Received {
                in_order: false, ..
            } => {
                return Err(Problem::Check(format!("{}: out of order", K::NAME)));
            }
            End::Received {
                delivered, stats, ..
            } => {
                fate.delivered = delivered;
                fate.dropped += stats.dropped_newest + stats.dropped_oldest;
                fate.conflated = stats.conflated;
            }
        }
    }
    let all = fate.delivered + fate.dropped + fate.conflated;
    if all == PUBLISHED {
        Ok(fate)
    } else {
        Err(Problem::Check(format!(
            "{}: {PUBLISHED} published, {all} accounted for: {fate:?}",
            K::NAME
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_accounts_for_every_number() {
        for policy in POLICIES {
            let (sender, receiver) = Mpmc::with(policy.1).unwrap();
            let fate = publish::<Mpmc>(vec![sender], receiver).unwrap();
            assert!(fate.delivered >= 1, "{policy:?}");
            let drops = fate.dropped + fate.conflated > 0;
            assert_eq!(drops, policy.1 != Overflow::Block, "{policy:?} {fate:?}");
        }
    }

    #[test]
    fn a_policy_that_a_kind_cannot_have_is_no_row() {
        let lab = Lab::new(true, None);
        assert!(of_policy::<Spsc>(&lab, POLICIES[3]).unwrap().is_none());
        assert!(of_policy::<Spsc>(&lab, POLICIES[2]).unwrap().is_some());
    }

    #[test]
    fn four_senders_share_what_is_published() {
        let (sender, receiver) = Mpsc::with(Overflow::Block).unwrap();
        let senders = vec![Mpsc::another(&sender), sender];
        let fate = publish::<Mpsc>(senders, receiver).unwrap();
        assert_eq!(fate.shares.iter().sum::<u64>(), PUBLISHED);
    }
}
