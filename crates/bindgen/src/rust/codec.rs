//! Named types: each is one call of a macro of `thalweg::wire`, which documents the syntax.

use super::defaults::{self, Default};
use super::names::{camel, shouted, snake};
use super::types::{self, owned, view};
use super::{docs, has_view, hex, line};
use crate::hash::Describer;
use crate::model::{
    self, Case, Field, Label, Package, Type, TypeDef, TypeDefKind, TypeId, TypeKind,
};
use crate::plan::Plan;

/// Emits one named type.
pub fn definition(out: &mut String, plan: &Plan<'_>, id: usize, def: &TypeDef) {
    let package = plan.package;
    let name = camel(&def.name);
    let (macro_name, members, layout) = match &def.kind {
        TypeDefKind::Record(fields) => ("record", record(package, fields), layout(def)),
        TypeDefKind::Variant {
            cases,
            tag_size,
            payload_offset,
        } => {
            let tag = word(*tag_size);
            let layout = format!("tag {tag}, payload {payload_offset}, {}", layout(def));
            ("variant", variant(package, cases), layout)
        }
        TypeDefKind::Enum(cases) => {
            let layout = format!("tag {}, {}", word(def.size), hash(def));
            ("enumeration", enumeration(cases), layout)
        }
        TypeDefKind::Flags(labels) => ("flags", flags(labels), hash(def)),
        TypeDefKind::Alias(ty) => {
            line(out, "");
            docs(out, &def.docs);
            line(out, &format!("pub type {name} = {};", owned(package, ty)));
            return;
        }
    };
    let keyword = match &def.kind {
        TypeDefKind::Variant { .. } | TypeDefKind::Enum(_) => "enum",
        _ => "struct",
    };
    let second = match &def.kind {
        TypeDefKind::Flags(_) => format!(": {}", word(def.size)),
        _ if has_view(package, id) => format!(" / {name}View<'a>"),
        _ => String::new(),
    };
    line(out, &format!("\nwire::{macro_name}! {{"));
    indented(out, 4, &documentation(&def.docs));
    if !matches!(def.kind, TypeDefKind::Flags(_)) {
        indented(out, 4, &derives(package, id, def));
    }
    indented(out, 4, &format!("pub {keyword} {name}{second} {{"));
    indented(out, 8, &members);
    indented(out, 4, "}");
    indented(
        out,
        4,
        &with_implemented(&layout, &implemented(plan, id, def)),
    );
    line(out, "}");
}

/// The documentation of a member, or nothing.
fn documentation(text: &str) -> String {
    let mut out = String::new();
    docs(&mut out, text);
    out
}

/// Appends lines with a margin, because `rustfmt` does not format the arguments of a macro.
fn indented(out: &mut String, margin: usize, text: &str) {
    for text in text.lines() {
        line(out, &format!("{:margin$}{text}", ""));
    }
}

/// The columns of a line.
const WIDTH: usize = 100;

/// `left => right`, on more lines if it is too long for one. `margin` is that of the line.
fn mapped(left: &str, right: &str, margin: usize) -> String {
    let whole = format!("{left} => {right}");
    if margin + whole.len() <= WIDTH {
        return whole;
    }
    let left = match margin + left.len() <= WIDTH {
        true => left.to_owned(),
        false => left.replacen(" as ", "\n    as ", 1),
    };
    format!("{left}\n    => {right}")
}

/// The layout, and the traits that the macro implements.
fn with_implemented(layout: &str, traits: &[String]) -> String {
    if traits.is_empty() {
        return layout.to_owned();
    }
    let traits = format!("impl {}", traits.join(", "));
    let whole = format!("{layout}, {traits}");
    if 4 + whole.len() <= WIDTH {
        whole
    } else {
        format!("{layout},\n{traits}")
    }
}

fn hash(def: &TypeDef) -> String {
    format!("hash {}", hex(def.hash))
}

fn layout(def: &TypeDef) -> String {
    format!("size {}, align {}, {}", def.size, def.align, hash(def))
}

/// The integer type of a discriminant or of bits.
fn word(size: u32) -> &'static str {
    match size {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        other => {
            unreachable!("wit-parser allows at most 32 flags and 2^32 cases, not {other} bytes")
        }
    }
}

/// The fields of a record. Adjacent numbers are one run.
fn record(package: &Package, fields: &[Field]) -> String {
    let is_number =
        |field: &Field| types::is_number(model::resolve_alias(&package.types, &field.ty));
    let runs = fields.chunk_by(|one, next| is_number(one) && is_number(next));
    let mut out = String::new();
    for run in runs {
        for (place, field) in run.iter().enumerate() {
            let end = if place + 1 == run.len() { ";" } else { "," };
            let declared = format!("pub {}: {}", snake(&field.name), both(package, &field.ty));
            let placed = format!(
                "{} @ {}{end}",
                name(package, &field.name, Some(&field.ty)),
                field.offset
            );
            out += &documentation(&field.docs);
            line(&mut out, &mapped(&declared, &placed, 8));
        }
    }
    out
}

fn variant(package: &Package, cases: &[Case]) -> String {
    let mut out = String::new();
    for (number, case) in cases.iter().enumerate() {
        let payload = case.payload.as_ref();
        let ty = payload.map_or(String::new(), |ty| format!("({})", both(package, ty)));
        let declared = format!("{}{ty} = {number}", camel(&case.name));
        out += &documentation(&case.docs);
        let name = format!("{},", name(package, &case.name, payload));
        line(&mut out, &mapped(&declared, &name, 8));
    }
    out
}

fn enumeration(cases: &[Label]) -> String {
    labels(cases, camel)
}

fn flags(flags: &[Label]) -> String {
    labels(flags, shouted)
}

fn labels(labels: &[Label], in_rust: fn(&str) -> String) -> String {
    let mut out = String::new();
    for (number, label) in labels.iter().enumerate() {
        out += &documentation(&label.docs);
        let declared = format!("{} = {number}", in_rust(&label.name));
        line(
            &mut out,
            &mapped(&declared, &format!("{:?},", label.name), 8),
        );
    }
    out
}

/// The owned type, and after `as` the view type if it differs.
fn both(package: &Package, ty: &Type) -> String {
    let owned = owned(package, ty);
    if types::plain(package, ty) {
        return owned;
    }
    format!("{owned} as {}", view(package, ty))
}

/// The WIT name. If the type has handles, its structure follows: the names of resources are only in WIT. The shape of a named
/// type is complete.
fn name(package: &Package, name: &str, ty: Option<&Type>) -> String {
    let ty = ty.map(|ty| model::resolve_alias(&package.types, ty));
    let Some(ty) = ty.filter(|ty| {
        !matches!(ty.kind, TypeKind::Named(_)) && model::contains_handle(&package.types, ty)
    }) else {
        return format!("{name:?}");
    };
    let texts = Describer {
        types: &package.types,
        resources: &package.resources,
    };
    format!("{name:?}: {:?}", texts.describe(ty))
}

/// A use of a named type.
pub fn named(id: usize) -> Type {
    Type {
        kind: TypeKind::Named(TypeId(id)),
        size: 0,
        align: 1,
    }
}

/// The derives of the owned type.
fn derives(package: &Package, id: usize, def: &TypeDef) -> String {
    let ty = named(id);
    let default = match (&def.kind, defaults::of_definition(package, id)) {
        (TypeDefKind::Record(_), Default::Derived) => ", Default",
        _ => "",
    };
    // A type that owns resources cannot be cloned or compared.
    if types::owns(package, &ty) {
        return format!("#[derive(Debug{default})]");
    }
    let copy = if types::plain(package, &ty) {
        "Copy, "
    } else {
        ""
    };
    let eq = if types::has_float(package, &ty) {
        ""
    } else {
        ", Eq, Hash"
    };
    format!("#[derive(Clone, {copy}Debug{default}, PartialEq{eq})]")
}

/// The traits that the macro implements only on request.
fn implemented(plan: &Plan<'_>, id: usize, def: &TypeDef) -> Vec<String> {
    let package = plan.package;
    let mut traits = Vec::new();
    if !plan.get(plan.named[id]).has_handles {
        traits.push("Cbor".to_owned());
    }
    let mut errors = plan.functions.iter().filter_map(|function| function.error);
    if errors.any(|error| plan.get(error).id == Some(TypeId(id))) {
        traits.push("Error".to_owned());
    }
    let default = match (&def.kind, defaults::of_definition(package, id)) {
        (_, Default::Written(value)) => Some(value),
        (TypeDefKind::Variant { cases, .. }, Default::Derived) => {
            Some(case_path(&cases[defaults::first_case(cases)].name))
        }
        (TypeDefKind::Enum(cases), _) => Some(case_path(&cases[defaults::first_label(cases)].name)),
        _ => None,
    };
    traits.extend(default.map(|value| format!("Default = {value}")));
    traits
}

fn case_path(name: &str) -> String {
    format!("Self::{}", camel(name))
}

/// `at + 8`, or `at`.
pub fn place(offset: u32) -> String {
    if offset == 0 {
        "at".to_owned()
    } else {
        format!("at + {offset}")
    }
}

/// A string literal, split after commas and lines if it is too long for a line.
pub fn literal(text: &str) -> String {
    /// The maximum length of a piece in the list of methods.
    const LONGEST: usize = 80;
    let mut pieces = vec![String::new()];
    for part in text.split_inclusive([',', '\n']) {
        let last = pieces.last_mut().expect("the list is not empty");
        let escaped = last.escape_debug().count() + part.escape_debug().count();
        if escaped > LONGEST && !last.is_empty() {
            pieces.push(part.to_owned());
        } else {
            last.push_str(part);
        }
    }
    let mut pieces: Vec<_> = pieces.iter().map(|piece| format!("{piece:?}")).collect();
    if pieces.len() == 1 {
        return pieces.remove(0);
    }
    format!("concat!({})", pieces.join(", "))
}
