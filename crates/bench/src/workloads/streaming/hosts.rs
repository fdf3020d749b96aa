//! `streaming_hosts`: the cost of a tick of 64 bytes from a service's actor to each language, in
//! each form that the language has.
//!
//! The same service writes the same ticks, 256 at a time. Timed from the call that opens the stream
//! until its end is read. The rows differ in how the host reads them:
//!
//! - `one`: one at a time, by its iterator; in C by a batch of one;
//! - `objects`: 256 at a time, each copied to an object;
//! - `views`: 256 at a time, read in place;
//! - `columns`: the same by three columns, in Python;
//! - `callback`: by a callback on the thread that writes them.
//!
//! The peer, in Python, is a module written by hand with PyO3: an iterator over a channel that a
//! thread fills. It is built on request (`make bench-peers`); if it is not built, the rows have no
//! peer.

use serde::Deserialize;
use thalweg_lab::ticks::checksum;

use crate::child::HostProgram;
use crate::lab::Lab;
use crate::placement::Placement;
use crate::problem::Problem;
use crate::processes::{self, PROCESSES, Process};
use crate::report::Row;
use crate::workloads::Workload;
use crate::workloads::lab_hosts::{self, LabHost};
use crate::workloads::view_read::BATCH;

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "streaming_hosts",
    group: "streaming",
    what: "The whole way of a tick of 64 bytes into Rust, C and Python: one by one, as objects, in place, by columns, by callback.",
    source: "bindings that cross once an event: PyO3 by hand",
    peers: &[BY_HAND],
    seconds: 60,
    run,
    ..Workload::USUAL
};

const BY_HAND: &str = "pyo3_by_hand";

/// Samples of each side.
const SAMPLES: usize = 15;

/// A language and how it takes ticks.
struct Way {
    host: LabHost,
    /// Ticks a sample: some 100 ms.
    count: u64,
    forms: &'static [&'static str],
}

const WAYS: [Way; 3] = [
    Way {
        host: lab_hosts::RUST,
        count: 1_000_000,
        forms: &["one", "objects", "views", "callback"],
    },
    Way {
        host: lab_hosts::C,
        count: 1_000_000,
        forms: &["one", "views", "callback"],
    },
    Way {
        host: lab_hosts::PYTHON,
        count: 100_000,
        forms: &["one", "objects", "views", "columns"],
    },
];

#[derive(Deserialize)]
struct Read {
    ns: u64,
    records: u64,
    checksum: u64,
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let mut rows = Vec::new();
    for way in &WAYS {
        let by_hand = way.host.language == "python" && lab_hosts::peer_pyo3().is_ok();
        if by_hand {
            let version = lab_hosts::peer_version("pyo3")?;
            lab.peers.insert(BY_HAND.to_owned(), version);
        }
        rows.extend(measure(lab, way, by_hand)?);
    }
    Ok(rows)
}

/// The programs of one process's samples: ours reads in each form, the peer in one.
struct Programs<'a> {
    way: &'a Way,
    count: u64,
    sum: u64,
    ours: HostProgram,
    by_hand: Option<HostProgram>,
}

impl Process for Programs<'_> {
    type Sample = f64;

    fn take(&mut self, side: usize) -> Result<f64, Problem> {
        let count = self.count;
        let (name, read): (_, Read) = match (self.way.forms.get(side), &mut self.by_hand) {
            (None, Some(by_hand)) => (BY_HAND, by_hand.ask(&format!("ticks {count}"))?),
            (form, _) => {
                let form = form.copied().unwrap_or_default();
                (form, self.ours.ask(&format!("stream-{form} {count}"))?)
            }
        };
        if (read.records, read.checksum) == (count, self.sum) {
            return Ok(read.ns as f64 / count as f64);
        }
        Err(Problem::Check(format!(
            "{} {name}: {} ticks with sum {}, which should be {count} with {}",
            self.way.host.language, read.records, read.checksum, self.sum
        )))
    }

    fn finish(self) -> Result<(), Problem> {
        self.ours.finish()?;
        self.by_hand.map_or(Ok(()), HostProgram::finish)
    }
}

fn measure(lab: &Lab, way: &Way, by_hand: bool) -> Result<Vec<Row>, Problem> {
    let Way { host, count, forms } = way;
    let count = if lab.quick() { count / 10 } else { *count };
    let plan = lab.plan(Some(SAMPLES));
    let sum = checksum(count);
    let start = |command| HostProgram::start(host.language, command, Placement::Free);
    let sides = forms.len() + usize::from(by_hand);
    let title = format!("streaming_hosts {}", host.language);
    let mut taken = processes::measure(lab, &title, sides, plan, PROCESSES, || {
        Ok(Programs {
            way,
            count,
            sum,
            ours: start((host.command)()?)?,
            by_hand: match by_hand {
                true => Some(start(lab_hosts::peer_pyo3()?)?),
                false => None,
            },
        })
    })?;

    let theirs = by_hand.then(|| taken.pop()).flatten();
    let mut rows = Vec::new();
    for (form, ours) in forms.iter().zip(taken) {
        let params = [
            ("language", host.language),
            ("mode", *form),
            ("ticks", &count.to_string()),
            ("batch", &BATCH.to_string()),
            ("capacity", "8192"),
        ];
        let peer = theirs.clone().map(|theirs| (BY_HAND, theirs));
        let mut row = Row::new(
            (WORKLOAD.name, WORKLOAD.group),
            &params,
            "ns",
            ("thalweg", ours),
            peer,
        )
        .checked("every sample read each tick once, with the known sum of fields");
        row.metrics
            .insert("per_s".to_owned(), 1e9 / row.subject_median);
        rows.push(row);
    }
    Ok(rows)
}
