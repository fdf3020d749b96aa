//! Writes input structs into messages, with tails in pre-order.

use super::plan::Plan;
use super::shape::{Form, Shape, ShapeKind, Shapes, pointer_to};
use crate::plan::source::Source;

/// Writes a function for each input shape.
pub(super) fn emit(plan: &Plan<'_>, out: &mut Source) {
    for shape in plan.shapes.all.iter().filter(|shape| shape.usage.is_input) {
        match &shape.kind {
            ShapeKind::List {
                element,
                size,
                align,
            } => {
                list(&plan.shapes, shape, *element, (*size, *align), out);
            }
            _ if shape.is_struct() && !shape.is_dense => {
                structure(&plan.shapes, shape, out);
            }
            _ => {}
        }
    }
}

/// A form that is copied: it has no padding and no tails.
fn is_copied(shapes: &Shapes, form: Form) -> bool {
    match form {
        Form::Scalar(_) => true,
        Form::Text | Form::Bytes | Form::Handle(_) => false,
        Form::Shape(index) => shapes.get(index).is_dense,
    }
}

/// A C statement that writes the value at `place`, an lvalue, to offset `at`. `writer` is a
/// `tw_writer *`.
pub(super) fn put(shapes: &Shapes, writer: &str, form: Form, at: &str, place: &str) -> String {
    match form {
        Form::Text => format!("tw_put_text({writer}, {at}, {place});"),
        Form::Bytes => format!("tw_put_bytes({writer}, {at}, {place});"),
        Form::Handle(_) => format!("tw_put_handle({writer}, {at}, {place}.handle);"),
        Form::Shape(index) if !is_copied(shapes, form) => {
            let argument = match shapes.is_list(form) {
                true => place.to_owned(),
                false => pointer_to(place),
            };
            format!("{}({writer}, {at}, {argument});", shapes.get(index).write)
        }
        _ => format!(
            "tw_put({writer}, {at}, {}, sizeof({place}));",
            pointer_to(place)
        ),
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
                    put(shapes, "writer", member.form, &plus(member.offset), &place)
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
                        put(shapes, "writer", form, &plus(*payload_offset), &place)
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
                put(
                    shapes,
                    "writer",
                    *value,
                    &plus(*payload_offset),
                    "value->value"
                )
            ));
            out.line("  }");
        }
        ShapeKind::Array {
            element,
            count,
            size,
        } => {
            let put = put(
                shapes,
                "writer",
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
    if is_copied(shapes, element) {
        out.line(&format!(
            "  tw_put_items(writer, at, list.items, list.count, {size}, {align});"
        ));
    } else {
        let put = put(shapes, "writer", element, "at", "list.items[index]");
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
