//! Every line of appendix A of RFC 8949. A value that our types can represent is read, any other
//! returns the broken rule, and a value in the canonical form is written identically.

use std::fmt::Debug;
use thalweg_wire::cbor::{self, Cbor, Reader, Refused, Rule, Writer};

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The item has this value, and is its canonical encoding.
fn is<T: Cbor + PartialEq + Debug>(hex: &str, value: T) {
    reads(hex, value);
    let value: T = cbor::decode(&bytes(hex)).unwrap();
    assert_eq!(
        cbor::encode(&value, Vec::new()),
        bytes(hex),
        "{hex} written"
    );
}

/// The item has this value, but is not its canonical encoding.
fn reads<T: Cbor + PartialEq + Debug>(hex: &str, value: T) {
    assert_eq!(cbor::decode(&bytes(hex)), Ok(value), "{hex}");
}

/// The item has these bits, in both widths.
fn float(hex: &str, bits: u64) {
    let value: f64 = cbor::decode(&bytes(hex)).unwrap();
    assert_eq!(value.to_bits(), bits, "{hex}");
}

/// The same, and it is the canonical encoding.
fn double(hex: &str, value: f64) {
    float(hex, value.to_bits());
    assert_eq!(
        cbor::encode(&value, Vec::new()),
        bytes(hex),
        "{hex} written"
    );
}

/// A double that is exactly a single.
fn single(hex: &str, value: f32) {
    both(hex, value, f64::from(value));
}

/// The processor's conversion of a NaN may change its sign, so both values are given.
fn both(hex: &str, value: f32, wide: f64) {
    double(hex, wide);
    assert_eq!(
        cbor::decode::<f32>(&bytes(hex)).unwrap().to_bits(),
        value.to_bits(),
        "{hex}"
    );
    assert_eq!(
        cbor::encode(&value, Vec::new()),
        bytes(hex),
        "{hex} written"
    );
}

fn refused<T: Cbor + PartialEq + Debug>(hex: &str, rule: Rule, at: u32) {
    assert_eq!(
        cbor::decode::<T>(&bytes(hex)),
        Err(Refused { rule, at }),
        "{hex}"
    );
}

/// A map, read and written like generated code does.
fn map(
    hex: &str,
    expected: &[&str],
    shortest: bool,
    value: impl Fn(&str, &mut Reader<'_>, &mut Writer),
) {
    let bytes = bytes(hex);
    let (mut from, mut to) = (Reader::new(&bytes), Writer::default());
    let mut keys = Vec::new();
    let mut entries = from.map().unwrap();
    to.map(expected.len());
    while let Some(key) = from.key(&mut entries).unwrap() {
        to.text(&key);
        value(&key, &mut from, &mut to);
        keys.push(key.into_owned());
    }
    from.finish().unwrap();
    assert_eq!(keys, expected, "{hex}");
    if shortest {
        assert_eq!(to.finish(), bytes, "{hex} written");
    }
}

/// A value of one letter.
fn letter(_: &str, from: &mut Reader<'_>, to: &mut Writer) {
    to.text(&from.text().unwrap());
}

const COUNTED: &str = "0102030405060708090a0b0c0d0e0f101112131415161718181819";

#[test]
fn integers() {
    for (hex, value) in [
        ("00", 0),
        ("01", 1),
        ("0a", 10),
        ("17", 23),
        ("1818", 24),
        ("1819", 25),
        ("1864", 100),
        ("1903e8", 1000),
        ("1a000f4240", 1_000_000),
        ("1b000000e8d4a51000", 1_000_000_000_000),
    ] {
        is::<u64>(hex, value);
        is::<i64>(hex, value as i64);
    }
    is("1bffffffffffffffff", u64::MAX);
    refused::<i64>("1bffffffffffffffff", Rule::Range, 0);
    for (hex, value) in [("20", -1), ("29", -10), ("3863", -100), ("3903e7", -1000)] {
        is::<i64>(hex, value);
        refused::<u64>(hex, Rule::Range, 0);
    }
    // More than 64 bits.
    refused::<i64>("3bffffffffffffffff", Rule::Range, 0);
    refused::<u64>("c249010000000000000000", Rule::Tag, 0);
    refused::<i64>("c349010000000000000000", Rule::Tag, 0);
}

#[test]
fn floats() {
    single("f90000", 0.0);
    single("f98000", -0.0);
    single("f93c00", 1.0);
    double("fb3ff199999999999a", 1.1);
    single("f93e00", 1.5);
    single("f97bff", 65504.0);
    single("fa47c35000", 100_000.0);
    single("fa7f7fffff", f32::MAX);
    double("fb7e37e43c8800759c", 1.0e300);
    single("f90001", 5.960_464_5e-8);
    single("f90400", 0.000_061_035_156);
    single("f9c400", -4.0);
    double("fbc010666666666666", -4.1);
    single("f97c00", f32::INFINITY);
    let wide = f64::from_bits(0x7ff8_0000_0000_0000);
    both("f97e00", f32::from_bits(0x7fc0_0000), wide);
    single("f9fc00", f32::NEG_INFINITY);
    float("fa7f800000", f64::INFINITY.to_bits());
    float("fa7fc00000", 0x7ff8_0000_0000_0000);
    float("faff800000", f64::NEG_INFINITY.to_bits());
    float("fb7ff0000000000000", f64::INFINITY.to_bits());
    float("fb7ff8000000000000", 0x7ff8_0000_0000_0000);
    float("fbfff0000000000000", f64::NEG_INFINITY.to_bits());
}

#[test]
fn simple_values() {
    is("f4", false);
    is("f5", true);
    is("f6", ());
    is("f6", None::<u8>);
    refused::<Option<bool>>("f7", Rule::Type, 0);
    refused::<bool>("f0", Rule::Type, 0);
    refused::<bool>("f8ff", Rule::Type, 0);
    // RFC 7049 allowed it; RFC 8949 does not.
    refused::<bool>("f818", Rule::Head, 0);
}

#[test]
fn tags() {
    refused::<String>("c074323031332d30332d32315432303a30343a30305a", Rule::Tag, 0);
    refused::<u64>("c11a514b67b0", Rule::Tag, 0);
    refused::<f64>("c1fb41d452d9ec200000", Rule::Tag, 0);
    refused::<Vec<u8>>("d74401020304", Rule::Tag, 0);
    refused::<Vec<u8>>("d818456449455446", Rule::Tag, 0);
    refused::<String>(
        "d82076687474703a2f2f7777772e6578616d706c652e636f6d",
        Rule::Tag,
        0,
    );
}

#[test]
fn strings() {
    is::<Vec<u8>>("40", vec![]);
    is::<Vec<u8>>("4401020304", vec![1, 2, 3, 4]);
    for (hex, text) in [
        ("60", ""),
        ("6161", "a"),
        ("6449455446", "IETF"),
        ("62225c", "\"\\"),
        ("62c3bc", "\u{fc}"),
        ("63e6b0b4", "\u{6c34}"),
        ("64f0908591", "\u{10151}"),
    ] {
        is(hex, text.to_owned());
    }
    reads::<Vec<u8>>("5f42010243030405ff", vec![1, 2, 3, 4, 5]);
    reads("7f657374726561646d696e67ff", "streaming".to_owned());
}

#[test]
fn arrays() {
    is::<Vec<String>>("80", vec![]);
    is::<(u8, u8, u8)>("83010203", (1, 2, 3));
    reads::<Vec<u32>>("83010203", vec![1, 2, 3]);
    type Nested = (u8, (u8, u8), (u8, u8));
    let nested: Nested = (1, (2, 3), (4, 5));
    is("8301820203820405", nested);
    reads(&format!("9819{COUNTED}"), (1..=25).collect::<Vec<u16>>());
    reads::<Vec<String>>("9fff", vec![]);
    for hex in [
        "9f018202039f0405ffff",
        "9f01820203820405ff",
        "83018202039f0405ff",
        "83019f0203ff820405",
    ] {
        reads(hex, nested);
    }
    reads(&format!("9f{COUNTED}ff"), (1..=25).collect::<Vec<u8>>());
}

#[test]
fn maps() {
    map("a0", &[], true, |_, _, _| ());
    // A key must be a name.
    let numbers = bytes("a201020304");
    let mut from = Reader::new(&numbers);
    let mut entries = from.map().unwrap();
    assert_eq!(
        from.key(&mut entries).unwrap_err(),
        Refused {
            rule: Rule::Type,
            at: 1
        }
    );
    let numbers = |key: &str, from: &mut Reader<'_>, to: &mut Writer| match key {
        "a" => u8::write(Cbor::read(from).unwrap(), to),
        _ => <(u8, u8)>::write(Cbor::read(from).unwrap(), to),
    };
    map("a26161016162820203", &["a", "b"], true, numbers);
    map("bf61610161629f0203ffff", &["a", "b"], false, numbers);
    let five = "a56161614161626142616361436164614461656145";
    map(five, &["a", "b", "c", "d", "e"], true, letter);
    for hex in ["826161a161626163", "826161bf61626163ff"] {
        assert_eq!(
            cbor::decode::<(String, String)>(&bytes(hex)),
            Err(Refused {
                rule: Rule::Type,
                at: 3
            })
        );
        map(&hex[6..], &["b"], hex.len() == 16, letter);
    }
    let mixed = |key: &str, from: &mut Reader<'_>, _: &mut Writer| match key {
        "Fun" => assert_eq!(from.bool(), Ok(true)),
        _ => assert_eq!(from.int(), Ok(-2)),
    };
    map("bf6346756ef563416d7421ff", &["Fun", "Amt"], false, mixed);
}

/// The items that RFC 8949, appendix F, lists as not well-formed.
#[test]
fn item_that_is_not_well_formed_is_an_error() {
    let cut = [
        "18",
        "19",
        "1a",
        "1b",
        "1901",
        "1a0102",
        "1b01020304050607",
        "38",
        "58",
        "78",
        "98",
        "9a01ff00",
        "b8",
        "d8",
        "f8",
        "f900",
        "fa0000",
        "fb000000",
        "41",
        "61",
        "5affffffff00",
        "5bffffffffffffffff010203",
        "7affffffff00",
        "7b7fffffffffffffff010203",
        "81",
        "818181818181818181",
        "8200",
        "a1",
        "a20102",
        "a100",
        "a2000000",
        "c0",
        "5f4100",
        "7f6100",
        "9f",
        "9f0102",
        "bf",
        "bf01020102",
        "819f",
        "9f8000",
        "9f9f9f9f9fffffffff",
        "9f819f819f9fffffff",
    ];
    // A count is compared with the remaining bytes before anything is read.
    for hex in ["a1ff", "a20000ff"] {
        assert_eq!(Reader::new(&bytes(hex)).skip().unwrap_err().rule, Rule::End);
    }
    let wrong = [
        "1c",
        "1d",
        "1e",
        "3c",
        "3d",
        "3e",
        "5c",
        "5d",
        "5e",
        "7c",
        "7d",
        "7e",
        "9c",
        "9d",
        "9e",
        "bc",
        "bd",
        "be",
        "dc",
        "dd",
        "de",
        "fc",
        "fd",
        "fe",
        "f800",
        "f801",
        "f818",
        "f81f",
        "5f00ff",
        "5f21ff",
        "5f6100ff",
        "5f80ff",
        "5fa0ff",
        "5fc000ff",
        "5fe0ff",
        "7f4100ff",
        "5f5f4100ffff",
        "7f7f6100ffff",
        "ff",
        "81ff",
        "8200ff",
        "a1ff00",
        "a100ff",
        "9f81ff",
        "9f829f819f9fffffffff",
        "bf00ff",
        "bf000000ff",
        "1f",
        "3f",
        "df",
    ];
    for (list, rule) in [(&cut[..], Rule::End), (&wrong[..], Rule::Head)] {
        for hex in list {
            let refused = Reader::new(&bytes(hex))
                .skip()
                .map_err(|refused| refused.rule);
            assert_eq!(refused, Err(rule), "{hex}");
        }
    }
}

#[test]
fn nesting_beyond_the_type_is_an_error() {
    let nested = |levels: usize| {
        let mut bytes = vec![0x81; levels];
        bytes.push(0);
        bytes
    };
    assert_eq!(Reader::new(&nested(64)).skip(), Ok(()));
    for levels in [65, 1_000_000] {
        let at = 65 - 1;
        let deep = Reader::new(&nested(levels)).skip();
        assert_eq!(
            deep.map_err(|refused| refused.rule),
            Err(Rule::Depth),
            "{levels} {at}"
        );
    }
}
