//! The structs: flat ones with checks of their layout, those to fill in, and views of lists.

use super::plan::Plan;
use super::shape::{Case, Form, Label, Member, Shape, ShapeKind, Shapes, unsigned};
use super::source::Source;

/// All types, each after those it uses.
pub(super) fn emit(plan: &Plan<'_>, out: &mut Source) {
    out.banner("Types");
    out.docs("", LEGEND);
    out.blank();
    for (index, shape) in plan.shapes.0.iter().enumerate() {
        constants(shape, out);
        match &shape.kind {
            ShapeKind::List { element, .. } => list(&plan.shapes, shape, *element, out),
            _ => {
                if shape.has_flat() {
                    flat(&plan.shapes, shape, out);
                }
                if shape.usage.goes_in && !shape.plain {
                    input(&plan.shapes, shape, out);
                }
            }
        }
        for alias in plan
            .aliases
            .iter()
            .filter(|alias| alias.form == Form::Shape(index))
        {
            let stands_for = if shape.has_flat() || shape.input == shape.flat {
                &shape.flat
            } else {
                &shape.input
            };
            out.docs("", &alias.docs);
            out.line(&format!("typedef {stands_for} {};", alias.name));
            out.blank();
        }
    }
    for alias in &plan.aliases {
        if !matches!(alias.form, Form::Shape(_)) {
            out.docs("", &alias.docs);
            out.line(&format!(
                "typedef {} {};",
                plan.shapes.input(alias.form),
                alias.name
            ));
            out.blank();
        }
    }
}

const LEGEND: &str = "\
A struct lies in messages and batches as it is declared here. In the place of text, bytes and lists
it has a tw_slice; the accessor of the same name gives what it refers to.
A struct `.._in` is the same thing to fill in, with pointers that need to live until the call that
takes them returns. A type without text or lists inside has one struct for both.";

fn docs(shape: &Shape, note: &str) -> String {
    let mut docs = shape.docs.clone();
    if docs.is_empty() {
        docs = format!("`{}`", shape.wit);
    }
    if !note.is_empty() {
        docs.push('\n');
        docs.push_str(note);
    }
    docs
}

fn labels(labels: &[Label]) -> impl Iterator<Item = (&str, &str)> {
    labels
        .iter()
        .map(|label| (label.constant.as_str(), label.docs.as_str()))
}

fn cases(cases: &[Case]) -> impl Iterator<Item = (&str, &str)> {
    cases
        .iter()
        .map(|case| (case.constant.as_str(), case.docs.as_str()))
}

/// The discriminants of a variant or an enum; the bits of flags.
fn constants(shape: &Shape, out: &mut Source) {
    let constants: Vec<_> = match &shape.kind {
        ShapeKind::Variant { cases: list, .. } => cases(list).collect(),
        ShapeKind::Enum(list) => labels(list).collect(),
        ShapeKind::Flags(list) => return flags(shape, list, out),
        _ => return,
    };
    out.line("enum {");
    for (index, (constant, docs)) in constants.iter().enumerate() {
        out.docs("  ", docs);
        let comma = if index + 1 == constants.len() {
            ""
        } else {
            ","
        };
        out.line(&format!("  {constant} = {index}{comma}"));
    }
    out.line("};");
    if let ShapeKind::Enum(_) = shape.kind {
        out.docs("", &docs(shape, ""));
        out.line(&format!("typedef {} {};", unsigned(shape.size), shape.flat));
    }
    out.blank();
}

fn flags(shape: &Shape, labels: &[Label], out: &mut Source) {
    let words = shape.size.div_ceil(4);
    if words > 1 {
        out.docs(
            "",
            &docs(shape, "Flag F is set where `words[F / 32] >> F % 32 & 1`."),
        );
        out.line(&format!("typedef struct {0} {{", shape.flat));
        out.line(&format!("  uint32_t words[{words}];"));
        out.line(&format!("}} {};", shape.flat));
        out.line(&format!("TW_SIZE({}, {});", shape.flat, shape.size));
    } else {
        out.docs("", &docs(shape, ""));
        out.line(&format!("typedef {} {};", unsigned(shape.size), shape.flat));
    }
    for (index, label) in labels.iter().enumerate() {
        out.docs("", &label.docs);
        let value = if words > 1 {
            index.to_string()
        } else {
            format!("(({})UINT32_C(0x{:x}))", shape.flat, 1u64 << index)
        };
        out.line(&format!("#define {} {value}", label.constant));
    }
    out.blank();
}

/// Which face of a type a struct shows.
#[derive(Clone, Copy, PartialEq)]
enum Face {
    Flat,
    Input,
}

fn spelled(shapes: &Shapes, form: Form, face: Face) -> &str {
    match face {
        Face::Flat => shapes.flat(form),
        Face::Input => shapes.input(form),
    }
}

fn flat(shapes: &Shapes, shape: &Shape, out: &mut Source) {
    if matches!(shape.kind, ShapeKind::Enum(_) | ShapeKind::Flags(_)) {
        return; // they are numbers, and `constants` has declared them
    }
    out.docs("", &docs(shape, ""));
    body(shapes, shape, &shape.flat, Face::Flat, out);
    out.line(&format!("TW_SIZE({}, {});", shape.flat, shape.size));
    let mut offset = |member: &str, offset: u32| {
        out.line(&format!("TW_OFFSET({}, {member}, {offset});", shape.flat));
    };
    match &shape.kind {
        ShapeKind::Record(members) => {
            for member in members {
                offset(&member.name, member.offset);
            }
        }
        ShapeKind::Variant {
            payload_offset,
            cases,
            ..
        } => {
            if cases.iter().any(|case| case.payload.is_some()) {
                offset("value", *payload_offset);
            }
        }
        ShapeKind::Option { payload_offset, .. } => offset("value", *payload_offset),
        ShapeKind::Array { .. } => offset("items", 0),
        ShapeKind::Enum(_) | ShapeKind::Flags(_) | ShapeKind::List { .. } => {}
    }
    out.blank();
}

fn input(shapes: &Shapes, shape: &Shape, out: &mut Source) {
    let note = if shape.has_flat() { "To fill in." } else { "" };
    out.docs("", &docs(shape, note));
    body(shapes, shape, &shape.input, Face::Input, out);
    out.blank();
}

fn body(shapes: &Shapes, shape: &Shape, name: &str, face: Face, out: &mut Source) {
    out.line(&format!("typedef struct {name} {{"));
    match &shape.kind {
        ShapeKind::Record(members) => {
            for member in members {
                field(shapes, member, face, out);
            }
        }
        ShapeKind::Variant {
            tag_size, cases, ..
        } => {
            let first = cases.first().map_or("", |case| case.constant.as_str());
            let last = cases.last().map_or("", |case| case.constant.as_str());
            out.line(&format!(
                "  {} tag; /* {first} .. {last} */",
                unsigned(*tag_size)
            ));
            if cases.iter().any(|case| case.payload.is_some()) {
                out.line("  union {");
                for case in cases {
                    if let Some(form) = case.payload {
                        out.line(&format!(
                            "    {} {};",
                            spelled(shapes, form, face),
                            case.name
                        ));
                    }
                }
                out.line("  } value;");
            }
        }
        ShapeKind::Option { value, .. } => {
            out.line("  bool some;");
            out.line(&format!(
                "  {} value; /* where `some` */",
                spelled(shapes, *value, face)
            ));
        }
        ShapeKind::Array { element, count, .. } => {
            let element = spelled(shapes, *element, face);
            out.line(&format!("  {element} items[{count}];"));
        }
        ShapeKind::Enum(_) | ShapeKind::Flags(_) | ShapeKind::List { .. } => {}
    }
    out.line(&format!("}} {name};"));
}

fn field(shapes: &Shapes, member: &Member, face: Face, out: &mut Source) {
    out.docs("  ", &member.docs);
    out.line(&format!(
        "  {} {};",
        spelled(shapes, member.form, face),
        member.name
    ));
}

/// A list has no struct in place, but a view to read through and, where its elements differ, one to fill in.
fn list(shapes: &Shapes, shape: &Shape, element: Form, out: &mut Source) {
    let same = shape.input == shape.flat;
    let mut emit = |name: &str, element: &str, note: &str| {
        out.docs("", &docs(shape, note));
        out.line(&format!("typedef struct {name} {{"));
        out.line(&format!("  const {element} *items;"));
        out.line("  size_t count;");
        out.line(&format!("}} {name};"));
        out.blank();
    };
    if shape.usage.comes_out || (same && shape.usage.goes_in) {
        emit(&shape.flat, shapes.flat(element), "");
    }
    if shape.usage.goes_in && !same {
        emit(&shape.input, shapes.input(element), "To fill in.");
    }
}
