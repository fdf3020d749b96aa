//! Counts the resources in a value: the size of a message's table of handles is needed before the
//! table's contents.

use super::plan::Plan;
use super::shape::{Form, Shape, ShapeKind, Shapes, pointer_to};
use crate::plan::source::Source;

/// Writes a function for each input shape that can contain resources.
pub(super) fn emit(plan: &Plan<'_>, out: &mut Source) {
    let shapes = &plan.shapes;
    for shape in shapes.all.iter().filter(|shape| shape.usage.is_input) {
        match &shape.kind {
            ShapeKind::List { element, .. } if shape.has_handles => {
                list(shapes, shape, *element, out)
            }
            _ if shape.has_handles => structure(shapes, shape, out),
            _ => {}
        }
    }
}

/// A C expression for the number of resources in the value at `place`, an lvalue. `None`: it cannot
/// contain any.
pub(super) fn count(shapes: &Shapes, form: Form, place: &str) -> Option<String> {
    let Form::Shape(index) = form else {
        return matches!(form, Form::Handle(_)).then(|| "1".to_owned());
    };
    let shape = shapes.get(index);
    let argument = match shapes.is_list(form) {
        true => place.to_owned(),
        false => pointer_to(place),
    };
    shape
        .has_handles
        .then(|| format!("{}({argument})", shape.count_handles))
}

fn structure(shapes: &Shapes, shape: &Shape, out: &mut Source) {
    out.line(&format!(
        "static inline uint32_t {}(const {} *value) {{",
        shape.count_handles, shape.input
    ));
    match &shape.kind {
        ShapeKind::Record(members) => {
            let counts: Vec<_> = members
                .iter()
                .filter_map(|member| count(shapes, member.form, &format!("value->{}", member.name)))
                .collect();
            out.line("  (void)value;");
            out.line(&format!("  return {};", counts.join(" + ")));
        }
        ShapeKind::Variant { cases, .. } => {
            out.line("  switch (value->tag) {");
            for case in cases {
                let place = format!("value->value.{}", case.name);
                if let Some(count) = case.payload.and_then(|form| count(shapes, form, &place)) {
                    out.line(&format!("  case {}:", case.constant));
                    out.line(&format!("    return {count};"));
                }
            }
            out.line("  default:");
            out.line("    return 0;");
            out.line("  }");
        }
        ShapeKind::Option { value, .. } => {
            let count = count(shapes, *value, "value->value").unwrap_or_default();
            out.line(&format!("  return value->some ? {count} : 0;"));
        }
        ShapeKind::Array {
            element,
            count: elements,
            ..
        } => {
            let each = count(shapes, *element, "value->items[index]").unwrap_or_default();
            out.line("  uint32_t index;");
            out.line("  uint32_t count = 0;");
            out.line("  (void)value;");
            out.line(&format!(
                "  for (index = 0; index < {elements}; index++) {{"
            ));
            out.line(&format!("    count += {each};"));
            out.line("  }");
            out.line("  return count;");
        }
        ShapeKind::Enum(_) | ShapeKind::Flags(_) | ShapeKind::List { .. } => {}
    }
    out.line("}");
    out.blank();
}

fn list(shapes: &Shapes, shape: &Shape, element: Form, out: &mut Source) {
    let each = count(shapes, element, "list.items[index]").unwrap_or_default();
    out.line(&format!(
        "static inline uint32_t {}({} list) {{",
        shape.count_handles, shape.input
    ));
    out.line("  size_t index;");
    out.line("  uint32_t count = 0;");
    out.line("  for (index = 0; list.items && index < list.count; index++) {");
    out.line(&format!("    count += {each};"));
    out.line("  }");
    out.line("  return count;");
    out.line("}");
    out.blank();
}
