//! Conversion by description equals conversion by generated types: the same checks, the same CBOR,
//! the same messages.

use crate::sample::Match;
use crate::sample::nested::{Nested, nested};
use proptest::prelude::*;
use thalweg_wire::cbor::{self, Cbor, Refused, Rule, Untranslated, of_message, to_message};
use thalweg_wire::describe::Type;
use thalweg_wire::{Decode, message};

const LIMIT: usize = 1 << 20;

fn flat<T: Decode>(value: &T) -> Vec<u8> {
    message::encode(value, T::HASH, Vec::new()).unwrap()
}

/// The description of a type.
fn text<T: Decode>() -> String {
    T::SHAPE.to_string()
}

fn laid_out_alike<T: Decode>() {
    let text = text::<T>();
    let ty = Type::parse(&text).unwrap();
    let (size, align, hash) = (T::SIZE, T::ALIGN, T::HASH);
    assert_eq!(
        (ty.size(), ty.align(), ty.hash()),
        (size, align, hash),
        "{text}"
    );
}

#[test]
fn description_has_the_layout_of_its_type() {
    laid_out_alike::<()>();
    laid_out_alike::<Nested>();
    laid_out_alike::<Match>();
    laid_out_alike::<(u8, u64, u16)>();
    laid_out_alike::<Option<(u8, char)>>();
    laid_out_alike::<Result<u8, Result<(), f64>>>();
    laid_out_alike::<Vec<Option<Option<bool>>>>();
    laid_out_alike::<(u8, [u16; 10], [[String; 2]; 3])>();
    for (text, size, align) in [
        ("variant{a,b(u64),c(u8)}", 16, 8),
        ("enum{a,b}", 1, 1),
        ("flags{a,b,c,d,e,f,g,h,i}", 2, 2),
        ("record{}", 0, 1),
    ] {
        let ty = Type::parse(text).unwrap();
        assert_eq!((ty.size(), ty.align()), (size, align), "{text}");
    }
    let many: Vec<_> = (0..257).map(|i| format!("c{i}")).collect();
    assert_eq!(
        Type::parse(&format!("enum{{{}}}", many.join(",")))
            .unwrap()
            .size(),
        2
    );
}

#[test]
fn invalid_description_error_has_a_position() {
    for (text, at) in [
        ("", 0),
        ("u128", 0),
        ("list", 4),
        ("list<u8", 7),
        ("list<u8>>", 8),
        ("list<u8,u8>", 8),
        ("list<u8,>", 8),
        ("list<u8,0>", 8),
        ("list<u8,01>", 8),
        ("list<u8,4294967296>", 8),
        ("list<u64,268435456>", 19),
        ("list<list<_,65536>,65536>", 18),
        ("result<u8>", 9),
        ("record{a}", 8),
        ("record{a:u8,a:u8}", 17),
        ("record{:u8}", 7),
        ("tuple<u8,>", 9),
        ("enum{}", 6),
        ("flags{}", 7),
        ("variant{}", 9),
        ("variant{a(u8}", 12),
        ("own<>", 4),
        ("string ", 6),
        ("\u{fc}", 0),
    ] {
        let refused = Type::parse(text).map(|ty| ty.size());
        assert_eq!(refused.map_err(|error| error.at), Err(at), "{text}");
    }
    let flags: Vec<_> = (0..33).map(|i| format!("f{i}")).collect();
    assert!(Type::parse(&format!("flags{{{}}}", flags.join(","))).is_err());
    let deep = |levels| "list<".repeat(levels) + "u8" + &">".repeat(levels);
    assert!(Type::parse(&deep(64)).is_ok());
    assert!(Type::parse(&deep(65)).is_err());
    assert!(Type::parse(&"list<".repeat(1_000_000)).is_err());
}

#[test]
fn type_with_handles_cannot_be_transcoded() {
    for text in [
        "handle",
        "list<own<file>>",
        "option<borrow<file>>",
        "record{a:stream<u8>}",
    ] {
        let ty = Type::parse(text).unwrap();
        let handle = Refused {
            rule: Rule::Handle,
            at: 0,
        };
        assert_eq!(
            to_message(&ty, b"\0", LIMIT),
            Err(Untranslated::Cbor(handle)),
            "{text}"
        );
    }
    let ty = Type::parse("own<file>").unwrap();
    let bytes = message::encode(&thalweg_wire::Handle(7), ty.hash(), Vec::new()).unwrap();
    assert!(matches!(
        of_message(&ty, &bytes, LIMIT),
        Err(Untranslated::Message(_))
    ));
}

#[test]
fn result_beyond_the_limit_is_an_error() {
    let value = vec![Some("four".to_owned()), None];
    let (text, bytes) = (text::<Vec<Option<String>>>(), flat(&value));
    let ty = Type::parse(&text).unwrap();
    let written = cbor::encode(&value, Vec::new());
    for limit in 0..written.len() {
        assert_eq!(
            of_message(&ty, &bytes, limit),
            Err(Untranslated::Limit),
            "{limit}"
        );
    }
    assert_eq!(of_message(&ty, &bytes, written.len()), Ok(written.clone()));
    for limit in 0..bytes.len() {
        assert_eq!(
            to_message(&ty, &written, limit),
            Err(Untranslated::Limit),
            "{limit}"
        );
    }
    assert_eq!(to_message(&ty, &written, bytes.len()), Ok(bytes));
}

#[test]
fn short_item_does_not_produce_a_long_message() {
    // One byte each in CBOR, eight thousand bytes in the message.
    let text = format!("list<option<tuple<{}u64>>>", "u64,".repeat(999));
    let ty = Type::parse(&text).unwrap();
    let mut bytes = vec![0x9a, 0, 0, 0xff, 0xff];
    bytes.resize(5 + 0xffff, 0xf6);
    assert_eq!(to_message(&ty, &bytes, LIMIT), Err(Untranslated::Limit));
    // The item promises elements that are missing.
    bytes.truncate(100);
    assert!(matches!(
        to_message(&ty, &bytes, LIMIT),
        Err(Untranslated::Cbor(Refused {
            rule: Rule::End,
            ..
        }))
    ));
}

#[test]
fn elements_of_size_zero_are_limited() {
    let ty = Type::parse("list<record{}>").unwrap();
    let mut bytes = vec![0x9a, 0, 1, 0, 0];
    bytes.resize(5 + 65_536, 0xa0);
    assert!(to_message(&ty, &bytes, LIMIT).is_ok());
    bytes[4] = 1;
    bytes.push(0xa0);
    assert!(to_message(&ty, &bytes, LIMIT).is_err());
}

/// Both readers return the same result for these bytes.
fn read_alike<T: Cbor + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let text = text::<T>();
    let ty = Type::parse(&text).unwrap();
    let described = to_message(&ty, bytes, LIMIT);
    match cbor::decode::<T>(bytes) {
        Ok(value) => assert_eq!(described, Ok(flat(&value))),
        // The values of a record are located before they are read, so another rule may be broken
        // first.
        Err(_) => assert!(
            matches!(described, Err(Untranslated::Cbor(_))),
            "{described:?}"
        ),
    }
}

#[test]
fn other_encodings_of_a_value_are_read_identically() {
    read_alike::<Vec<u16>>(b"\xd8\x41\x44\0\x01\x02\x03");
    read_alike::<Vec<u16>>(b"\x9f\x01\x19\x02\x03\xff");
    read_alike::<Vec<u16>>(b"\x44\0\x01\x02\x03");
    read_alike::<Vec<u8>>(b"\xd8\x40\x42\x01\x02");
    read_alike::<Vec<u8>>(b"\x5f\x41\x01\x41\x02\xff");
    read_alike::<Vec<String>>(b"\x9f\x61a\x7f\x61b\x61c\xff\xff");
    read_alike::<Vec<i8>>(b"\x82\x38\x7f\x18\x80");
    read_alike::<f32>(b"\x18\x64");
    read_alike::<(u8, f64)>(b"\x82\x19\x01\0\x01");
    read_alike::<Match>(b"\xbf\x64text\x62fn\x66column\x01\x64path\x64a.rs\x6atext-bytes\x81\x18\xff\x63cut\xf5\x64line\x18\x07\xff");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 512 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn message_transcodes_like_its_type_and_back(value in nested()) {
        let (text, bytes) = (text::<Nested>(), flat(&value));
        let ty = Type::parse(&text).unwrap();
        let written = of_message(&ty, &bytes, LIMIT).unwrap();
        prop_assert_eq!(&written, &cbor::encode(&value, Vec::new()));
        prop_assert_eq!(to_message(&ty, &written, LIMIT).unwrap(), bytes);
    }

    #[test]
    fn damaged_message_breaks_the_same_rule(
        value in nested(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let (text, mut bytes) = (text::<Nested>(), flat(&value));
        for (index, byte) in damage {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        let typed = message::open(&bytes, Nested::HASH).and_then(|message| message.view::<Nested>().map(drop));
        let ty = Type::parse(&text).unwrap();
        let described = ty.check(&bytes).map(drop);
        // A message with handles, of a type without handles, is rejected before anything else is
        // checked.
        if described.is_err() && typed.is_err() && bytes[8..12] != [0; 4] {
            return Ok(());
        }
        prop_assert_eq!(described, typed);
    }

    #[test]
    fn damaged_cbor_is_read_identically(
        value in nested(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = cbor::encode(&value, Vec::new());
        for (index, byte) in damage {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        read_alike::<Nested>(&bytes);
    }
}
