//! `wire::Decode::SHAPE`: the description of a type, which refers to named types by their
//! constants.

use super::super::names::camel;
use crate::model::{Package, Type, TypeDefKind, TypeKind};

/// The maximum length of a text that fits on one line.
const LONGEST: usize = 64;

enum Piece {
    Text(String),
    Named(String),
}

/// The constant's expression.
pub fn of_definition(package: &Package, kind: &TypeDefKind) -> String {
    let mut pieces = Vec::new();
    definition(package, kind, &mut pieces);
    let mut pieces: Vec<String> = pieces
        .iter()
        .flat_map(|piece| match piece {
            Piece::Named(name) => vec![format!("{name}::SHAPE")],
            Piece::Text(text) => self::pieces(text)
                .into_iter()
                .map(|part| format!("wire::Shape::Text({part:?})"))
                .collect(),
        })
        .collect();
    if pieces.len() == 1 {
        return pieces.remove(0);
    }
    format!("wire::Shape::Parts(&[{}])", pieces.join(", "))
}

/// Splits a text after commas, into pieces that fit on a line.
pub fn pieces(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for part in text.split_inclusive(',') {
        let last = lines.last_mut().expect("the list is not empty");
        if last.len() + part.len() > LONGEST && !last.is_empty() {
            lines.push(part.to_owned());
        } else {
            last.push_str(part);
        }
    }
    lines
}

fn text(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        Some(Piece::Text(last)) => last.push_str(text),
        _ => pieces.push(Piece::Text(text.to_owned())),
    }
}

fn definition(package: &Package, kind: &TypeDefKind, pieces: &mut Vec<Piece>) {
    match kind {
        TypeDefKind::Record(fields) => {
            for (i, field) in fields.iter().enumerate() {
                let before = if i == 0 { "record{" } else { "," };
                text(pieces, &format!("{before}{}:", field.name));
                of(package, &field.ty, pieces);
            }
            text(pieces, "}");
        }
        TypeDefKind::Variant { cases, .. } => {
            for (i, case) in cases.iter().enumerate() {
                let before = if i == 0 { "variant{" } else { "," };
                text(pieces, &format!("{before}{}", case.name));
                if let Some(ty) = &case.payload {
                    text(pieces, "(");
                    of(package, ty, pieces);
                    text(pieces, ")");
                }
            }
            text(pieces, "}");
        }
        TypeDefKind::Enum(labels) | TypeDefKind::Flags(labels) => {
            let word = if matches!(kind, TypeDefKind::Enum(_)) {
                "enum"
            } else {
                "flags"
            };
            let names: Vec<_> = labels.iter().map(|label| label.name.as_str()).collect();
            text(pieces, &format!("{word}{{{}}}", names.join(",")));
        }
        TypeDefKind::Alias(ty) => of(package, ty, pieces),
    }
}

fn of(package: &Package, ty: &Type, pieces: &mut Vec<Piece>) {
    let mut group = |word: &str, items: Vec<Option<&Type>>| {
        for (i, item) in items.into_iter().enumerate() {
            text(pieces, if i == 0 { word } else { "," });
            match item {
                Some(ty) => of(package, ty, pieces),
                None => text(pieces, "_"),
            }
        }
        text(pieces, ">");
    };
    match &ty.kind {
        TypeKind::Array(item, count) => {
            text(pieces, "list<");
            of(package, item, pieces);
            text(pieces, &format!(",{count}>"));
        }
        TypeKind::List(item) => group("list<", vec![Some(item)]),
        TypeKind::Option(item) => group("option<", vec![Some(item)]),
        TypeKind::Result { ok, error } => group("result<", vec![ok.as_deref(), error.as_deref()]),
        TypeKind::Tuple(items) => group("tuple<", items.iter().map(Some).collect()),
        TypeKind::Named(id) => match &package.types[id.0].kind {
            TypeDefKind::Alias(ty) => of(package, ty, pieces),
            _ => pieces.push(Piece::Named(camel(&package.types[id.0].name))),
        },
        // The other types contain no named types.
        _ => text(
            pieces,
            &crate::hash::Describer {
                types: &[],
                resources: &package.resources,
            }
            .describe(ty),
        ),
    }
}
