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

use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::processes::{self, PROCESSES};
use crate::report::{Metrics, Row};
use crate::workloads::Workload;

use ours::{Cbor, Flat, Ours};
use subject::{BYTES as BYTES_METRIC, DECODE, ENCODE, FREE, Subject, VIEW, in_place, subject};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "codec",
    group: "boundary",
    what: "Writing, copying out, dropping and reading a value in place: flat messages and CBOR against other codecs.",
    source: "nim-ffi's benchmark of codecs, with its four types",
    peers: &PEERS,
    seconds: 60,
    run,
    cells: Some(open),
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

/// The values that are no blobs.
const VALUES: [&str; 3] = ["EchoRequest", "EchoResponse", "ComplexRequest"];

/// Blobs, in bytes.
const BLOBS: [usize; 5] = [100, 1 << 10, 10 << 10, 64 << 10, 150 << 10];

/// Measured only on request.
const LARGE: usize = 1 << 20;

/// The comparison of a row: our codec, the operation, a peer, and the peer's operation.
type Pair = (&'static str, &'static str, &'static str, &'static str);

/// Every pair that has a row.
fn pairs() -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    for operation in [ENCODE, DECODE, FREE] {
        let mut pair = |ours, peer| pairs.push((ours, operation, peer, operation));
        PEERS.iter().for_each(|peer| pair("flat", peer));
        ["ciborium", "minicbor", "c_struct"]
            .iter()
            .for_each(|peer| pair("cbor", peer));
        pair("flat", "cbor");
    }
    // A codec that cannot read in place copies out before it reads.
    pairs.push(("flat", VIEW, "minicbor", DECODE));
    pairs.extend(["minicbor", "rkyv", "flatbuffers"].map(|peer| ("flat", VIEW, peer, VIEW)));
    pairs
}

/// The targets.
fn target(value: &str, pair: Pair) -> Option<Target> {
    Some(Target::Ratio(match (value, pair) {
        ("EchoRequest", ("flat", ENCODE, "c_struct", _)) => 1.5,
        ("EchoRequest", ("flat", VIEW, "minicbor", DECODE)) => 0.5,
        ("BytesPayload 1 MiB", ("flat", ENCODE, "c_struct", _)) => 1.1,
        ("BytesPayload 1 MiB", ("cbor", ENCODE, "c_struct", _)) => 1.2,
        (_, ("cbor", ENCODE | DECODE, "minicbor", _)) => 1.1,
        _ => return None,
    }))
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    for peer in PEERS {
        lab.peers.insert(peer.to_owned(), versions::of(peer));
    }
    let large = lab.include_1mib().then_some(LARGE);
    let blobs = BLOBS.into_iter().chain(large).map(blob_name);
    let mut rows = Vec::new();
    for value in VALUES.map(str::to_owned).into_iter().chain(blobs) {
        rows.extend(measure(lab, &value)?);
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

/// Sets up the codecs of a cell, whose only parameter is the name of the value.
fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let total = if cell.quick { BYTES / 16 } else { BYTES };
    let value = cell.text("value")?;
    let blob = BLOBS
        .into_iter()
        .chain([LARGE])
        .find(|size| blob_name(*size) == value);
    let subjects = match value {
        "EchoRequest" => subjects(&EchoRequest::example(), total)?,
        "EchoResponse" => subjects(&EchoResponse::example(), total)?,
        "ComplexRequest" => subjects(&ComplexRequest::example(), total)?,
        _ => match blob {
            Some(size) => subjects(&BytesPayload::of(size), total)?,
            None => return Err(Problem::Usage(format!("there is no value `{value}`"))),
        },
    };
    let wanted = |subject: &Subject| cell.subjects.iter().any(|name| name == subject.name);
    let sides = subjects.into_iter().filter(wanted);
    Ok(sides.map(|subject| Side::new(subject.sample)).collect())
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

fn measure(lab: &Lab, value: &str) -> Result<Vec<Row>, Problem> {
    let names: Vec<&str> = ["flat", "cbor"].into_iter().chain(PEERS).collect();
    let cell = Cell::new(WORKLOAD.name, &[("value", value)], &names);
    let taken = processes::sample(lab, &cell, lab.plan(Some(SAMPLES)), PROCESSES)?;
    let samples = |name: &str, metric: &str| {
        let place = names.iter().position(|known| *known == name);
        taken[place.expect("a pair is of these codecs")].map(|sample| sample.metrics[metric])
    };
    let mut rows = Vec::new();
    for pair in pairs() {
        let (ours, operation, peer, peer_operation) = pair;
        let mut params = vec![("value", value), ("op", operation)];
        if peer_operation != operation {
            params.push(("peer op", peer_operation));
        }
        let sides = [(ours, operation), (peer, peer_operation)];
        let [subject, theirs] = sides.map(|(name, operation)| (name, samples(name, operation)));
        let mut row = Row::new(
            (WORKLOAD.name, WORKLOAD.group),
            &params,
            "ns",
            subject,
            Some(theirs),
        )
        .checked("each codec gives the value back, field by field, before measuring")
        .checked("every sample: each was written in the known length; what is read in place has the known sum of all fields");
        for (prefix, (name, operation)) in ["", "peer_"].into_iter().zip(sides) {
            let bytes = samples(name, BYTES_METRIC)[0];
            let mut metrics = Metrics::default();
            metrics.count("bytes", bytes);
            if value.starts_with("BytesPayload") {
                let mib = bytes / f64::from(1 << 20);
                metrics.rate("mib_per_s", mib * 1e9, &samples(name, operation));
            }
            row.add_metrics(prefix, metrics);
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
            let times = (subject.sample)().unwrap().metrics;
            assert!(times[ENCODE] > 0.0 && times[DECODE] > 0.0, "{subject:?}");
            assert_eq!(
                times.contains_key(VIEW),
                ["flat", "minicbor", "rkyv", "flatbuffers"].contains(&subject.name)
            );
        }
    }

    #[test]
    fn every_bar_has_its_row() {
        let values = VALUES.map(str::to_owned);
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
