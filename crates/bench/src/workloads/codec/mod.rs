//! `codec`: the cost of writing, copying out, dropping and reading a value in place, in our two
//! codecs and in seven others.
//!
//! The values are those of nim-ffi's benchmark. Every codec writes into existing memory, so only
//! the rows that copy out include an allocator. `c_struct` is the lower bound: it copies a struct
//! and its tails and checks nothing.
//!
//! | module | contents |
//! | --- | --- |
//! | [`ours`] | `flat` and `cbor` by the generated types |
//! | [`mod@subject`] | measures one codec with one value, and checks that the value survives a round trip |

pub mod ours;
pub mod subject;

use thalweg_peers::codec::bincode_peer::Bincode;
use thalweg_peers::codec::c_struct::CStruct;
use thalweg_peers::codec::flatbuffers_peer::FlatBuffers;
use thalweg_peers::codec::minicbor_peer::{ByHand, Minicbor};
use thalweg_peers::codec::rkyv_peer::Rkyv;
use thalweg_peers::codec::serde_peers::{Ciborium, Postcard};
use thalweg_peers::codec::values::{BytesPayload, ComplexRequest, EchoRequest, EchoResponse};
use thalweg_peers::codec::{Codec, InPlace};
use thalweg_peers::versions;

use crate::interleave::{Side, interleave};
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::Workload;

use ours::{Cbor, Flat, Ours};
use subject::{Subject, Times, in_place, subject};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "codec",
    group: "boundary",
    what: "Writing, copying out, dropping and reading a value in place: flat messages and CBOR against other codecs.",
    source: "nim-ffi's benchmark of codecs, with its four types",
    peers: &PEERS,
    seconds: 60,
    run,
    ..Workload::USUAL
};

const PEERS: [&str; 7] = [
    "ciborium",
    "minicbor",
    "bincode",
    "postcard",
    "rkyv",
    "flatbuffers",
    "c_struct",
];

/// Samples of each side.
const SAMPLES: usize = 15;

/// Bytes per sample: a sample takes some ms.
const BYTES: usize = 16 << 20;

/// Blobs, in bytes.
const BLOBS: [usize; 5] = [100, 1 << 10, 10 << 10, 64 << 10, 150 << 10];

/// Measured only on request.
const LARGE: usize = 1 << 20;

/// The operation on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Encode,
    Decode,
    Free,
    View,
}

impl Operation {
    const ALL: [Self; 4] = [Self::Encode, Self::Decode, Self::Free, Self::View];

    fn name(self) -> &'static str {
        match self {
            Self::Encode => "encode",
            Self::Decode => "decode",
            Self::Free => "free",
            Self::View => "view",
        }
    }

    fn of(self, times: &Times) -> Option<f64> {
        match self {
            Self::Encode => Some(times.encode),
            Self::Decode => Some(times.decode),
            Self::Free => Some(times.free),
            Self::View => times.view,
        }
    }
}

/// The comparison of a row: our codec's operation, a peer, and the peer's operation.
#[derive(Clone, Copy, Debug)]
struct Pair {
    ours: &'static str,
    operation: Operation,
    peer: &'static str,
    peer_operation: Operation,
}

/// Every pair that has a row.
fn pairs() -> Vec<Pair> {
    let mut pairs = Vec::new();
    for operation in Operation::ALL {
        let mut pair = |ours, peer, peer_operation| {
            pairs.push(Pair {
                ours,
                operation,
                peer,
                peer_operation,
            });
        };
        match operation {
            // A codec that cannot read in place copies out before it reads.
            Operation::View => {
                pair("flat", "minicbor", Operation::Decode);
                for peer in ["minicbor", "rkyv", "flatbuffers"] {
                    pair("flat", peer, operation);
                }
            }
            _ => {
                for peer in PEERS {
                    pair("flat", peer, operation);
                }
                for peer in ["ciborium", "minicbor", "c_struct"] {
                    pair("cbor", peer, operation);
                }
                pair("flat", "cbor", operation);
            }
        }
    }
    pairs
}

/// The targets.
fn target(value: &str, pair: Pair) -> Option<Target> {
    match (value, pair.ours, pair.operation, pair.peer) {
        ("EchoRequest", "flat", Operation::Encode, "c_struct") => Some(Target::Ratio(1.5)),
        ("EchoRequest", "flat", Operation::View, "minicbor")
            if pair.peer_operation == Operation::Decode =>
        {
            Some(Target::Ratio(0.5))
        }
        ("BytesPayload 1 MiB", "flat", Operation::Encode, "c_struct") => Some(Target::Ratio(1.1)),
        ("BytesPayload 1 MiB", "cbor", Operation::Encode, "c_struct") => Some(Target::Ratio(1.2)),
        (_, "cbor", Operation::Encode | Operation::Decode, "minicbor") => Some(Target::Ratio(1.1)),
        _ => None,
    }
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    for peer in PEERS {
        lab.peers.insert(peer.to_owned(), versions::of(peer));
    }
    let total = if lab.quick() { BYTES / 16 } else { BYTES };
    let mut rows = Vec::new();
    rows.extend(measure(
        lab,
        "EchoRequest",
        subjects(&EchoRequest::example(), total)?,
    )?);
    rows.extend(measure(
        lab,
        "EchoResponse",
        subjects(&EchoResponse::example(), total)?,
    )?);
    rows.extend(measure(
        lab,
        "ComplexRequest",
        subjects(&ComplexRequest::example(), total)?,
    )?);
    let large = lab.include_1mib().then_some(LARGE);
    for size in BLOBS.into_iter().chain(large) {
        let blob = subjects(&BytesPayload::of(size), total)?;
        rows.extend(measure(lab, &blob_name(size), blob)?);
    }
    Ok(rows)
}

fn blob_name(size: usize) -> String {
    match size {
        LARGE => "BytesPayload 1 MiB".to_owned(),
        1024.. => format!("BytesPayload {} KiB", size >> 10),
        _ => format!("BytesPayload {size} B"),
    }
}

/// Every codec with `value`. Each has already returned the value once.
fn subjects<V>(value: &V, total: usize) -> Result<Vec<Subject>, Problem>
where
    V: Ours + ByHand,
    Ciborium: Codec<V>,
    Postcard: Codec<V>,
    Bincode: Codec<V>,
    Rkyv: InPlace<V>,
    FlatBuffers: InPlace<V>,
    CStruct: Codec<V>,
{
    Ok(vec![
        in_place::<V, Flat>(value, total)?,
        subject::<V, Cbor>(value, total)?,
        subject::<V, Ciborium>(value, total)?,
        in_place::<V, Minicbor>(value, total)?,
        subject::<V, Bincode>(value, total)?,
        subject::<V, Postcard>(value, total)?,
        in_place::<V, Rkyv>(value, total)?,
        in_place::<V, FlatBuffers>(value, total)?,
        subject::<V, CStruct>(value, total)?,
    ])
}

fn measure(lab: &Lab, value: &str, mut subjects: Vec<Subject>) -> Result<Vec<Row>, Problem> {
    let plan = lab.plan(Some(SAMPLES));
    lab.begin(
        &format!("codec {value}"),
        subjects.len() * (plan.warm_up + plan.rounds),
    );
    let mut sides: Vec<Side<'_, Times>> = subjects
        .iter_mut()
        .map(|subject| Side::new(&mut subject.sample))
        .collect();
    let taken = interleave(&mut sides, plan, || lab.step())?;
    drop(sides);

    let place = |name: &str| subjects.iter().position(|subject| subject.name == name);
    let samples = |name: &str, operation: Operation| -> Option<Vec<f64>> {
        taken[place(name)?]
            .iter()
            .map(|times| operation.of(times))
            .collect()
    };
    let mut rows = Vec::new();
    for pair in pairs() {
        let (Some(ours), Some(theirs)) = (
            samples(pair.ours, pair.operation),
            samples(pair.peer, pair.peer_operation),
        ) else {
            unreachable!("{pair:?} is of codecs that can do this");
        };
        let mut params = vec![("value", value), ("op", pair.operation.name())];
        if pair.peer_operation != pair.operation {
            params.push(("peer op", pair.peer_operation.name()));
        }
        let mut row = Row::new(
            (WORKLOAD.name, WORKLOAD.group),
            &params,
            "ns",
            (pair.ours, ours),
            Some((pair.peer, theirs)),
        )
        .checked("each codec gives the value back, field by field, before measuring")
        .checked("every sample: each was written in the known length; what is read in place has the known sum of all fields");
        for (prefix, name, median) in [
            ("", pair.ours, Some(row.subject_median)),
            ("peer_", pair.peer, row.peer_median),
        ] {
            let bytes = place(name).map_or(0, |place| subjects[place].bytes) as f64;
            row.metrics.insert(format!("{prefix}bytes"), bytes);
            if let Some(ns) = median.filter(|_| value.starts_with("BytesPayload")) {
                let rate = bytes / f64::from(1 << 20) / (ns / 1e9);
                row.metrics.insert(format!("{prefix}mib_per_s"), rate);
            }
        }
        rows.push(match target(value, pair) {
            Some(target) => row.held_to(&target, lab.refusal()),
            None => row,
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_codec_gives_every_value_back() {
        let names: Vec<&str> = subjects(&EchoRequest::example(), 0)
            .unwrap()
            .iter()
            .map(|subject| subject.name)
            .collect();
        assert_eq!(names[..2], ["flat", "cbor"]);
        assert_eq!(names[2..], PEERS);
        subjects(&EchoResponse::example(), 0).unwrap();
        subjects(&ComplexRequest::example(), 0).unwrap();
        for size in [0, 1, 100, LARGE] {
            subjects(&BytesPayload::of(size), 0).unwrap();
        }
        let bare = ComplexRequest {
            messages: Vec::new(),
            tags: Vec::new(),
            note: None,
            retries: None,
        };
        subjects(&bare, 0).unwrap();
    }

    #[test]
    fn what_is_written_by_hand_is_what_our_cbor_writes() {
        fn same<V: Ours + ByHand>(value: &V) {
            let mut ours = Vec::new();
            let mut by_hand = Vec::new();
            <Cbor as Codec<V>>::encode(&<Cbor as Codec<V>>::own(value), &mut ours);
            <Minicbor as Codec<V>>::encode(value, &mut by_hand);
            assert_eq!(ours, by_hand, "{value:?}");
        }
        same(&EchoRequest::example());
        same(&EchoResponse::example());
        same(&ComplexRequest::example());
        same(&BytesPayload::of(300));
    }

    #[test]
    fn a_sample_has_every_operation() {
        for mut subject in subjects(&ComplexRequest::example(), 0).unwrap() {
            let times = (subject.sample)().unwrap();
            assert!(times.encode > 0.0 && times.decode > 0.0, "{subject:?}");
            assert_eq!(
                times.view.is_some(),
                ["flat", "minicbor", "rkyv", "flatbuffers"].contains(&subject.name)
            );
        }
    }

    #[test]
    fn every_bar_has_its_row() {
        let values = ["EchoRequest", "EchoResponse", "ComplexRequest"].map(str::to_owned);
        let blobs = BLOBS.into_iter().chain([LARGE]).map(blob_name);
        let all = pairs();
        let bars = values
            .into_iter()
            .chain(blobs)
            .flat_map(|value| all.iter().filter_map(move |pair| target(&value, *pair)))
            .count();
        // Four separate targets, and two for each of nine values.
        assert_eq!(bars, 4 + 2 * 9);
    }
}
