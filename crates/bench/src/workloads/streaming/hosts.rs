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

use std::cell::RefCell;

use serde::Deserialize;
use thalweg_lab::ticks::checksum;

use crate::child::HostProgram;
use crate::interleave::{Side, interleave};
use crate::lab::Lab;
use crate::placement::Placement;
use crate::problem::Problem;
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

fn measure(lab: &Lab, way: &Way, by_hand: bool) -> Result<Vec<Row>, Problem> {
    let Way { host, count, forms } = way;
    let count = if lab.quick() { count / 10 } else { *count };
    let plan = lab.plan(Some(SAMPLES));
    let sides_count = forms.len() + usize::from(by_hand);
    lab.begin(
        &format!("streaming_hosts {}", host.language),
        sides_count * (plan.warm_up + plan.rounds),
    );
    let sum = checksum(count);
    let checked = |name: &str, program: &RefCell<HostProgram>, line: &str| {
        let read: Read = program.borrow_mut().ask(line)?;
        if (read.records, read.checksum) != (count, sum) {
            return Err(Problem::Check(format!(
                "{} {name}: {} ticks with sum {}, which should be {count} with {sum}",
                host.language, read.records, read.checksum
            )));
        }
        Ok(read.ns as f64 / count as f64)
    };
    let start = |command| HostProgram::start(host.language, command, Placement::Free);
    let program = RefCell::new(start((host.command)()?)?);
    let peer = match by_hand {
        true => Some(RefCell::new(start(lab_hosts::peer_pyo3()?)?)),
        false => None,
    };
    let mut sides: Vec<Side<'_, f64>> = Vec::new();
    for form in *forms {
        let line = format!("stream-{form} {count}");
        let (checked, program) = (&checked, &program);
        sides.push(Side::new(move || checked(form, program, &line)));
    }
    if let Some(peer) = &peer {
        sides.push(Side::new(|| {
            checked(BY_HAND, peer, &format!("ticks {count}"))
        }));
    }
    let mut taken = interleave(&mut sides, plan, || lab.step())?;
    drop(sides);
    program.into_inner().finish()?;
    if let Some(peer) = peer {
        peer.into_inner().finish()?;
    }

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
