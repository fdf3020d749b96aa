//! Writes the structs: flat structs with checks of their layout, input structs, and views of lists.

use super::plan::Plan;
use super::shape::{Case, Form, Label, Member, Shape, ShapeKind, Shapes, unsigned};
use crate::plan::source::Source;

/// Writes all types, each after those that it uses.
/// `what` is what the program writes: arguments or results.
pub(super) fn emit(plan: &Plan<'_>, what: &str, out: &mut Source) {
    out.banner("Types");
    out.docs("", &LEGEND.replace("arguments", what));
    out.blank();
    let note = &format!("For {what}.");
    for (index, shape) in plan.shapes.all.iter().enumerate() {
        constants(shape, out);
        match &shape.kind {
            ShapeKind::List { element, .. } => {
                list(&plan.shapes, shape, *element, note, out);
            }
            _ => {
                if shape.has_flat() {
                    flat(&plan.shapes, shape, out);
                }
                if shape.usage.is_input && !shape.is_plain {
                    input(&plan.shapes, shape, note, out);
                }
            }
        }
        for alias in plan
            .aliases
            .iter()
            .filter(|alias| alias.form == Form::Shape(index))
        {
            let target = if shape.has_flat() || shape.input == shape.flat {
                &shape.flat
            } else {
                &shape.input
            };
            out.docs("", &alias.docs);
            out.line(&format!("typedef {target} {};", alias.name));
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
A struct has the same layout as in messages and batches. Text, bytes and lists in it are a
tw_slice; the accessor of the same name returns them. A struct `.._in` is the same type for
arguments, with pointers, which must stay valid until the call returns. A type without text,
bytes and lists has one struct for both.";

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
            &docs(shape, "Flag F is set if `words[F / 32] >> F % 32 & 1`."),
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

/// The struct of a type that is being written.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Flat,
    Input,
}

fn spelled(shapes: &Shapes, form: Form, side: Side) -> &str {
    match side {
        Side::Flat => shapes.flat(form),
        Side::Input => shapes.input(form),
    }
}

fn flat(shapes: &Shapes, shape: &Shape, out: &mut Source) {
    if matches!(shape.kind, ShapeKind::Enum(_) | ShapeKind::Flags(_)) {
        return; // they are numbers, which `constants` has declared
    }
    out.docs("", &docs(shape, ""));
    body(shapes, shape, &shape.flat, Side::Flat, out);
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

fn input(shapes: &Shapes, shape: &Shape, note: &str, out: &mut Source) {
    let note = if shape.has_flat() { note } else { "" };
    out.docs("", &docs(shape, note));
    body(shapes, shape, &shape.input, Side::Input, out);
    out.blank();
}

fn body(shapes: &Shapes, shape: &Shape, name: &str, side: Side, out: &mut Source) {
    out.line(&format!("typedef struct {name} {{"));
    match &shape.kind {
        ShapeKind::Record(members) => {
            for member in members {
                field(shapes, member, side, out);
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
                            spelled(shapes, form, side),
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
                "  {} value; /* if `some` */",
                spelled(shapes, *value, side)
            ));
        }
        ShapeKind::Array { element, count, .. } => {
            let element = spelled(shapes, *element, side);
            out.line(&format!("  {element} items[{count}];"));
        }
        ShapeKind::Enum(_) | ShapeKind::Flags(_) | ShapeKind::List { .. } => {}
    }
    out.line(&format!("}} {name};"));
}

fn field(shapes: &Shapes, member: &Member, side: Side, out: &mut Source) {
    out.docs("  ", &member.docs);
    out.line(&format!(
        "  {} {};",
        spelled(shapes, member.form, side),
        member.name
    ));
}

/// A list has no flat struct. It has a view and, if its elements differ, an input struct.
fn list(shapes: &Shapes, shape: &Shape, element: Form, note: &str, out: &mut Source) {
    let has_one_struct = shape.input == shape.flat;
    let mut emit = |name: &str, element: &str, note: &str| {
        out.docs("", &docs(shape, note));
        out.line(&format!("typedef struct {name} {{"));
        out.line(&format!("  const {element} *items;"));
        out.line("  size_t count;");
        out.line(&format!("}} {name};"));
        out.blank();
    };
    if shape.usage.is_output || (has_one_struct && shape.usage.is_input) {
        emit(&shape.flat, shapes.flat(element), "");
    }
    if shape.usage.is_input && !has_one_struct {
        emit(&shape.input, shapes.input(element), note);
    }
}
