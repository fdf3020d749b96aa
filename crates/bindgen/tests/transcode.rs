//! Converts every message of the conformance scenarios to CBOR, using the description of its type,
//! compares it with `conformance/golden`, and converts it back to the same bytes.
//!
//! `BLESS=1 cargo test -p thalweg-bindgen --test transcode` writes the arguments' anew.

use serde_json::Value;
use std::fmt::Write;
use std::path::PathBuf;
use thalweg_bindgen::hash::Describer;
use thalweg_bindgen::model::{Function, Package, TypeDef};
use thalweg_wire::cbor::{of_message, to_message};
use thalweg_wire::describe::Type;

const LIMIT: usize = 1 << 20;

fn folder() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance").into()
}

fn package() -> Package {
    thalweg_bindgen::parse(&folder().join("wit")).expect("the conformance WIT")
}

fn texts(package: &Package) -> Describer<'_> {
    Describer {
        types: &package.types,
        resources: &package.resources,
    }
}

fn unhex(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16).expect("hex"))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes it");
        text
    })
}

/// The messages of one kind in the scenarios, a line each: `HEX SCENARIO #STEP`, the bytes in CBOR.
fn lines(key: &str, text_of: impl Fn(&Function, &Value) -> String) -> String {
    let package = package();
    let file = std::fs::read_to_string(folder().join("scenarios.json")).expect("the scenarios");
    let scenarios: Vec<Value> = serde_json::from_str(&file).expect("JSON");
    let mut lines = String::new();
    for scenario in &scenarios {
        let steps = scenario["steps"].as_array().expect("steps");
        for (number, step) in steps.iter().enumerate() {
            let Some(message) = step[key].as_str() else {
                continue;
            };
            let function = step["call"].as_str().expect("a function");
            let function = package
                .functions
                .iter()
                .find(|known| known.full_name.strip_prefix("conformance.") == Some(function))
                .expect("a function of the package");
            let text = text_of(function, step);
            let ty = Type::parse(&text).expect("a description");
            let message = unhex(message);
            let name = format!(
                "{} #{}",
                scenario["name"].as_str().expect("a name"),
                number + 1
            );
            let cbor =
                of_message(&ty, &message, LIMIT).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_eq!(to_message(&ty, &cbor, LIMIT), Ok(message), "{name}");
            writeln!(lines, "{} {name}", hex(&cbor)).expect("a string takes it");
        }
    }
    lines
}

fn compare(file: &str, lines: &str, bless: bool) {
    let golden = folder().join("golden").join(file);
    if bless && std::env::var_os("BLESS").is_some() {
        std::fs::write(&golden, lines).expect("the golden file can be written");
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    for (came, expected) in lines.lines().zip(expected.lines()) {
        assert_eq!(came, expected);
    }
    assert_eq!(lines.lines().count(), expected.lines().count());
}

#[test]
fn every_message_of_arguments_becomes_cbor_and_comes_back() {
    let package = package();
    let lines = lines("arguments", |function, _| {
        texts(&package).describe_record(&function.params)
    });
    compare("arguments.cbor.hex", &lines, true);
}

/// The file is what generated Rust wrote, so both codecs agree.
#[test]
fn every_reply_becomes_the_cbor_that_generated_rust_writes() {
    let package = package();
    let of = |ty: Option<&_>| ty.map_or("_".to_owned(), |ty| texts(&package).describe(ty));
    let lines = lines("reply", |function, step| {
        if step["ends"] == "error" {
            of(function.error.as_ref().expect("it can fail").as_ref())
        } else {
            of(function.ok.as_ref())
        }
    });
    compare("reply.cbor.hex", &lines, false);
}

#[test]
fn a_description_has_the_layout_that_the_generators_know() {
    let package = package();
    for TypeDef {
        name,
        kind,
        size,
        align,
        hash,
        ..
    } in &package.types
    {
        let text = texts(&package).describe_definition(kind);
        let ty = Type::parse(&text).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(
            (ty.size(), ty.align(), ty.hash()),
            (*size, *align, *hash),
            "{name}"
        );
    }
    for function in &package.functions {
        let text = texts(&package).describe_record(&function.params);
        let ty = Type::parse(&text).unwrap_or_else(|why| panic!("{text}: {why}"));
        let laid_out = (ty.size(), ty.align(), ty.hash());
        let (size, align) = function.params_layout;
        assert_eq!(laid_out, (size, align, function.hashes.params), "{text}");
    }
}
