//! The source of a caller that was written for an older version compiles with the code of a newer
//! version. An added field has the same value there as in a converted message of the older version.

use std::path::Path;
use thalweg::wire::describe::Type;
use thalweg::wire::evolve::Conversion;
use thalweg::wire::{Decode as _, message};
use thalweg_bindgen::{build, parse};
use thalweg_codegen_tests::versions::{newer, older};

/// A caller that was written for the older version.
macro_rules! caller {
    ($package:ident) => {
        $package::Order {
            id: 7,
            state: $package::State::Open,
            ..Default::default()
        }
    };
}

#[test]
fn caller_of_older_version_compiles_with_newer_version() {
    let older = caller!(older);
    assert_eq!((older.id, older.note), (7, None));
    let newer = caller!(newer);
    assert_eq!((newer.id, newer.note, newer.hint), (7, None, None));
    assert_eq!(newer.color, newer::Color::Unknown);
    assert_eq!(newer.place.checked, Ok(Vec::new()));
}

#[test]
fn added_field_has_the_default_of_its_type() {
    let (from, to) = (
        older::Order::SHAPE.to_string(),
        newer::Order::SHAPE.to_string(),
    );
    let (from, to) = (Type::parse(&from).unwrap(), Type::parse(&to).unwrap());
    let old = message::encode(&caller!(older), from.hash(), Vec::new()).unwrap();
    let hash = to.hash();
    let converted = Conversion::new(from, to).unwrap().convert(&old).unwrap();
    let message = message::open(&converted.message, hash).unwrap();
    let view = message.view::<newer::Order>().unwrap();
    assert_eq!(newer::Order::owned(view), caller!(newer));
}

#[test]
fn second_generation_equals_the_compiled_code() {
    let compiled = [
        ("older", include_str!(concat!(env!("OUT_DIR"), "/older.rs"))),
        ("newer", include_str!(concat!(env!("OUT_DIR"), "/newer.rs"))),
    ];
    for (version, compiled) in compiled {
        let wit = Path::new("versions").join(version).with_extension("wit");
        assert!(build::module(&parse(&wit).unwrap(), version) == compiled);
    }
}
