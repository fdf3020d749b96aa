//! Claims of ThetaDataDx about its channels, of nim-ffi about its codecs, and of nimsync about its
//! collector.

use super::claim::{Claim, Finding, Verdict};
use super::evidence::{Evidence, Missing, Point};

/// All claims of this module.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "direct-6x",
        whose: "ThetaDataDx, its benchmark of channels",
        says: "A direct callback is 6 times as fast as the best channel.",
        made: "100,000 events of 488 bytes with empty tails, from one thread to another; the callback on one thread alone. Ten samples, each the mean of its events.",
        run: "streaming_channels",
        theirs: &[ONE],
        twin: &[MANY],
        rule: "Holds where the callback takes a sixth of the time of crossbeam's fastest channel, and of the faster of two rings that are written and read in place 256 at a time; \
               confounded where only the channels are so slow: then it is they who are, and not the crossing.",
        judge: direct,
    },
    Claim {
        id: "capacity-8192",
        whose: "ThetaDataDx, its benchmark of channels",
        says: "Of the bounded channels 8,192 places are 22 % under the standard library's channel, and 256 are slower than it.",
        made: "As above.",
        run: "streaming_channels",
        theirs: &[ONE],
        twin: &[],
        rule: "Holds where both are so, 8,192 places at 0.78 of std's time or less. There is no twin: the claim is of these rows alone.",
        judge: capacity,
    },
    Claim {
        id: "flat-small",
        whose: "nim-ffi, its benchmark of codecs",
        says: "Flat structs win against CBOR where they are small, and meet it on blobs.",
        made: "Structs of four types and blobs of 100 bytes to 150 KiB, encoded and decoded by a library in Nim; flat structs were copied and not checked.",
        run: "codec",
        theirs: &[SMALL, BLOB],
        twin: &[SMALL, BLOB],
        rule: "By theirs: a struct in C that is copied and not checked, against minicbor by hand. By the twin: our flat messages, which are checked when they are read, against our CBOR. Either is so where \
               encoding and decoding `EchoRequest` takes less time flat, and encoding 64 KiB takes 0.9 to 1.1 of it.",
        judge: flat,
    },
    Claim {
        id: "gc-2ms",
        whose: "nimsync, README",
        says: "A collector's pauses are shorter than 2 ms with 1 GB live.",
        made: "No program of theirs measures it.",
        run: "gc_pause",
        theirs: &[COLLECTOR_ON],
        twin: &[COLLECTOR_FULL],
        rule: "Of Python here, which has another collector: holds where the longest gap between two ticks of a millisecond is 2 ms beyond it at most, also where the program collects once a second; \
               confounded where it is so only because the collector never looked at what lives.",
        judge: pauses,
    },
];

const ONE: Point = Point::ours("streaming_channels", &[("batch", "1")]);
const MANY: Point = Point::ours("streaming_channels", &[("batch", "256")]);
const SMALL: Point = Point::ours("codec", &[("value", "EchoRequest")]).of("flat");
const BLOB: Point = Point::ours("codec", &[("value", "BytesPayload 64 KiB")]).of("flat");

const COLLECTOR_ON: Point = Point::ours("gc_pause", &[("collector", "on"), ("live_mib", "1024")]);
const COLLECTOR_FULL: Point =
    Point::ours("gc_pause", &[("collector", "full"), ("live_mib", "1024")]);

fn pauses(evidence: &Evidence<'_>) -> Result<Finding, Missing> {
    const QUOTED: f64 = 2.0;
    let on = evidence.metric(&COLLECTOR_ON, "longest_gap_ms")?;
    let full = evidence.metric(&COLLECTOR_FULL, "longest_gap_ms")?;
    let looked = evidence.metric(&COLLECTOR_ON, "full_collections")?;
    Ok(Finding {
        theirs: format!("the longest gap is {on:.1} ms, with {looked:.0} full collections"),
        twin: format!("{full:.1} ms where the program collects once a second"),
        verdict: Verdict::of(on <= QUOTED, full <= QUOTED),
    })
}

/// The median of `peer` in the rows at `point`.
fn peer(evidence: &Evidence<'_>, point: &Point, peer: &str) -> Result<f64, Missing> {
    let of_peer = evidence
        .rows(point)?
        .into_iter()
        .filter(|row| row.peer.as_deref() == Some(peer) && !row.params.contains_key("peer op"))
        .find_map(|row| row.peer_median);
    of_peer.ok_or_else(|| Missing(format!("{point} against {peer}")))
}

fn fastest(evidence: &Evidence<'_>, point: &Point, peers: &[&str]) -> Result<f64, Missing> {
    peers.iter().try_fold(f64::INFINITY, |fastest, name| {
        Ok(fastest.min(peer(evidence, point, name)?))
    })
}

fn direct(evidence: &Evidence<'_>) -> Result<Finding, Missing> {
    const QUOTED: f64 = 6.0;
    let callback = peer(evidence, &ONE, "direct_callback")?;
    let channels = [
        "crossbeam_bounded_256",
        "crossbeam_bounded_1024",
        "crossbeam_bounded_8192",
    ];
    let of_channels = fastest(evidence, &ONE, &channels)? / callback;
    let of_rings = fastest(evidence, &MANY, &["rtrb", "disruptor"])? / callback;
    Ok(Finding {
        theirs: format!("the fastest channel takes {of_channels:.1} times as long"),
        twin: format!("the faster ring, 256 events at a time, {of_rings:.1} times"),
        verdict: Verdict::of(of_channels >= QUOTED, of_rings >= QUOTED),
    })
}

fn capacity(evidence: &Evidence<'_>) -> Result<Finding, Missing> {
    const QUOTED: f64 = 0.78;
    let std = peer(evidence, &ONE, "std_mpsc_unbounded")?;
    let large = peer(evidence, &ONE, "crossbeam_bounded_8192")? / std;
    let small = peer(evidence, &ONE, "crossbeam_bounded_256")? / std;
    let so = large <= QUOTED && small > 1.0;
    Ok(Finding {
        theirs: format!("8,192 places take {large:.2} of std's time, 256 take {small:.2}"),
        twin: "none".to_owned(),
        verdict: Verdict::of(so, so),
    })
}

fn flat(evidence: &Evidence<'_>) -> Result<Finding, Missing> {
    // The row against c_struct contains the median of c_struct; the rows against minicbor and cbor
    // contain theirs. The median of flat is the subject's.
    let at = |point: &Point, op: &str, who: &str| -> Result<f64, Missing> {
        let rows = evidence.rows(point)?;
        let mut of_op = rows.iter().filter(|row| {
            row.params.get("op").is_some_and(|said| said == op)
                && !row.params.contains_key("peer op")
        });
        let found = if who == "flat" {
            of_op.next().map(|row| row.subject_median)
        } else {
            of_op
                .find(|row| row.peer.as_deref() == Some(who))
                .and_then(|row| row.peer_median)
        };
        found.ok_or_else(|| Missing(format!("{point} op={op} of {who}")))
    };
    let compare = |flat: &str, cbor: &str| -> Result<(String, bool), Missing> {
        let ratio = |point: &Point, op: &str| Ok(at(point, op, flat)? / at(point, op, cbor)?);
        let (encode, decode) = (ratio(&SMALL, "encode")?, ratio(&SMALL, "decode")?);
        let blob = ratio(&BLOB, "encode")?;
        let so = encode < 1.0 && decode < 1.0 && (0.9..=1.1).contains(&blob);
        let text = format!(
            "{flat} takes {encode:.2} and {decode:.2} of {cbor}'s time for a small record, {blob:.2} for 64 KiB"
        );
        Ok((text, so))
    };
    let (theirs, by_theirs) = compare("c_struct", "minicbor")?;
    let (twin, by_twin) = compare("flat", "cbor")?;
    Ok(Finding {
        theirs,
        twin,
        verdict: Verdict::of(by_theirs, by_twin),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;
    use crate::report::{Report, Row};

    fn against(
        workload: &str,
        params: &[(&str, &str)],
        subject: (&str, f64),
        peer: (&str, f64),
    ) -> Row {
        Row::new(
            (workload, "streaming"),
            params,
            "ns",
            (subject.0, vec![subject.1; 5]),
            Some((peer.0, vec![peer.1; 5])),
        )
    }

    fn judged(judge: super::super::claim::Judge, rows: Vec<Row>) -> Verdict {
        let report = Report {
            results: rows,
            ..sample()
        };
        judge(&Evidence::new(vec![&report])).unwrap().verdict
    }

    fn channels(direct: f64, best: f64, std: f64, ring: f64) -> Vec<Row> {
        let one = |peer, ns| {
            against(
                "streaming_channels",
                &[("batch", "1")],
                ("thalweg", 1.0),
                (peer, ns),
            )
        };
        let many = |peer, ns| {
            against(
                "streaming_channels",
                &[("batch", "256")],
                ("thalweg", 1.0),
                (peer, ns),
            )
        };
        vec![
            one("direct_callback", direct),
            one("std_mpsc_unbounded", std),
            one("crossbeam_bounded_256", 2.0 * best),
            one("crossbeam_bounded_1024", 1.5 * best),
            one("crossbeam_bounded_8192", best),
            many("rtrb", ring),
            many("disruptor", 2.0 * ring),
        ]
    }

    #[test]
    fn a_callback_is_held_against_channels_and_rings() {
        assert_eq!(
            judged(direct, channels(10.0, 60.0, 80.0, 61.0)),
            Verdict::Holds
        );
        assert_eq!(
            judged(direct, channels(10.0, 60.0, 80.0, 30.0)),
            Verdict::Confounded
        );
        assert_eq!(
            judged(direct, channels(10.0, 59.0, 80.0, 61.0)),
            Verdict::DoesNotHold
        );
    }

    #[test]
    fn the_large_channel_must_be_faster_and_the_small_one_slower() {
        assert_eq!(
            judged(capacity, channels(10.0, 60.0, 80.0, 1.0)),
            Verdict::Holds
        );
        // 60 of 70 is too much; 2 * 60 of 130 is less than std's.
        assert_eq!(
            judged(capacity, channels(10.0, 60.0, 70.0, 1.0)),
            Verdict::DoesNotHold
        );
        assert_eq!(
            judged(capacity, channels(10.0, 60.0, 130.0, 1.0)),
            Verdict::DoesNotHold
        );
    }

    #[test]
    fn a_collector_is_judged_with_and_without_being_asked() {
        let verdict = |on: f64, full: f64| {
            let row = |collector: &str, gap: f64| {
                let params = [("collector", collector), ("live_mib", "1024")];
                let samples = vec![gap; 5];
                let mut row = Row::new(
                    ("gc_pause", "streaming"),
                    &params,
                    "ms",
                    ("thalweg", samples),
                    None,
                );
                row.metrics.insert("longest_gap_ms".to_owned(), gap);
                row.metrics.insert("full_collections".to_owned(), 0.0);
                row
            };
            judged(pauses, vec![row("on", on), row("full", full)])
        };
        assert_eq!(verdict(1.5, 2.0), Verdict::Holds);
        assert_eq!(verdict(1.5, 400.0), Verdict::Confounded);
        assert_eq!(verdict(2.5, 1.0), Verdict::DoesNotHold);
    }

    /// `c_struct`, `minicbor`, `flat`, `cbor` for a small record, and the same for a blob.
    fn codecs(small: [f64; 4], blob: [f64; 4]) -> Vec<Row> {
        let mut rows = Vec::new();
        for (value, [c_struct, minicbor, flat, cbor]) in
            [("EchoRequest", small), ("BytesPayload 64 KiB", blob)]
        {
            for op in ["encode", "decode"] {
                let params = [("value", value), ("op", op)];
                for (peer, ns) in [
                    ("c_struct", c_struct),
                    ("minicbor", minicbor),
                    ("cbor", cbor),
                ] {
                    rows.push(against("codec", &params, ("flat", flat), (peer, ns)));
                }
            }
        }
        rows
    }

    #[test]
    fn flat_wins_where_it_is_small_and_meets_on_blobs() {
        let level = [100.0; 4];
        let small = [10.0, 40.0, 20.0, 50.0];
        assert_eq!(judged(flat, codecs(small, level)), Verdict::Holds);
        assert_eq!(
            judged(flat, codecs([10.0, 40.0, 60.0, 50.0], level)),
            Verdict::Confounded
        );
        assert_eq!(
            judged(flat, codecs(small, [80.0, 100.0, 100.0, 100.0])),
            Verdict::DoesNotHold
        );
    }
}
