//! Writers: from a struct that was filled in to its place in a message, tails in pre-order.

use super::plan::Plan;
use super::shape::{Form, Shape, ShapeKind, Shapes};
use super::source::Source;

/// Writers of all shapes that go in.
pub(super) fn emit(plan: &Plan<'_>, out: &mut Source) {
    for shape in plan.shapes.0.iter().filter(|shape| shape.usage.goes_in) {
        match &shape.kind {
            ShapeKind::List {
                element,
                size,
                align,
            } => {
                list(&plan.shapes, shape, *element, (*size, *align), out);
            }
            _ if shape.is_struct() && !is_number(shape) => {
                structure(&plan.shapes, shape, out);
            }
            _ => {}
        }
    }
}

/// An enum, or flags: also those of several words are copied.
fn is_number(shape: &Shape) -> bool {
    matches!(shape.kind, ShapeKind::Enum(_) | ShapeKind::Flags(_))
}

/// A form that is written by copying it: no padding, no tails.
fn is_copied(shapes: &Shapes, form: Form) -> bool {
    match form {
        Form::Scalar(_) => true,
        Form::Text | Form::Bytes | Form::Held(_) => false,
        Form::Shape(index) => is_number(shapes.get(index)),
    }
}

/// C that writes the value at `place` to offset `at`. `place` is an lvalue.
pub(super) fn put(shapes: &Shapes, form: Form, at: &str, place: &str) -> String {
    match form {
        Form::Text => format!("tw_put_text(writer, {at}, {place});"),
        Form::Bytes => format!("tw_put_bytes(writer, {at}, {place});"),
        Form::Held(_) => format!("tw_put_next_handle(writer, {at}, {place}.handle);"),
        Form::Shape(index) if !is_copied(shapes, form) => {
            let by_pointer = if shapes.is_list(form) { "" } else { "&" };
            // `&*options` is what a parameter that is a pointer already would give.
            let place = format!("{by_pointer}{place}");
            let place = place.strip_prefix("&*").unwrap_or(&place);
            format!("{}(writer, {at}, {place});", shapes.get(index).write)
        }
        _ => {
            let pointer = format!("&{place}");
            let pointer = pointer.strip_prefix("&*").unwrap_or(&pointer);
            format!("tw_put(writer, {at}, {pointer}, sizeof({place}));")
        }
    }
}

fn plus(offset: u32) -> String {
    if offset == 0 {
        "at".to_owned()
    } else {
        format!("at + {offset}")
    }
}

fn structure(shapes: &Shapes, shape: &Shape, out: &mut Source) {
    out.line(&format!(
        "static inline void {}(tw_writer *writer, uint32_t at, const {} *value) {{",
        shape.write, shape.input
    ));
    match &shape.kind {
        ShapeKind::Record(members) => {
            for member in members {
                let place = format!("value->{}", member.name);
                out.line(&format!(
                    "  {}",
                    put(shapes, member.form, &plus(member.offset), &place)
                ));
            }
        }
        ShapeKind::Variant {
            payload_offset,
            cases,
            ..
        } => {
            out.line("  tw_put(writer, at, &value->tag, sizeof(value->tag));");
            if cases.iter().any(|case| case.payload.is_some()) {
                out.line("  switch (value->tag) {");
                for case in cases {
                    let Some(form) = case.payload else { continue };
                    out.line(&format!("  case {}:", case.constant));
                    let place = format!("value->value.{}", case.name);
                    out.line(&format!(
                        "    {}",
                        put(shapes, form, &plus(*payload_offset), &place)
                    ));
                    out.line("    break;");
                }
                out.line("  default:");
                out.line("    break;");
                out.line("  }");
            }
        }
        ShapeKind::Option {
            payload_offset,
            value,
        } => {
            out.line("  if (value->some) {");
            out.line("    tw_put(writer, at, &value->some, sizeof(value->some));");
            out.line(&format!(
                "    {}",
                put(shapes, *value, &plus(*payload_offset), "value->value")
            ));
            out.line("  }");
        }
        ShapeKind::Array { element, .. } if is_copied(shapes, *element) => {
            out.line("  tw_put(writer, at, value->items, sizeof(value->items));");
        }
        ShapeKind::Array {
            element,
            count,
            size,
        } => {
            let put = put(
                shapes,
                *element,
                &format!("at + index * {size}"),
                "value->items[index]",
            );
            out.line("  uint32_t index;");
            out.line(&format!("  for (index = 0; index < {count}; index++) {{"));
            out.line(&format!("    {put}"));
            out.line("  }");
        }
        ShapeKind::Enum(_) | ShapeKind::Flags(_) | ShapeKind::List { .. } => {}
    }
    out.line("}");
    out.blank();
}

fn list(shapes: &Shapes, shape: &Shape, element: Form, layout: (u32, u32), out: &mut Source) {
    let (size, align) = layout;
    out.line(&format!(
        "static inline void {}(tw_writer *writer, uint32_t at, {} list) {{",
        shape.write, shape.input
    ));
    if is_copied(shapes, element) && size == align {
        out.line(&format!(
            "  tw_put_numbers(writer, at, list.items, list.count, {size});"
        ));
    } else {
        let put = put(shapes, element, "at", "list.items[index]");
        out.line("  size_t index;");
        out.line(&format!(
            "  at = tw_put_list(writer, at, list.items, list.count, {size}, {align});"
        ));
        out.line("  for (index = 0; index < list.count && writer->status == TW_OK; index++) {");
        out.line(&format!("    {put}"));
        out.line(&format!("    at += {size};"));
        out.line("  }");
    }
    out.line("}");
    out.blank();
}
