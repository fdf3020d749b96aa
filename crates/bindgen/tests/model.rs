//! The model of a package that uses every value type, against a text that was read by eye once.
//!
//! `BLESS=1 cargo test -p thalweg-bindgen` writes the text anew.

use std::fmt::Write;
use std::path::Path;
use thalweg_bindgen::hash::Describer;
use thalweg_bindgen::model::{Field, Package, Type, TypeDefKind};
use thalweg_bindgen::parse;

fn dump(package: &Package) -> String {
    let texts = Describer {
        types: &package.types,
        resources: &package.resources,
    };
    let place = |ty: &Type| {
        format!(
            "{} (size {}, align {})",
            texts.describe(ty),
            ty.size,
            ty.align
        )
    };
    let mut out = String::new();
    let mut line = |text: String| writeln!(out, "{text}").expect("a string takes it");
    let Package {
        namespace,
        name,
        version,
        interface,
        layout,
        ..
    } = package;
    line(format!(
        "{namespace}:{name}@{version} interface {interface} layout {layout:#018x}"
    ));
    line(format!("docs {:?}", package.docs));
    if let Some(host) = &package.host {
        line(format!("asks {} docs {:?}", host.interface, host.docs));
    }
    for def in &package.types {
        let at = format!("{}:{}", def.position.line, def.position.column);
        line(format!(
            "\ntype {} size {} align {} hash {:#018x} at {at} docs {:?}",
            def.name, def.size, def.align, def.hash, def.docs
        ));
        match &def.kind {
            TypeDefKind::Record(fields) => {
                for Field {
                    name,
                    docs,
                    ty,
                    offset,
                } in fields
                {
                    line(format!("  {offset:3} {name}: {} {docs:?}", place(ty)));
                }
            }
            TypeDefKind::Variant {
                cases,
                tag_size,
                payload_offset,
            } => {
                line(format!(
                    "  variant tag {tag_size} payload at {payload_offset}"
                ));
                for case in cases {
                    line(format!(
                        "  {} {:?} {:?}",
                        case.name,
                        case.payload.as_ref().map(place),
                        case.docs
                    ));
                }
            }
            TypeDefKind::Enum(labels) => line(format!(
                "  enum {:?}",
                labels.iter().map(|l| &l.name).collect::<Vec<_>>()
            )),
            TypeDefKind::Flags(labels) => line(format!(
                "  flags {:?}",
                labels.iter().map(|l| &l.name).collect::<Vec<_>>()
            )),
            TypeDefKind::Alias(ty) => line(format!("  alias {}", place(ty))),
        }
    }
    for resource in &package.resources {
        line(format!(
            "\nresource {} at {} docs {:?}",
            resource.name, resource.position.line, resource.docs
        ));
    }
    let host = package.host.iter().flat_map(|host| &host.functions);
    for (number, f) in package.functions.iter().enumerate().chain(host.enumerate()) {
        let kind = f.kind;
        let is_async = match f.options.is_inline {
            true => "inline ",
            false if f.is_async => "async ",
            false => "",
        };
        line(format!(
            "\n{number} {is_async}{} ({}) {kind:?} at {}:{} docs {:?}",
            f.full_name, f.name, f.position.line, f.position.column, f.docs
        ));
        for Field {
            name, ty, offset, ..
        } in &f.params
        {
            line(format!("  {offset:3} {name}: {}", place(ty)));
        }
        line(format!(
            "  params size {} align {}",
            f.params_layout.0, f.params_layout.1
        ));
        line(format!(
            "  ok {:?} error {:?}",
            f.ok.as_ref().map(place),
            f.error.as_ref().map(|e| e.as_ref().map(place))
        ));
        line(format!("  {:x?} {:?}", f.hashes, f.stream));
    }
    out
}

#[test]
fn every_value_type_is_in_the_model() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = parse(&root.join("../../conformance/wit/conformance.wit"))
        .unwrap_or_else(|e| panic!("{e}"));
    let dump = dump(&package);
    let golden = root.join("tests/conformance.model.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&golden, &dump).expect("the golden file can be written");
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    for (line, (dump, expected)) in dump.lines().zip(expected.lines()).enumerate() {
        assert_eq!(dump, expected, "line {}", line + 1);
    }
    assert_eq!(dump.lines().count(), expected.lines().count());
}

#[test]
fn a_type_is_placed_after_those_that_it_uses() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = parse(&root.join("../../conformance/wit/conformance.wit"))
        .unwrap_or_else(|e| panic!("{e}"));
    let place = |name: &str| {
        package
            .types
            .iter()
            .position(|def| def.name == name)
            .expect(name)
    };
    assert!(place("shape") < place("nested") && place("names") < place("nested"));
}
