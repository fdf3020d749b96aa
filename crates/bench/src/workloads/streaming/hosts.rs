//! `streaming_hosts`: the cost of a tick of 64 bytes from a service's actor to each language, in
//! each form that the language has.
//!
//! The same service writes the same ticks, 256 at a time. Timed from the call that opens the stream
//! until its end is read. The rows differ in how the host reads them:
//!
//! - `one`: one at a time, by its iterator; in C by a batch of one;
//! - `objects`: 256 at a time, each copied to an object;
//! - `views`: 256 at a time, read in place;
//! - `columns`: the same by three columns, in Python and Node;
//! - `callback`: by a callback on the thread that writes them.
//!
//! The peer, in Python, is a module written by hand with PyO3: an iterator over a channel that a
//! thread fills. It is built on request (`make bench-peers`); if it is not built, the rows have no
//! peer. In Node it is a threadsafe function that a thread calls once for each record, from whose bytes
//! JavaScript creates the object (`crates/bench/peers/node/by_hand.c`). That takes a tenth of the time
//! of the usual way, which creates the object by Node-API.
//!
//! In C++ the peer is a queue that a thread fills and that takes one record at a time: `std::deque`, a
//! mutex and two condition variables. There `awaited` is a coroutine that awaits each batch.
//!
//! The rows of `record=event` are the same for events of 488 bytes. Each host reads the number of an
//! event. An object has all fields. The target for C++ is the number of instructions, compared with C:
//! `cpp_event` in `crates/bench/instructions.toml`.

use std::process::Command;

use serde::Deserialize;
use thalweg_lab::ticks;

use crate::child::HostProgram;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::placement::Placement;
use crate::problem::Problem;
use crate::processes::{self, PROCESSES, Process};
use crate::report::Row;
use crate::statistics::Samples;
use crate::workloads::Workload;
use crate::workloads::lab_hosts::{self, LabHost};
use crate::workloads::view_read::BATCH;

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "streaming_hosts",
    group: "streaming",
    what: "The whole way of a tick of 64 bytes or an event of 488 into Rust, C, C++, Python and Node: one by one, as objects, in place, by columns, by callback.",
    source: "bindings that cross once an event: PyO3 by hand, a threadsafe function of Node, a queue",
    peers: &[PYO3.name, THREADSAFE.name, OBJECTS, QUEUE.name],
    seconds: 160,
    run,
    ..Workload::USUAL
};

/// A program that does the same without Thalweg.
struct Peer {
    name: &'static str,
    command: fn() -> Result<Command, Problem>,
    version: fn() -> Result<String, Problem>,
}

const PYO3: Peer = Peer {
    name: "pyo3_by_hand",
    command: lab_hosts::peer_pyo3,
    version: || lab_hosts::peer_version("python", "pyo3"),
};

const THREADSAFE: Peer = Peer {
    name: "threadsafe_function",
    command: lab_hosts::peer_by_hand,
    version: || Ok("of this commit".to_owned()),
};

const QUEUE: Peer = Peer {
    name: "std_queue",
    command: lab_hosts::CPP.command,
    version: || Ok("of this commit".to_owned()),
};

/// The form `objects` as the peer of `columns`.
const OBJECTS: &str = "thalweg@objects";

/// The record type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Record {
    Tick,
    Event,
}

impl Record {
    /// The beginning of the line that makes a host read it, its plural, and its sum.
    fn of(self, count: u64) -> (&'static str, &'static str, u64) {
        match self {
            Self::Tick => ("stream", "ticks", ticks::checksum(count)),
            // The numbers 0 to count - 1.
            Self::Event => ("events", "events", count * (count - 1) / 2),
        }
    }
}

/// Samples of each side.
const SAMPLES: usize = 15;

/// A language and how it takes records.
struct Way {
    host: LabHost,
    record: Record,
    /// Records a sample: some 100 ms.
    count: u64,
    forms: &'static [&'static str],
    peer: Option<Peer>,
    /// The largest ratio of a form to a peer.
    bars: &'static [(&'static str, &'static str, f64)],
}

const WAYS: [Way; 10] = [
    Way {
        host: lab_hosts::RUST,
        record: Record::Tick,
        count: 1_000_000,
        peer: None,
        bars: &[],
        forms: &["one", "objects", "views", "callback"],
    },
    Way {
        host: lab_hosts::C,
        record: Record::Tick,
        count: 1_000_000,
        peer: None,
        bars: &[],
        forms: &["one", "views", "callback"],
    },
    Way {
        host: lab_hosts::CPP,
        record: Record::Tick,
        count: 1_000_000,
        peer: Some(QUEUE),
        bars: &[],
        forms: &["one", "views"],
    },
    Way {
        host: lab_hosts::CPP_COROUTINES,
        record: Record::Tick,
        count: 1_000_000,
        peer: None,
        bars: &[],
        forms: &["awaited"],
    },
    Way {
        host: lab_hosts::C,
        record: Record::Event,
        count: 500_000,
        peer: None,
        bars: &[],
        forms: &["one", "views"],
    },
    Way {
        host: lab_hosts::CPP,
        record: Record::Event,
        count: 500_000,
        peer: Some(QUEUE),
        bars: &[],
        forms: &["one", "views"],
    },
    Way {
        host: lab_hosts::CPP_COROUTINES,
        record: Record::Event,
        count: 500_000,
        peer: None,
        bars: &[],
        forms: &["awaited"],
    },
    Way {
        host: lab_hosts::PYTHON,
        record: Record::Tick,
        count: 100_000,
        peer: Some(PYO3),
        bars: &[],
        forms: &["one", "objects", "views", "columns"],
    },
    Way {
        host: lab_hosts::NODE,
        record: Record::Tick,
        count: 200_000,
        peer: Some(THREADSAFE),
        bars: &[("objects", THREADSAFE.name, 0.7), ("columns", OBJECTS, 0.4)],
        forms: &["one", "objects", "columns"],
    },
    Way {
        host: lab_hosts::NODE,
        record: Record::Event,
        count: 50_000,
        peer: Some(THREADSAFE),
        bars: &[
            ("objects", THREADSAFE.name, 0.3),
            ("columns", THREADSAFE.name, 0.3),
        ],
        forms: &["objects", "columns"],
    },
];

impl Way {
    /// The largest ratio of `form` to the peer `against`.
    fn bar(&self, form: &str, against: Option<&str>) -> Option<f64> {
        let is_it = |bar: &&(&str, &str, f64)| bar.0 == form && Some(bar.1) == against;
        self.bars.iter().find(is_it).map(|bar| bar.2)
    }
}

#[derive(Deserialize)]
struct Read {
    ns: u64,
    records: u64,
    checksum: u64,
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let mut rows = Vec::new();
    for way in &WAYS {
        if let Some(row) = way.host.missing(&WORKLOAD) {
            rows.push(row);
            continue;
        }
        let peer = way.peer.as_ref().filter(|peer| (peer.command)().is_ok());
        if let Some(peer) = peer {
            lab.peers.insert(peer.name.to_owned(), (peer.version)()?);
        }
        rows.extend(measure(lab, way, peer)?);
    }
    Ok(rows)
}

/// The programs of one process's samples: ours reads in each form, the peer in one.
struct Programs<'a> {
    way: &'a Way,
    count: u64,
    ours: HostProgram,
    peer: Option<HostProgram>,
}

impl Process for Programs<'_> {
    type Sample = f64;

    fn take(&mut self, side: usize) -> Result<f64, Problem> {
        let count = self.count;
        let (line, plural, sum) = self.way.record.of(count);
        let (name, read): (_, Read) = match (self.way.forms.get(side), &mut self.peer) {
            (None, Some(peer)) => ("the peer", peer.ask(&format!("{plural} {count}"))?),
            (form, _) => {
                let form = form.copied().unwrap_or_default();
                (form, self.ours.ask(&format!("{line}-{form} {count}"))?)
            }
        };
        if (read.records, read.checksum) == (count, sum) {
            return Ok(read.ns as f64 / count as f64);
        }
        Err(Problem::Check(format!(
            "{} {name}: {} {plural} with sum {}, which should be {count} with {sum}",
            self.way.host.language, read.records, read.checksum
        )))
    }

    fn finish(self) -> Result<(), Problem> {
        self.ours.finish()?;
        self.peer.map_or(Ok(()), HostProgram::finish)
    }
}

fn measure(lab: &Lab, way: &Way, peer: Option<&Peer>) -> Result<Vec<Row>, Problem> {
    let Way {
        host, count, forms, ..
    } = way;
    let count = if lab.quick() { count / 10 } else { *count };
    let plan = lab.plan(Some(SAMPLES));
    let start = |command| HostProgram::start(host.language, command, Placement::Free);
    let sides = forms.len() + usize::from(peer.is_some());
    let (_, plural, _) = way.record.of(count);
    let title = format!("streaming_hosts {} {plural}", host.language);
    let mut taken = processes::measure(lab, &title, sides, plan, PROCESSES, || {
        Ok(Programs {
            way,
            count,
            ours: start((host.command)()?)?,
            peer: match peer {
                Some(peer) => Some(start((peer.command)()?)?),
                None => None,
            },
        })
    })?;

    let theirs = peer.and_then(|peer| Some((peer.name, taken.pop()?)));
    let objects = forms.iter().position(|form| *form == "objects");
    let objects = objects.map(|place| (OBJECTS, taken[place].clone()));
    let mut rows = Vec::new();
    for (form, ours) in forms.iter().zip(taken) {
        let row = |peer: Option<(&'static str, Samples)>| {
            let (count, batch) = (count.to_string(), BATCH.to_string());
            let mut params = vec![
                ("language", host.language),
                ("mode", *form),
                (plural, &*count),
                ("batch", &*batch),
                ("capacity", "8192"),
            ];
            if way.record == Record::Event {
                params.push(("record", "event"));
            }
            let against = peer.as_ref().map(|(name, _)| *name);
            let mut row = Row::new(
                (WORKLOAD.name, WORKLOAD.group),
                &params,
                "ns",
                ("thalweg", ours.clone()),
                peer,
            )
            .checked(format!(
                "every sample read each of the {plural} once, with the known sum of fields"
            ));
            row.metrics
                .insert("per_s".to_owned(), 1e9 / row.subject_median);
            match way.bar(form, against) {
                Some(bar) => row.held_to(&Target::Ratio(bar), lab.refusal()),
                None => row,
            }
        };
        rows.push(row(theirs.clone()));
        if way.bar(form, Some(OBJECTS)).is_some() {
            rows.push(row(objects.clone()));
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_has_its_row() {
        for way in &WAYS {
            for (form, against, _) in way.bars {
                let peer = way.peer.as_ref().map(|peer| peer.name);
                assert!(way.forms.contains(form), "{form}");
                assert!(peer == Some(against) || *against == OBJECTS, "{against}");
            }
        }
        let bars = WAYS.iter().map(|way| way.bars.len()).sum::<usize>();
        assert_eq!(bars, 4);
    }
}
