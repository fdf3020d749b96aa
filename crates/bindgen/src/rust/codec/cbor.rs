//! `wire::cbor::Cbor` for named types. Keys are written in deterministic order: RFC 8949, 4.2.1.

use super::super::names::{camel, shouted, snake};
use super::super::types::owned;
use super::super::{has_view, line};
use crate::model::{Case, Field, Label, Package, TypeDef, TypeDefKind};

/// The impl of one type.
pub fn definition(out: &mut String, package: &Package, id: usize, def: &TypeDef) {
    let name = camel(&def.name);
    let view = if has_view(package, id) {
        format!("{name}View")
    } else {
        name.clone()
    };
    let (write, read) = match &def.kind {
        TypeDefKind::Record(fields) => record(package, &name, fields),
        TypeDefKind::Variant { cases, .. } => variant(package, &name, &view, cases),
        TypeDefKind::Enum(labels) => enumeration(&name, labels),
        TypeDefKind::Flags(labels) => flags(&name, labels, def.size),
        TypeDefKind::Alias(_) => return,
    };
    let lifetime = if has_view(package, id) { "<'_>" } else { "" };
    line(
        out,
        &format!(
            "
            impl wire::cbor::Cbor for {name} {{
                fn write(view: {view}{lifetime}, to: &mut wire::cbor::Writer) {{
                    {write}
                }}

                fn read(from: &mut wire::cbor::Reader<'_>) -> Result<{name}, wire::cbor::Refused> {{
                    {read}
                }}
            }}"
        ),
    );
}

/// A call that writes a value.
fn write(package: &Package, ty: &crate::model::Type, value: &str) -> String {
    format!(
        "<{} as wire::cbor::Cbor>::write({value}, to);\n",
        owned(package, ty)
    )
}

fn record(package: &Package, name: &str, fields: &[Field]) -> (String, String) {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_by_key(|field| (field.name.len(), &field.name));
    let mut written = format!("to.map({});\n", fields.len());
    for field in sorted {
        let value = write(package, &field.ty, &format!("view.{}", snake(&field.name)));
        written += &format!("to.text({:?});\n{value}", field.name);
    }
    let mut read = String::new();
    for number in 0..fields.len() {
        read += &format!("let mut f{number} = None;\n");
    }
    read += "let mut fields = from.map()?;\nwhile let Some(key) = from.key(&mut fields)? {\nmatch &*key {\n";
    for (number, field) in fields.iter().enumerate() {
        read += &format!("{:?} => from.field(&mut f{number})?,\n", field.name);
    }
    read += "_ => return Err(from.refused(wire::cbor::Rule::Unknown)),\n}\n}\n";
    read += &format!("Ok({name} {{\n");
    for (number, field) in fields.iter().enumerate() {
        read += &format!("{}: from.required(f{number})?,\n", snake(&field.name));
    }
    (written, read + "})")
}

fn variant(package: &Package, name: &str, view: &str, cases: &[Case]) -> (String, String) {
    let mut written = "match view {\n".to_owned();
    let mut read =
        "let case = from.case()?;\nlet value = match (&*case.name, case.payload) {\n".to_owned();
    for case in cases {
        let case_name = camel(&case.name);
        match &case.payload {
            None => {
                written += &format!("{view}::{case_name} => to.text({:?}),\n", case.name);
                read += &format!("({:?}, false) => {name}::{case_name},\n", case.name);
            }
            Some(ty) => {
                let value = write(package, ty, "value");
                written += &format!(
                    "{view}::{case_name}(value) => {{ to.map(1);\nto.text({:?});\n{value} }}\n",
                    case.name
                );
                read += &format!(
                    "({:?}, true) => {name}::{case_name}(wire::cbor::Cbor::read(from)?),\n",
                    case.name
                );
            }
        }
    }
    read += "_ => return Err(case.unknown()),\n};\ncase.end(from)?;\nOk(value)";
    (written + "}", read)
}

fn enumeration(name: &str, labels: &[Label]) -> (String, String) {
    let mut written = "to.text(match view {\n".to_owned();
    let mut read = "from.name(|name| match name {\n".to_owned();
    for label in labels {
        let case = camel(&label.name);
        written += &format!("{name}::{case} => {:?},\n", label.name);
        read += &format!("{:?} => Some({name}::{case}),\n", label.name);
    }
    (written + "});", read + "_ => None,\n})")
}

fn flags(name: &str, labels: &[Label], size: u32) -> (String, String) {
    let names: Vec<_> = labels
        .iter()
        .map(|label| format!("{:?}", label.name))
        .collect();
    let bits = if size == 4 {
        "view.bits()"
    } else {
        "u32::from(view.bits())"
    };
    let written = format!("to.flags({bits}, [{}].into_iter());", names.join(", "));
    let mut read = "from.flags(|name| match name {\n".to_owned();
    for label in labels {
        read += &format!(
            "{:?} => Some({name}::{}.0.trailing_zeros()),\n",
            label.name,
            shouted(&label.name)
        );
    }
    let made = if size == 4 {
        name.to_owned()
    } else {
        format!("|bits| {name}(bits as u{})", 8 * size)
    };
    (written, read + &format!("_ => None,\n}}).map({made})"))
}
