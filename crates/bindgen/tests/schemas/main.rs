//! The schemas of the conformance package against every value in its scenarios: JSON under the JSON
//! Schema, CBOR under the CDDL.

mod cddl;
mod json;

use serde_json::{Map, Value, json};
use std::path::PathBuf;
use thalweg_bindgen::model::{Function, Package, TypeKind};

fn folder() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance").into()
}

fn package() -> Package {
    thalweg_bindgen::parse(&folder().join("wit")).expect("the conformance WIT")
}

fn scenarios() -> Vec<Value> {
    let file = std::fs::read_to_string(folder().join("scenarios.json")).expect("the scenarios");
    serde_json::from_str(&file).expect("JSON")
}

/// The prefix of the definitions of a step's function.
fn definition_of(step: &Value) -> Option<String> {
    let call = step["call"].as_str()?;
    let name = match call.split_once(']') {
        Some(("[constructor", resource)) => format!("{resource}.@constructor"),
        Some((_, name)) => name.to_owned(),
        None => call.to_owned(),
    };
    Some(format!("conformance.{name}"))
}

/// Expands `{"repeat": X, "count": N}` to a value of this kind.
fn expand(kind: &TypeKind, value: &Value) -> Value {
    if let (TypeKind::Tuple(kinds), Some(parts)) = (kind, value.as_array()) {
        let parts = kinds.iter().zip(parts);
        return parts.map(|(ty, part)| expand(&ty.kind, part)).collect();
    }
    let Some(count) = value.get("repeat").and(value["count"].as_u64()) else {
        return value.clone();
    };
    let one = &value["repeat"];
    match kind {
        TypeKind::Stream(_) => Value::Array(vec![one.clone(); count as usize]),
        TypeKind::List(item) if item.kind != TypeKind::U8 => {
            Value::Array(vec![one.clone(); count as usize])
        }
        _ => Value::String(one.as_str().expect("a text").repeat(count as usize)),
    }
}

/// Every value in the scenarios, with the definition that it is to be valid under.
fn values(package: &Package) -> Vec<(String, Value)> {
    let mut out = Vec::new();
    for step in scenarios().iter().flat_map(|scenario| {
        let steps = scenario["steps"].as_array().expect("steps");
        steps.clone()
    }) {
        let Some(name) = definition_of(&step) else {
            continue;
        };
        let call = step["call"].as_str().expect("a function");
        let function: &Function = package
            .functions
            .iter()
            .find(|function| function.full_name.strip_prefix("conformance.") == Some(call))
            .expect("a function of the package");
        let given = step["params"].as_array().cloned().unwrap_or_default();
        let params: Map<String, Value> = function
            .params
            .iter()
            .zip(&given)
            .map(|(field, value)| (field.name.clone(), expand(&field.ty.kind, value)))
            .collect();
        out.push((format!("{name}.params"), Value::Object(params)));
        if let (Some(ty), Some(value)) = (&function.ok, step.get("ok")) {
            out.push((format!("{name}.result"), expand(&ty.kind, value)));
        }
        if let Some(value) = step.get("error") {
            out.push((format!("{name}.error"), value.clone()));
        }
        let stream = &step["stream"];
        let elements = stream["elements"].as_array().into_iter().flatten();
        let ends = ["first", "last"]
            .into_iter()
            .filter_map(|end| stream.get(end));
        for element in elements.chain(ends) {
            out.push((format!("{name}.element"), element.clone()));
        }
    }
    out
}

/// The value with a member more, once for each object in it.
fn with_one_more(value: &Value) -> Vec<Value> {
    let mut out = Vec::new();
    match value {
        Value::Object(members) => {
            let mut more = members.clone();
            more.insert("no-such-member".to_owned(), Value::Null);
            out.push(Value::Object(more));
            for (name, inner) in members {
                for inner in with_one_more(inner) {
                    let mut members = members.clone();
                    members.insert(name.clone(), inner);
                    out.push(Value::Object(members));
                }
            }
        }
        Value::Array(items) if items.len() < 100 => {
            for (place, inner) in items.iter().enumerate() {
                for inner in with_one_more(inner) {
                    let mut items = items.clone();
                    items[place] = inner;
                    out.push(Value::Array(items));
                }
            }
        }
        _ => {}
    }
    out
}

#[test]
fn every_value_of_the_scenarios_is_valid_under_the_json_schema() {
    let package = package();
    let schema = json::Schema::of(&package);
    let mut checked = 0;
    for (name, value) in values(&package) {
        // Types with resources and parameters with a stream have no definition.
        let Some(result) = schema.check(&name, &value) else {
            assert!(
                !name.contains(".echo-"),
                "{name} is a value and has no definition"
            );
            continue;
        };
        result.unwrap_or_else(|why| panic!("{name}: {why}"));
        checked += 1;
        for wrong in with_one_more(&value) {
            let result = schema.check(&name, &wrong).expect("it is there");
            assert!(result.is_err(), "{name}: {wrong}");
        }
    }
    assert!(checked > 200, "{checked}");
}

#[test]
fn wrong_values_are_refused_under_the_json_schema() {
    let schema = json::Schema::of(&package());
    let point = json!({"x": 1, "y": 2});
    for (name, wrong) in [
        ("echo-bool", json!(0)),
        ("echo-u8", json!(256)),
        ("echo-u8", json!(-1)),
        ("echo-u8", json!("1")),
        ("echo-u8", json!(1.5)),
        ("echo-s16", json!(32768)),
        ("echo-u64", json!(1)),
        ("echo-u64", json!("-1")),
        ("echo-u64", json!("01")),
        ("echo-u64", json!("100000000000000000000")),
        ("echo-s64", json!("-0")),
        ("echo-f32", json!(1.5)),
        ("echo-f32", json!("0x3fc0000")),
        ("echo-f64", json!("0x3fc00000")),
        ("echo-char", json!("")),
        ("echo-char", json!("ab")),
        ("echo-string", json!(null)),
        ("echo-bytes", json!("0")),
        ("echo-bytes", json!([1])),
        ("echo-bools", json!([true, 1])),
        ("echo-key", json!("00")),
        ("echo-three", json!(["1", "2"])),
        ("echo-three", json!(["1", "2", "3", "4"])),
        ("echo-option", json!("x")),
        ("echo-option", json!({"some": null})),
        ("echo-option-twice", json!({"some": 1})),
        ("echo-result", json!([{"ok": 1}])),
        ("echo-result", json!([{"ok": "1", "error": "x"}])),
        ("echo-result-bare", json!([{"ok": 0}])),
        ("echo-tuple", json!([1, "a", "0x0000000000000000"])),
        ("echo-tuple", json!([1, "a", "0x0000000000000000", null, 1])),
        ("echo-point", json!({"x": 1})),
        ("echo-point", json!([1, 2])),
        ("echo-shape", json!({"case": "circle"})),
        ("echo-shape", json!({"case": "square", "value": 1})),
        ("echo-shape", json!({"case": "nothing", "value": null})),
        (
            "echo-shape",
            json!({"case": "polygon", "value": [point, {"x": 1}]}),
        ),
        ("echo-color", json!("blue")),
        ("echo-color", json!(0)),
        ("echo-rights", json!(["read", "read"])),
        ("echo-rights", json!(["delete"])),
    ] {
        for (part, wrong) in [("params", json!({"value": wrong})), ("result", wrong)] {
            let name = format!("conformance.{name}.{part}");
            let result = schema.check(&name, &wrong).expect("a definition");
            assert!(result.is_err(), "{name}: {wrong}");
        }
    }
}

fn unhex(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16).expect("hex"))
        .collect()
}

/// The lines of a golden file, with the step that each is of.
fn golden(file: &str) -> Vec<(Value, Vec<u8>)> {
    let scenarios = scenarios();
    let text = std::fs::read_to_string(folder().join("golden").join(file)).expect("a golden file");
    let line = |line: &str| {
        let (hex, name) = line.split_once(' ').expect("HEX SCENARIO #STEP");
        let (name, step) = name.rsplit_once(" #").expect("a step");
        let scenario = scenarios.iter().find(|scenario| scenario["name"] == name);
        let step = step.parse::<usize>().expect("a number") - 1;
        (
            scenario.expect("a scenario")["steps"][step].clone(),
            unhex(hex),
        )
    };
    text.lines().map(line).collect()
}

#[test]
fn every_golden_cbor_is_valid_under_the_cddl_and_with_a_key_more_it_is_not() {
    let rules = cddl::Rules::of(&package());
    for (step, bytes) in golden("arguments.cbor.hex") {
        let name = format!("{}.params", definition_of(&step).expect("a call"));
        assert!(rules.check(&name, &bytes), "{name}: {bytes:02x?}");
        // All have less than 23 parameters: one key more, `~`, with null.
        let mut more = bytes.clone();
        more[0] += 1;
        more.extend([0x61, b'~', 0xf6]);
        assert!(!rules.check(&name, &more), "{name}");
    }
    for (step, bytes) in golden("reply.cbor.hex") {
        let part = if step["ends"] == "error" {
            "error"
        } else {
            "result"
        };
        let name = format!("{}.{part}", definition_of(&step).expect("a call"));
        assert!(rules.check(&name, &bytes), "{name}: {bytes:02x?}");
        // Undefined.
        assert!(!rules.check(&name, &[0xf7]), "{name}");
    }
}

#[test]
fn wrong_cbor_is_refused_under_the_cddl() {
    let rules = cddl::Rules::of(&package());
    for (name, wrong) in [
        ("echo-bool", "00"),
        ("echo-u8", "190100"),
        ("echo-u8", "20"),
        ("echo-s8", "3880"),
        ("echo-u64", "20"),
        ("echo-f32", "fb3ff199999999999a"),
        ("echo-char", "60"),
        ("echo-string", "4161"),
        ("echo-bytes", "6161"),
        ("echo-numbers", "d84600"),
        ("echo-numbers", "40"),
        ("echo-bools", "8100"),
        ("echo-key", "4100"),
        ("echo-three", "d84f480000000000000000"),
        ("echo-option", "00"),
        ("echo-option-twice", "00"),
        ("echo-option-twice", "820000"),
        ("echo-result", "81a1626f6b6161"),
        ("echo-result-bare", "81a1626f6b00"),
        ("echo-tuple", "820161 61"),
        ("echo-point", "a1617800"),
        ("echo-point", "820000"),
        ("echo-shape", "66636972636c65"),
        ("echo-shape", "a1676e6f7468696e67f6"),
        ("echo-color", "64626c7565"),
        ("echo-rights", "82657772697465647265 6164"),
        ("echo-rights", "816178"),
    ] {
        let name = format!("conformance.{name}.result");
        let bytes = unhex(&wrong.replace(' ', ""));
        assert!(!rules.check(&name, &bytes), "{name}: {wrong}");
    }
}

#[test]
fn every_name_in_the_cddl_is_defined() {
    cddl::Rules::of(&package()).check_names();
}
