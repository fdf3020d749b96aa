//! Compares the replies of the scenarios in CBOR with `conformance/golden`.
//!
//! `BLESS=1 cargo test -p thalweg-conformance --test golden` rewrites the files.

use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use thalweg::wire::cbor::{self, Cbor};
use thalweg::wire::message;
use thalweg_conformance::conformance::*;

/// The CBOR of a message, which is also converted back and compared.
type Rewrite = fn(&[u8], u64) -> Vec<u8>;

fn rewrite<T: Cbor>(flat: &[u8], layout: u64) -> Vec<u8> {
    let value: T = message::open(flat, layout)
        .and_then(|message| message.owned())
        .expect("a message of this type");
    let written = cbor::encode(&value, Vec::new());
    let read: T = cbor::decode(&written).expect("what was written");
    let again = message::encode(&read, layout, Vec::new()).expect("room");
    assert_eq!(again, flat, "the message that CBOR stands for");
    written
}

/// The types of the replies, by function.
fn reply(function: &str) -> Option<Rewrite> {
    Some(match function {
        "echo-bool" => rewrite::<bool>,
        "echo-u8" => rewrite::<u8>,
        "echo-u16" => rewrite::<u16>,
        "echo-u32" | "sleep" | "counters" | "running" => rewrite::<u32>,
        "echo-u64" | "twice" => rewrite::<u64>,
        "echo-s8" => rewrite::<i8>,
        "echo-s16" => rewrite::<i16>,
        "echo-s32" => rewrite::<i32>,
        "echo-s64" => rewrite::<i64>,
        "echo-f32" => rewrite::<f32>,
        "echo-f64" => rewrite::<f64>,
        "echo-char" => rewrite::<char>,
        "echo-string" => rewrite::<String>,
        "echo-bytes" => rewrite::<Vec<u8>>,
        "echo-bools" => rewrite::<Vec<bool>>,
        "echo-numbers" => rewrite::<Vec<i64>>,
        "echo-floats" => rewrite::<Vec<f64>>,
        "echo-strings" | "echo-names" => rewrite::<Vec<String>>,
        "echo-grid" => rewrite::<Vec<Vec<i32>>>,
        "echo-points" => rewrite::<Vec<Point>>,
        "echo-option" => rewrite::<Option<String>>,
        "echo-option-twice" => rewrite::<Option<Option<u32>>>,
        "echo-result" => rewrite::<(Result<u64, String>,)>,
        "echo-result-ok" => rewrite::<Vec<Result<u32, ()>>>,
        "echo-result-error" => rewrite::<Vec<Result<(), String>>>,
        "echo-result-bare" => rewrite::<Vec<Result<(), ()>>>,
        "echo-tuple" => rewrite::<(u8, String, f64, Option<char>)>,
        "echo-point" | "echo-spot" => rewrite::<Point>,
        "echo-scalars" => rewrite::<Scalars>,
        "echo-nested" => rewrite::<Nested>,
        "echo-keywords" => rewrite::<Keywords>,
        "echo-shape" => rewrite::<Shape>,
        "echo-shapes" => rewrite::<Vec<Shape>>,
        "echo-color" => rewrite::<Color>,
        "echo-colors" => rewrite::<Vec<Color>>,
        "echo-rights" => rewrite::<Rights>,
        "echo-days" => rewrite::<Days>,
        "echo-wide" => rewrite::<Wide>,
        "echo-failure" => rewrite::<Failure>,
        "echo-key" => rewrite::<[u8; 16]>,
        "echo-three" => rewrite::<[i64; 3]>,
        "echo-fixed" => rewrite::<Fixed>,
        "echo-keys" => rewrite::<Vec<[u8; 2]>>,
        "several" => rewrite::<(u8, String, Vec<u16>, Option<Point>)>,
        "nothing" => rewrite::<()>,
        "fail" | "fail-later" => rewrite::<u64>,
        "fail-bare" => rewrite::<()>,
        _ => return None,
    })
}

/// The type of an error.
fn error(function: &str) -> Option<Rewrite> {
    match function {
        "fail" | "fail-later" | "items" | "[constructor]even" => Some(rewrite::<Failure>),
        "fail-bare" => Some(rewrite::<()>),
        _ => None,
    }
}

fn unhex(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16).expect("hex"))
        .collect()
}

#[test]
fn every_reply_of_the_scenarios_has_its_bytes_in_cbor() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("conformance");
    let file = std::fs::read_to_string(folder.join("scenarios.json")).expect("the scenarios");
    let scenarios: Vec<Value> = serde_json::from_str(&file).expect("JSON");
    let mut lines = String::new();
    for scenario in &scenarios {
        let name = scenario["name"].as_str().expect("a name");
        for (number, step) in scenario["steps"]
            .as_array()
            .expect("steps")
            .iter()
            .enumerate()
        {
            let Some(hex) = step["reply"].as_str() else {
                continue;
            };
            let function = step["call"].as_str().expect("a function");
            let method = PACKAGE
                .methods
                .iter()
                .find(|method| method.name.strip_prefix("conformance.") == Some(function))
                .expect("a function of the package");
            let (rewrite, layout) = if step["ends"] == "error" {
                (error(function), method.error)
            } else {
                (reply(function), method.ok)
            };
            let rewrite = rewrite.unwrap_or_else(|| panic!("{name}: the type of {function}"));
            for byte in rewrite(&unhex(hex), layout) {
                write!(lines, "{byte:02x}").expect("a string takes it");
            }
            writeln!(lines, " {name} #{}", number + 1).expect("a string takes it");
        }
    }
    let golden = folder.join("golden/reply.cbor.hex");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&golden, &lines).expect("the golden file can be written");
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    for (came, expected) in lines.lines().zip(expected.lines()) {
        assert_eq!(came, expected);
    }
    assert_eq!(lines.lines().count(), expected.lines().count());
}
