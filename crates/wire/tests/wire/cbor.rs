//! CBOR of generated types: values survive a round trip, have exactly one encoding, and invalid
//! input returns the broken rule.

use crate::sample::nested::{Nested, nested};
use crate::sample::{Match, Rights, Step};
use proptest::prelude::*;
use std::fmt::Debug;
use thalweg_wire::cbor::{self, Cbor, Refused, Rule};

fn refused<T: Cbor + Debug + PartialEq>(bytes: &[u8]) -> Rule {
    cbor::decode::<T>(bytes).expect_err("it is no value").rule
}

fn found() -> Match {
    Match {
        path: "a.rs".to_owned(),
        line: 7,
        column: 1,
        text: "fn".to_owned(),
        path_bytes: None,
        text_bytes: Some(vec![0xff]),
        cut: true,
    }
}

const FOUND: &[u8] =
    b"\xa7\x63cut\xf5\x64line\x07\x64path\x64a.rs\x64text\x62fn\x66column\x01\x6apath-bytes\xf6\x6atext-bytes\x41\xff";

#[test]
fn record_is_a_map_with_shorter_keys_first() {
    assert_eq!(cbor::encode(&found(), Vec::new()), FOUND);
    assert_eq!(cbor::decode(FOUND), Ok(found()));
}

#[test]
fn record_is_read_in_any_order_and_without_options() {
    let bytes = b"\xbf\x64text\x62fn\x66column\x01\x64path\x64a.rs\x6atext-bytes\x81\x18\xff\x63cut\xf5\x64line\x18\x07\xff";
    assert_eq!(cbor::decode(bytes), Ok(found()));
}

#[test]
fn record_with_unknown_fields_is_an_error() {
    let without = |key: &[u8], size: usize| {
        let at = FOUND
            .windows(key.len())
            .position(|part| part == key)
            .unwrap();
        let mut bytes = FOUND.to_vec();
        bytes.drain(at..at + key.len() + size);
        bytes[0] -= 1;
        bytes
    };
    assert_eq!(refused::<Match>(&without(b"\x64line", 1)), Rule::Missing);
    let mut twice = FOUND.to_vec();
    twice[0] += 1;
    twice.extend_from_slice(b"\x63cut\xf5");
    assert_eq!(refused::<Match>(&twice), Rule::Twice);
    twice.truncate(FOUND.len());
    twice.extend_from_slice(b"\x63cup\xf5");
    assert_eq!(refused::<Match>(&twice), Rule::Unknown);
    assert_eq!(refused::<Match>(&[FOUND, b"\0"].concat()), Rule::Trailing);
}

#[test]
fn variants_flags_and_results_are_encoded_by_name() {
    let step = Step::Jump(vec!["b".to_owned()]);
    assert_eq!(cbor::encode(&step, Vec::new()), b"\xa1\x64jump\x81\x61b");
    assert_eq!(cbor::encode(&Step::Stop, Vec::new()), b"\x64stop");
    assert_eq!(
        cbor::encode(&(Rights::READ | Rights::RUN), Vec::new()),
        b"\x82\x64read\x63run"
    );
    assert_eq!(
        cbor::encode(&Err::<u8, _>(()), Vec::new()),
        b"\xa1\x65error\xf6"
    );
    assert_eq!(refused::<Step>(b"\x64jump"), Rule::Unknown);
    assert_eq!(refused::<Step>(b"\xa1\x64stop\xf6"), Rule::Unknown);
    assert_eq!(refused::<Step>(b"\xa0"), Rule::Count);
    assert_eq!(
        refused::<Step>(b"\xa2\x64wait\x01\x64wait\x01"),
        Rule::Count
    );
    assert_eq!(refused::<Rights>(b"\x82\x64read\x64read"), Rule::Twice);
    assert_eq!(refused::<Rights>(b"\x81\x64ride"), Rule::Unknown);
    assert_eq!(refused::<Result<u8, ()>>(b"\xa1\x62no\xf6"), Rule::Unknown);
}

#[test]
fn option_of_a_nullable_type_is_an_array() {
    for (value, bytes) in [
        (None, &b"\x80"[..]),
        (Some(None), b"\x81\xf6"),
        (Some(Some(7)), b"\x81\x07"),
    ] {
        assert_eq!(
            cbor::encode::<Option<Option<u8>>>(&value, Vec::new()),
            bytes
        );
        assert_eq!(cbor::decode::<Option<Option<u8>>>(bytes), Ok(value));
    }
    assert_eq!(
        cbor::encode(&Some(Some(Some(7u8))), Vec::new()),
        b"\x81\x07"
    );
    assert_eq!(cbor::encode(&Some(None::<Option<u8>>), Vec::new()), b"\x80");
    assert_eq!(
        cbor::encode(&None::<Option<Option<u8>>>, Vec::new()),
        b"\xf6"
    );
    assert_eq!(refused::<Option<Option<u8>>>(b"\x82\x07\x07"), Rule::Count);
}

#[test]
fn lists_of_numbers_are_byte_strings() {
    let numbers = vec![1u16, 0x203];
    assert_eq!(
        cbor::encode(&numbers, Vec::new()),
        b"\xd8\x45\x44\x01\0\x03\x02"
    );
    for bytes in [
        &b"\xd8\x45\x44\x01\0\x03\x02"[..],
        b"\xd8\x41\x44\0\x01\x02\x03",
        b"\x82\x01\x19\x02\x03",
    ] {
        assert_eq!(cbor::decode(bytes).as_ref(), Ok(&numbers));
    }
    let bytes = vec![1u8, 2];
    for form in [
        &b"\x42\x01\x02"[..],
        b"\xd8\x40\x42\x01\x02",
        b"\x82\x01\x02",
        b"\x5f\x41\x01\x41\x02\xff",
    ] {
        assert_eq!(cbor::decode(form).as_ref(), Ok(&bytes));
    }
    // Three bytes are not a list of two-byte numbers; a tag of another type; untagged bytes are
    // only a list of `u8`.
    assert_eq!(refused::<Vec<u16>>(b"\xd8\x45\x43\x01\0\x03"), Rule::Count);
    assert_eq!(
        refused::<Vec<u16>>(b"\xd8\x46\x44\x01\0\x03\x02"),
        Rule::Tag
    );
    assert_eq!(refused::<Vec<u16>>(b"\x44\x01\0\x03\x02"), Rule::Type);
    assert_eq!(refused::<Vec<i8>>(b"\x81\x18\x80"), Rule::Range);
}

#[test]
fn fixed_length_list_requires_its_length() {
    assert_eq!(cbor::encode(&[1u8, 2], Vec::new()), b"\x42\x01\x02");
    assert_eq!(
        cbor::encode(&[1u16, 0x203], Vec::new()),
        b"\xd8\x45\x44\x01\0\x03\x02"
    );
    assert_eq!(cbor::encode(&[true, false], Vec::new()), b"\x82\xf5\xf4");
    assert_eq!(cbor::decode(b"\x82\x01\x02"), Ok([1u8, 2]));
    assert_eq!(refused::<[u8; 2]>(b"\x41\x01"), Rule::Count);
    assert_eq!(refused::<[u8; 2]>(b"\x83\x01\x02\x03"), Rule::Count);
    assert_eq!(refused::<[bool; 2]>(b"\x81\xf5"), Rule::Count);
}

#[test]
fn floats_keep_their_bits_and_take_integers_that_fit() {
    for bits in [
        0x7ff0_0000_0000_0001_u64,
        0xfff8_0000_2000_0000,
        0x7ff4_0000_0000_0000,
        1,
    ] {
        let bytes = cbor::encode(&f64::from_bits(bits), Vec::new());
        assert_eq!(cbor::decode::<f64>(&bytes).unwrap().to_bits(), bits);
    }
    assert_eq!(cbor::decode(b"\x18\x64"), Ok(100.0_f64));
    assert_eq!(cbor::decode(b"\x20"), Ok(-1.0_f32));
    assert_eq!(refused::<f64>(b"\x1b\x00\x20\0\0\0\0\0\x01"), Rule::Range);
    assert_eq!(refused::<f32>(b"\x1a\x01\0\0\x01"), Rule::Range);
    assert_eq!(
        refused::<f32>(b"\xfb\x3f\xf1\x99\x99\x99\x99\x99\x9a"),
        Rule::Range
    );
}

#[test]
fn char_is_a_text_of_one_character() {
    assert_eq!(
        cbor::encode(&'\u{10151}', Vec::new()),
        b"\x64\xf0\x90\x85\x91"
    );
    assert_eq!(refused::<char>(b"\x62ab"), Rule::Char);
    assert_eq!(refused::<char>(b"\x60"), Rule::Char);
    assert_eq!(refused::<String>(b"\x61\xff"), Rule::Utf8);
    // A scalar value split across two pieces is invalid: RFC 8949, 3.2.3.
    assert_eq!(refused::<String>(b"\x7f\x61\xc3\x61\xbc\xff"), Rule::Utf8);
}

#[test]
fn tuple_requires_its_number_of_elements() {
    assert_eq!(refused::<(u8, u8)>(b"\x81\x01"), Rule::Count);
    assert_eq!(refused::<(u8, u8)>(b"\x83\x01\x01\x01"), Rule::Count);
    assert_eq!(refused::<(u8, u8)>(b"\x9f\x01\x01\x01\xff"), Rule::Count);
    assert_eq!(refused::<()>(b"\x01"), Rule::Type);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 512 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn written_value_is_read_back(value in nested()) {
        let bytes = cbor::encode(&value, Vec::new());
        prop_assert_eq!(cbor::decode::<Nested>(&bytes), Ok(value));
    }

    #[test]
    fn damaged_item_is_an_error_or_a_value(
        value in nested(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        let mut bytes = cbor::encode(&value, Vec::new());
        for (index, byte) in damage {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        match cbor::decode::<Nested>(&bytes) {
            // An accepted value can be written and read again; a NaN is not equal to itself.
            Ok(value) => {
                let again = cbor::encode(&value, Vec::new());
                prop_assert_eq!(cbor::encode(&cbor::decode::<Nested>(&again).unwrap(), Vec::new()), again);
            }
            Err(Refused { at, .. }) => prop_assert!(at as usize <= bytes.len()),
        }
    }
}
