//! Checks of results and errors: once, before anything is read. A check says whether the value at a place is
//! one of its type, with every tail inside the message and after the one before.

use super::plan::Plan;
use super::shape::{Form, Label, Scalar, Shape, ShapeKind, Shapes, is_full};
use super::source::Source;

/// Checks of all shapes in results and errors that can be wrong.
pub(super) fn emit(plan: &Plan<'_>, out: &mut Source) {
    let shapes = &plan.shapes;
    for (index, shape) in shapes.0.iter().enumerate() {
        if !shape.usage.checked || shapes.is_trivial(Form::Shape(index)) {
            continue;
        }
        match &shape.kind {
            ShapeKind::List {
                element,
                size,
                align,
            } => {
                list(shapes, shape, *element, (*size, *align), out);
            }
            _ if shape.is_struct() => structure(shapes, shape, out),
            _ => {}
        }
    }
}

/// A condition of C that holds if the value at `place`, an lvalue, is one. `None`: it always is.
pub(super) fn check(shapes: &Shapes, form: Form, place: &str) -> Option<String> {
    if shapes.is_trivial(form) {
        return None;
    }
    let pointer = format!("&{place}");
    let pointer = pointer.strip_prefix("&*").unwrap_or(&pointer);
    Some(match form {
        Form::Scalar(Scalar::Char) => format!("tw_check_char({place})"),
        Form::Scalar(_) => format!("tw_check_bool({pointer})"),
        Form::Text | Form::Bytes => format!("tw_check_text(reader, {place})"),
        Form::Held(_) => format!("tw_check_handle(reader, {place})"),
        Form::Shape(index) => {
            let shape = shapes.get(index);
            match &shape.kind {
                ShapeKind::Enum(labels) => format!("{place} < {}", labels.len()),
                ShapeKind::Flags(labels) if shape.size <= 4 => {
                    format!("{place} < {}", limit(labels, 0))
                }
                ShapeKind::List { .. } => format!("{}(reader, {place})", shape.check),
                _ => format!("{}(reader, {pointer})", shape.check),
            }
        }
    })
}

/// One more than the largest legal value of word `word` of flags that do not use all of it.
fn limit(labels: &[Label], word: usize) -> String {
    let used = labels.len() - word * 32;
    format!("UINT32_C(0x{:x})", 1u64 << used)
}

fn structure(shapes: &Shapes, shape: &Shape, out: &mut Source) {
    out.line(&format!(
        "static inline bool {}(tw_checker *reader, const {} *value) {{",
        shape.check, shape.flat
    ));
    let mut conditions = Vec::new();
    match &shape.kind {
        ShapeKind::Record(members) => {
            for member in members {
                conditions.extend(check(
                    shapes,
                    member.form,
                    &format!("value->{}", member.name),
                ));
            }
        }
        ShapeKind::Flags(labels) => {
            let last = shape.size as usize / 4 - 1;
            conditions.push(format!("value->words[{last}] < {}", limit(labels, last)));
        }
        ShapeKind::Option { value, .. } => {
            let inner = check(shapes, *value, "value->value");
            conditions.push("tw_check_bool(&value->some)".to_owned());
            conditions.extend(inner.map(|inner| format!("(!value->some || {inner})")));
        }
        ShapeKind::Variant {
            cases, tag_size, ..
        } => {
            out.line("  (void)reader;");
            out.line("  switch (value->tag) {");
            let mut rest = false;
            for case in cases {
                let place = format!("value->value.{}", case.name);
                match case.payload.and_then(|form| check(shapes, form, &place)) {
                    Some(condition) => {
                        out.line(&format!("  case {}:", case.constant));
                        out.line(&format!("    return {condition};"));
                    }
                    None => rest = true,
                }
            }
            out.line("  default:");
            let bound = match rest {
                true if is_full(cases.len(), *tag_size) => "true".to_owned(),
                true => format!("value->tag < {}", cases.len()),
                false => "false".to_owned(),
            };
            out.line(&format!("    return {bound};"));
            out.line("  }");
            out.line("}");
            out.blank();
            return;
        }
        ShapeKind::Array { element, count, .. } => {
            let condition = check(shapes, *element, "value->items[index]");
            let condition = condition.expect("what cannot be wrong has no check");
            out.line("  size_t index;");
            if !condition.contains("(reader") {
                out.line("  (void)reader;");
            }
            out.line(&format!("  for (index = 0; index < {count}; index++) {{"));
            out.line(&format!("    if (!({condition})) {{"));
            out.line("      return false;");
            out.line("    }");
            out.line("  }");
            out.line("  return true;");
            out.line("}");
            out.blank();
            return;
        }
        ShapeKind::Enum(_) | ShapeKind::List { .. } => {}
    }
    if !conditions
        .iter()
        .any(|condition| condition.contains("(reader"))
    {
        out.line("  (void)reader;");
    }
    for (index, condition) in conditions.iter().enumerate() {
        let head = if index == 0 { "  return " } else { "         " };
        let tail = if index + 1 == conditions.len() {
            ";"
        } else {
            " &&"
        };
        out.line(&format!("{head}{condition}{tail}"));
    }
    out.line("}");
    out.blank();
}

fn list(shapes: &Shapes, shape: &Shape, element: Form, layout: (u32, u32), out: &mut Source) {
    let (size, align) = layout;
    out.line(&format!(
        "static inline bool {}(tw_checker *reader, tw_slice slice) {{",
        shape.check
    ));
    match check(shapes, element, "items[index]") {
        None => {
            out.line(&format!(
                "  return tw_check_list(reader, slice, {size}, {align}) != NULL;"
            ));
        }
        Some(condition) => {
            let flat = shapes.flat(element);
            out.line(&format!(
                "  const {flat} *items = (const {flat} *)tw_check_list(reader, slice, {size}, {align});"
            ));
            out.line("  uint32_t index;");
            out.line("  for (index = 0; items && index < slice.length; index++) {");
            out.line(&format!("    if (!({condition})) {{"));
            out.line("      return false;");
            out.line("    }");
            out.line("  }");
            out.line("  return items != NULL;");
        }
    }
    out.line("}");
    out.blank();
}
