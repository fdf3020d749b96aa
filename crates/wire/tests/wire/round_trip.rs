//! Round trips: reading returns the written value, complete or in place, in growing and fixed
//! buffers.

use crate::sample::{Match, MatchView, Rights, Step};
use proptest::prelude::*;
use thalweg_wire::{Bytes, Decode, Encode, Encoder, Handle, ListView, NoRoom, message};

thalweg_wire::record! {
    /// Padding is after the first field and at the end.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Dense / DenseView<'a> {
        pub flag: bool => "flag" @ 0;
        pub line: u64 => "line" @ 8;
        pub text: String as &'a str => "text" @ 16;
        pub bytes: Vec<u8> as ListView<'a, u8> => "bytes" @ 24;
        pub pair: [u16; 2] => "pair" @ 32;
    }
    size 40, align 8, hash 0x596d_e0e9_467a_9599
}

fn dense() -> impl Strategy<Value = Dense> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..9);
    (
        any::<bool>(),
        any::<u64>(),
        texts(),
        bytes,
        any::<[u16; 2]>(),
    )
        .prop_map(|(flag, line, text, bytes, pair)| Dense {
            flag,
            line,
            text,
            bytes,
            pair,
        })
}

type Nested = (
    Vec<Match>,
    Option<Result<Vec<Step>, String>>,
    (Rights, char),
    Vec<Vec<(u8, i64)>>,
    Vec<bool>,
    ([Step; 2], [Vec<u16>; 2], [[u8; 3]; 2]),
);

fn texts() -> impl Strategy<Value = String> {
    prop_oneof!["", "[a-z]{1,12}", "\\PC{0,8}"]
}

fn matches() -> impl Strategy<Value = Match> {
    let bytes = || proptest::option::of(proptest::collection::vec(any::<u8>(), 0..9));
    (
        texts(),
        any::<u64>(),
        any::<u64>(),
        texts(),
        bytes(),
        bytes(),
        any::<bool>(),
    )
        .prop_map(
            |(path, line, column, text, path_bytes, text_bytes, cut)| Match {
                path,
                line,
                column,
                text,
                path_bytes,
                text_bytes,
                cut,
            },
        )
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        proptest::collection::vec(texts(), 0..4).prop_map(Step::Jump),
        any::<f64>().prop_map(Step::Wait),
        Just(Step::Stop),
    ]
}

fn nested() -> impl Strategy<Value = Nested> {
    use proptest::collection::vec;
    let result = prop_oneof![vec(steps(), 0..4).prop_map(Ok), texts().prop_map(Err)];
    (
        vec(matches(), 0..4),
        proptest::option::of(result),
        (
            (0u8..8).prop_map(|bits| Rights::from_bits(bits).expect("three flags")),
            any::<char>(),
        ),
        vec(vec(any::<(u8, i64)>(), 0..4), 0..4),
        vec(any::<bool>(), 0..9),
        (
            [steps(), steps()],
            [vec(any::<u16>(), 0..4), vec(any::<u16>(), 0..4)],
            any::<[[u8; 3]; 2]>(),
        ),
    )
}

/// Fewer cases under Miri, where each takes a second. Failures are not persisted in files.
fn config() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 512 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nested_value_is_read_back_from_a_message(value in nested()) {
        let bytes = message::encode(&value, 7, Vec::new()).unwrap();
        prop_assert_eq!(message::open(&bytes, 7).unwrap().owned::<Nested>().unwrap(), value);
    }

    #[test]
    fn view_written_again_gives_the_same_bytes(value in nested()) {
        let bytes = message::encode(&value, 7, Vec::new()).unwrap();
        let view = message::open(&bytes, 7).unwrap().view::<Nested>().unwrap();
        prop_assert_eq!(&message::encode(&view, 7, Vec::new()).unwrap(), &bytes);
        prop_assert_eq!(view, value.as_view());
    }

    #[test]
    fn corrupted_message_is_an_error_or_readable(
        value in nested(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        let mut bytes = message::encode(&value, 7, Vec::new()).unwrap();
        for (index, byte) in damage {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
            let size = (bytes.len() as u32).to_le_bytes();
            if let Some(header) = bytes.get_mut(..4) {
                header.copy_from_slice(&size);
            }
        }
        if let Ok(view) = message::open(&bytes, 7).and_then(|message| message.view::<Nested>()) {
            // Formatting visits every element and decodes every string.
            let shown = format!("{view:?}");
            prop_assert!(shown.len() > 1);
            prop_assert!(message::encode(&view, 7, Vec::new()).is_ok());
        }
    }

    #[test]
    fn record_measures_its_size(nested in nested(), matched in matches(), start in 1..=64u32) {
        fn taken<T: Encode + Decode>(value: &T, start: u32) -> u32 {
            let (mut slot, mut tails) = (vec![0; T::SIZE as usize], vec![0; 1 << 16]);
            let mut encoder = Encoder::fixed(&mut slot, 4096, &mut tails, 8192 + start);
            value.encode(&mut encoder, 4096);
            encoder.finish_record().unwrap()
        }
        prop_assert_eq!(Encoder::measure(&nested, 8192 + start), Ok(taken(&nested, start)));
        prop_assert_eq!(Encoder::measure(&matched, 8192 + start), Ok(taken(&matched, start)));
    }

    #[test]
    fn dense_record_overwrites_every_byte_of_its_slot(dense in dense(), dirt in any::<u8>()) {
        const { assert!(Dense::IS_DENSE && !Match::IS_DENSE, "a match has options") };
        let written = |dirt| {
            let (mut slot, mut tails) = ([dirt; Dense::SIZE as usize], [0; 64]);
            let mut encoder = Encoder::record::<Dense>(&mut slot, 64, &mut tails, 128);
            dense.encode(&mut encoder, 64);
            encoder.finish_record().unwrap();
            slot
        };
        prop_assert_eq!(written(dirt), written(0));

        let mut slot = [dirt; Dense::SIZE as usize];
        let mut encoder = Encoder::record::<Dense>(&mut slot, 64, &mut [], 128);
        encoder.u64(64 + 8, 1);
        prop_assert_eq!(encoder.finish_record(), Err(NoRoom { needed: None }));
    }

    #[test]
    fn record_in_a_segment_fits_or_reports_its_size(value in matches(), room in 0usize..64) {
        let (mut slot, mut tails) = ([0xaa_u8; 64], [0xaa_u8; 64]);
        let mut encoder = Encoder::fixed(&mut slot, 128, &mut tails[..room], 4096);
        value.encode(&mut encoder, 128);
        match encoder.finish_record() {
            Ok(used) => {
                prop_assert!(used as usize <= room);
                prop_assert!(tails[used as usize..].iter().all(|byte| *byte == 0xaa));
                prop_assert_eq!(Match::owned(Match::view(Bytes::batch(&slot, 128, &tails, 4096), 128)), value);
            }
            Err(NoRoom { needed }) => {
                let needed = needed.unwrap() as usize;
                prop_assert!(needed > room);
                prop_assert!(tails[room..].iter().all(|byte| *byte == 0xaa));
                let mut tails = vec![0; needed];
                let mut encoder = Encoder::fixed(&mut slot, 128, &mut tails, 4096);
                value.encode(&mut encoder, 128);
                prop_assert_eq!(encoder.finish_record(), Ok(needed as u32));
            }
        }
    }
}

#[test]
fn two_records_are_adjacent_in_a_batch() {
    let (mut slots, mut tails) = ([0u8; 128], [0u8; 256]);
    let mut used = 0;
    for (i, path) in ["a/b", "c"].into_iter().enumerate() {
        let at = 64 * i as u32;
        let record = MatchView {
            path,
            line: 1 + i as u64,
            column: 1,
            text: "let x = 1;",
            path_bytes: None,
            text_bytes: Some(ListView::from(&[0xff, 0])),
            cut: i == 1,
        };
        let mut encoder = Encoder::fixed(
            &mut slots[at as usize..][..64],
            at,
            &mut tails[used..],
            128 + used as u32,
        );
        record.encode(&mut encoder, at);
        used += encoder.finish_record().unwrap() as usize;
    }
    let bytes = Bytes::batch(&slots, 0, &tails[..used], 128);
    let second = Match::view(bytes, 64);
    assert_eq!(
        (second.path, second.line, second.text, second.cut),
        ("c", 2, "let x = 1;", true)
    );
    assert_eq!(second.text_bytes.unwrap().as_bytes(), [0xff, 0]);
    assert_eq!(Match::view(bytes, 0).path, "a/b");
}

#[test]
fn short_payload_clears_a_reused_slot() {
    let (mut slot, mut tails) = ([0xaa_u8; 16], [0u8; 0]);
    let mut encoder = Encoder::fixed(&mut slot, 0, &mut tails, 16);
    Step::Stop.encode(&mut encoder, 0);
    assert_eq!(encoder.finish_record(), Ok(0));
    assert_eq!(slot, [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn tail_is_aligned_and_its_gap_is_zero() {
    let (mut slot, mut tails) = ([0u8; 16], [0xaa_u8; 32]);
    let mut encoder = Encoder::fixed(&mut slot, 0, &mut tails, 16);
    ("abc", vec![u64::MAX]).encode(&mut encoder, 0);
    assert_eq!(encoder.finish_record(), Ok(16));
    assert_eq!(tails[..8], [b'a', b'b', b'c', 0, 0, 0, 0, 0]);
    assert_eq!(slot[8..16], [24, 0, 0, 0, 1, 0, 0, 0]);
}

#[test]
fn fixed_length_list_is_stored_in_place() {
    let value = (7u8, [1u32, 2], ["a".to_owned(), String::new()]);
    assert_eq!(
        <(u8, [u32; 2], [String; 2])>::SHAPE.to_string(),
        "tuple<u8,list<u32,2>,list<string,2>>"
    );
    assert_eq!((<[u16; 5]>::SIZE, <[u16; 5]>::ALIGN), (10, 2));
    let bytes = message::encode(&value, 7, Vec::new()).unwrap();
    let root = [7, 1, 2, 44, 1, 0, 0];
    let root: Vec<u8> = root
        .iter()
        .flat_map(|word: &u32| word.to_le_bytes())
        .collect();
    assert_eq!(bytes[16..], [&root[..], b"a"].concat());
}

#[test]
fn message_bytes_match_the_documentation() {
    let bytes = message::encode(
        &("hi", Handle(0x0102), 5u16),
        0xffff_ffff_0000_0009,
        Vec::new(),
    )
    .unwrap();
    #[rustfmt::skip]
    let expected = [
        42, 0, 0, 0,  9, 0, 0, 0,  1, 0, 0, 0,  24, 0, 0, 0, // size, layout, handles, root
        2, 1, 0, 0, 0, 0, 0, 0,                             // the handle
        40, 0, 0, 0, 2, 0, 0, 0,  0, 0, 0, 0,  5, 0, 0, 0,   // string, place of the handle, u16, padding
        b'h', b'i',
    ];
    assert_eq!(bytes, expected);
    let message = message::open(&bytes, 9).unwrap();
    assert_eq!(message.handles().collect::<Vec<_>>(), [Handle(0x0102)]);
    assert_eq!(
        message.view::<(String, Handle, u16)>(),
        Ok(("hi", Handle(0x0102), 5))
    );
}

#[test]
fn floats_keep_their_bits() {
    let value = vec![f64::from_bits(0x7ff0_0000_0000_0001), -0.0, f64::INFINITY];
    let bytes = message::encode(&value, 1, Vec::new()).unwrap();
    let back = message::open(&bytes, 1)
        .unwrap()
        .owned::<Vec<f64>>()
        .unwrap();
    assert_eq!(
        back.iter().map(|f| f.to_bits()).collect::<Vec<_>>(),
        [0x7ff0_0000_0000_0001, 1 << 63, 0x7ff0 << 48]
    );
}

#[test]
fn unit_is_a_header() {
    let bytes = message::encode(&(), 3, Vec::new()).unwrap();
    assert_eq!(bytes.len(), 16);
    assert_eq!(message::open(&bytes, 3).unwrap().view::<()>(), Ok(()));
}

#[test]
fn buffer_is_reused() {
    let first = message::encode("a rather long text", 1, Vec::new()).unwrap();
    let place = first.as_ptr();
    let second = message::encode("short", 1, first).unwrap();
    assert_eq!(second.as_ptr(), place);
    assert_eq!(
        message::open(&second, 1).unwrap().view::<String>(),
        Ok("short")
    );
}

/// Long texts start at a line of their message, and are copied in one piece or in several,
/// depending on the positions of source and target within their pages.
#[test]
fn long_texts_are_copied_at_any_alignment() {
    const PAGE: usize = 4096;
    let whole: String = ('a'..='z').cycle().take(PAGE + 5_000).collect();
    let mut buffer: Vec<u8> = Vec::with_capacity(64 + 5_000);
    let mut tails = vec![0; PAGE + 5_000];
    // How far the target is behind the source, apart from multiples of a page.
    for behind in 0..80 {
        let target = buffer.as_ptr().addr() + 64;
        let from = target
            .wrapping_sub(behind)
            .wrapping_sub(whole.as_ptr().addr())
            % PAGE;
        let long = &whole[from..][..5_000];
        buffer = message::encode(long, 1, buffer).unwrap();
        assert_eq!(buffer.as_ptr().addr() + 64, target);
        assert_eq!(&buffer[64..], long.as_bytes());
        assert_eq!(
            message::open(&buffer, 1).unwrap().view::<String>(),
            Ok(long)
        );

        let place = long.as_ptr().addr() + behind;
        let at = place.wrapping_sub(tails.as_ptr().addr()) % PAGE;
        let mut slot = [0; 8];
        let mut encoder = Encoder::fixed(&mut slot, 0, &mut tails[at..][..5_000], 8);
        encoder.bytes(0, long.as_bytes());
        assert_eq!(encoder.finish_record(), Ok(5_000));
        assert_eq!(&tails[at..][..5_000], long.as_bytes());
    }
    // The gap between the texts is zero.
    let two = (
        whole[..3].to_owned(),
        whole[..5_000].to_owned(),
        whole[..5_000].to_owned(),
    );
    let bytes = message::encode(&two, 1, Vec::new()).unwrap();
    assert_eq!(
        (&bytes[40..43], &bytes[43..64]),
        (&b"abc"[..], &[0; 21][..])
    );
    assert_eq!(&bytes[5_120..], two.2.as_bytes());
    assert_eq!(
        message::open(&bytes, 1)
            .unwrap()
            .owned::<(String, String, String)>(),
        Ok(two)
    );
}

#[test]
#[cfg_attr(miri, ignore = "65,536 elements take Miri a minute")]
fn list_of_size_zero_elements_that_is_too_long_cannot_be_written() {
    let refused = message::encode(&vec![(); 65_537], 1, Vec::new());
    assert_eq!(refused, Err(NoRoom { needed: None }));
    assert_eq!(
        Encoder::measure(&vec![(); 65_537], 8),
        Err(NoRoom { needed: None })
    );
    let bytes = message::encode(&vec![(); 65_536], 1, Vec::new()).unwrap();
    assert_eq!(
        message::open(&bytes, 1)
            .unwrap()
            .view::<Vec<()>>()
            .unwrap()
            .len(),
        65_536
    );
}

#[test]
fn list_iterates_in_both_directions() {
    let bytes = message::encode(&vec!["a", "b", "c"], 1, Vec::new()).unwrap();
    let list = message::open(&bytes, 1)
        .unwrap()
        .view::<Vec<String>>()
        .unwrap();
    assert_eq!(list.iter().rev().collect::<Vec<_>>(), ["c", "b", "a"]);
    let mut ends = list.iter();
    assert_eq!(
        (ends.next(), ends.next_back(), ends.next(), ends.next_back()),
        (Some("a"), Some("c"), Some("b"), None)
    );
}

#[test]
fn sizes_follow_the_canonical_layout() {
    assert_eq!(
        (
            <Option<u8>>::SIZE,
            <Option<u64>>::SIZE,
            <Option<u64>>::ALIGN
        ),
        (2, 16, 8)
    );
    assert_eq!(
        (
            <Result<u8, u32>>::SIZE,
            <Result<(), ()>>::SIZE,
            <Result<u64, u8>>::SIZE
        ),
        (8, 1, 16)
    );
    assert_eq!(
        (<(u8, u32, u8)>::SIZE, <(u8, u64)>::ALIGN, <(u8,)>::SIZE),
        (12, 8, 1)
    );
}

#[test]
fn shapes_match_the_documentation() {
    assert_eq!(
        <(Vec<Option<char>>, Result<(), i8>)>::SHAPE.to_string(),
        "tuple<list<option<char>>,result<_,s8>>"
    );
    assert_eq!(<Vec<Vec<Option<u8>>>>::DEPTH, 3);
    assert_eq!(
        Match::SHAPE.to_string(),
        "record{path:string,line:u64,column:u64,text:string,path-bytes:option<list<u8>>,\
         text-bytes:option<list<u8>>,cut:bool}"
    );
}

thalweg_wire::record! {
    /// Two runs of numbers with padding, and a flag between them.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Runs {
        pub small: u8 => "small" @ 0,
        pub signed: i32 => "signed" @ 4,
        pub wide: u64 => "wide" @ 8;
        pub flag: bool => "flag" @ 16;
        pub half: u16 => "half" @ 18,
        pub real: f32 => "real" @ 20;
    }
    size 24, align 8, hash 0x9b67_452c_fd0f_8ae8
}

#[test]
fn record_with_runs_of_numbers_is_encoded_like_a_tuple() {
    let runs = Runs {
        small: 1,
        signed: -2,
        wide: 3 << 40,
        flag: true,
        half: 4,
        real: -0.5,
    };
    let tuple = (1u8, -2i32, 3u64 << 40, true, 4u16, -0.5f32);
    let bytes = message::encode(&runs, 1, Vec::new()).unwrap();
    assert_eq!(bytes, message::encode(&tuple, 1, Vec::new()).unwrap());
    assert_eq!(message::open(&bytes, 1).unwrap().view::<Runs>(), Ok(runs));
}

thalweg_wire::record! {
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Loan {
        pub note: u32 => "note" @ 0;
        pub lent: Handle => "lent": "borrow<book>" @ 4;
        pub other: Option<Handle> => "other": "option<borrow<book>>" @ 8;
    }
    size 16, align 4, hash 0xe1ce_fa34_bdf3_5f5a
}

#[test]
fn record_with_handles_names_their_resources_and_counts_them() {
    let loan = Loan {
        note: 7,
        lent: Handle(11),
        other: Some(Handle(12)),
    };
    const { assert!(Loan::HAS_HANDLES) };
    assert_eq!(
        Loan::SHAPE.to_string(),
        "record{note:u32,lent:borrow<book>,other:option<borrow<book>>}"
    );
    let bytes = message::encode(&loan, 1, Vec::new()).unwrap();
    let message = message::open(&bytes, 1).unwrap();
    assert!(message.handles().eq([Handle(11), Handle(12)]));
    assert_eq!(message.view::<Loan>(), Ok(loan));
}
