//! The source of a caller of an older version compiles with the code of a newer one, and a field that was added has the value there that
//! it has in a message of the older version.

use std::path::Path;
use thalweg::wire::describe::Type;
use thalweg::wire::evolve::Conversion;
use thalweg::wire::{Decode as _, message};
use thalweg_bindgen::{parse_text, rust};

#[path = "evolution/generated/newer.rs"]
mod newer;
#[path = "evolution/generated/older.rs"]
mod older;

/// A caller, as it was written for the older version.
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
fn caller_of_an_older_version_compiles_with_a_newer_one() {
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

/// `BLESS=1` writes the generated code anew.
#[test]
fn committed_code_is_what_the_generator_writes() {
    for version in ["older", "newer"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/evolution");
        let wit = std::fs::read_to_string(folder.join(version).with_extension("wit")).unwrap();
        let package = parse_text(Path::new("shop.wit"), &wit, "").unwrap();
        let output = rust::emit(&package).unwrap().remove(0);
        let path = folder.join("generated").join(version).with_extension("rs");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &output.contents).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), output.contents);
    }
}
