//! Checks of results and errors, made once, before anything is read. A check tests that the value
//! at a place is valid for its type, and that every tail is inside the message and after the
//! previous one. Every check is a `tw_check` of `thalweg_message.h`.

use super::plan::Plan;
use super::shape::{Form, Label, Scalar, Shape, ShapeKind, Shapes, is_full, unsigned};
use crate::plan::source::Source;

/// Writes the checks of all shapes in results and errors that can be invalid.
pub(super) fn emit(plan: &Plan<'_>, out: &mut Source) {
    let shapes = &plan.shapes;
    for (index, shape) in shapes.all.iter().enumerate() {
        if !shape.usage.is_checked || shapes.is_trivial(Form::Shape(index)) {
            continue;
        }
        out.line(&format!(
            "static inline bool {}(tw_checker *checker, const void *place) {{",
            shape.check
        ));
        body(shapes, shape, out);
        out.line("}");
        out.blank();
    }
}

/// The function that checks a value of the form. `None`: every bit pattern is valid.
pub(super) fn function(shapes: &Shapes, form: Form) -> Option<&str> {
    if shapes.is_trivial(form) {
        return None;
    }
    Some(match form {
        Form::Scalar(Scalar::Char) => "tw_check_char",
        Form::Scalar(_) => "tw_check_bool",
        Form::Text | Form::Bytes => "tw_check_text",
        Form::Handle(_) => "tw_check_handle",
        Form::Shape(index) => &shapes.get(index).check,
    })
}

/// A C condition: the value at `place`, an lvalue, is valid.
fn condition(shapes: &Shapes, form: Form, place: &str) -> Option<String> {
    function(shapes, form).map(|function| format!("{function}(checker, &{place})"))
}

/// One more than the largest valid value of word `word` of flags.
fn limit(labels: &[Label], word: usize) -> String {
    let used = labels.len() - word * 32;
    format!("UINT32_C(0x{:x})", 1u64 << used)
}

fn body(shapes: &Shapes, shape: &Shape, out: &mut Source) {
    match &shape.kind {
        ShapeKind::List {
            element,
            size,
            align,
        } => list(shapes, *element, (*size, *align), out),
        ShapeKind::Enum(labels) => number(shape, &labels.len().to_string(), out),
        ShapeKind::Flags(labels) if shape.size <= 4 => number(shape, &limit(labels, 0), out),
        ShapeKind::Flags(labels) => {
            let last = shape.size as usize / 4 - 1;
            value(shape, out);
            out.line("  (void)checker;");
            out.line(&format!(
                "  return value->words[{last}] < {};",
                limit(labels, last)
            ));
        }
        ShapeKind::Record(members) => {
            let conditions = members.iter().filter_map(|member| {
                condition(shapes, member.form, &format!("value->{}", member.name))
            });
            value(shape, out);
            all_of(&conditions.collect::<Vec<_>>(), out);
        }
        ShapeKind::Option { value: inner, .. } => {
            let mut conditions = vec!["tw_check_bool(checker, &value->some)".to_owned()];
            let inner = condition(shapes, *inner, "value->value");
            conditions.extend(inner.map(|inner| format!("(!value->some || {inner})")));
            value(shape, out);
            all_of(&conditions, out);
        }
        ShapeKind::Variant {
            cases, tag_size, ..
        } => {
            value(shape, out);
            let checks: Vec<_> = cases
                .iter()
                .map(|case| {
                    let place = format!("value->value.{}", case.name);
                    case.payload
                        .and_then(|form| condition(shapes, form, &place))
                })
                .collect();
            let has_unchecked = checks.iter().any(Option::is_none);
            let bound = match has_unchecked {
                true if is_full(cases.len(), *tag_size) => "true".to_owned(),
                true => format!("value->tag < {}", cases.len()),
                false => "false".to_owned(),
            };
            if checks.iter().all(Option::is_none) {
                out.line("  (void)checker;");
                out.line(&format!("  return {bound};"));
                return;
            }
            out.line("  switch (value->tag) {");
            for (case, check) in cases.iter().zip(checks) {
                if let Some(check) = check {
                    out.line(&format!("  case {}:", case.constant));
                    out.line(&format!("    return {check};"));
                }
            }
            out.line("  default:");
            out.line(&format!("    return {bound};"));
            out.line("  }");
        }
        ShapeKind::Array { element, count, .. } => {
            let condition = condition(shapes, *element, "value->items[index]")
                .expect("an array is only checked if its elements are");
            value(shape, out);
            out.line("  size_t index;");
            out.line(&format!("  for (index = 0; index < {count}; index++) {{"));
            out.line(&format!("    if (!{condition}) {{"));
            out.line("      return false;");
            out.line("    }");
            out.line("  }");
            out.line("  return true;");
        }
    }
}

fn value(shape: &Shape, out: &mut Source) {
    out.line(&format!(
        "  const {0} *value = (const {0} *)place;",
        shape.flat
    ));
}

fn number(shape: &Shape, limit: &str, out: &mut Source) {
    out.line("  (void)checker;");
    out.line(&format!(
        "  return *(const {} *)place < {limit};",
        unsigned(shape.size)
    ));
}

fn all_of(conditions: &[String], out: &mut Source) {
    for (index, condition) in conditions.iter().enumerate() {
        let head = if index == 0 { "  return " } else { "         " };
        let tail = if index + 1 == conditions.len() {
            ";"
        } else {
            " &&"
        };
        out.line(&format!("{head}{condition}{tail}"));
    }
}

fn list(shapes: &Shapes, element: Form, (size, align): (u32, u32), out: &mut Source) {
    out.line("  tw_slice slice = *(const tw_slice *)place;");
    let Some(condition) = condition(shapes, element, "items[index]") else {
        out.line(&format!(
            "  return tw_check_list(checker, slice, {size}, {align}) != NULL;"
        ));
        return;
    };
    let flat = shapes.flat(element);
    out.line(&format!(
        "  const {flat} *items = (const {flat} *)tw_check_list(checker, slice, {size}, {align});"
    ));
    out.line("  uint32_t index;");
    out.line("  for (index = 0; items && index < slice.length; index++) {");
    out.line(&format!("    if (!{condition}) {{"));
    out.line("      return false;");
    out.line("    }");
    out.line("  }");
    out.line("  return items != NULL;");
}
