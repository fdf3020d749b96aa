//! Writes the accessors: from a slice, an option or a case of a variant to its value.

use super::plan::Plan;
use super::shape::{Form, Member, Shape, ShapeKind, Shapes, before_name};
use crate::plan::source::Source;

/// Writes the accessors of all types that are output and not plain. `of` is what contains the values.
pub(super) fn emit(plan: &Plan<'_>, of: &str, out: &mut Source) {
    let shapes = &plan.shapes;
    if !shapes
        .all
        .iter()
        .any(|shape| shape.usage.is_output && !shape.is_plain)
    {
        return;
    }
    out.banner("Accessors");
    out.docs(
        "",
        &format!("`base` is that of {of} that contains the value. {LEGEND}"),
    );
    out.blank();
    for shape in shapes
        .all
        .iter()
        .filter(|shape| shape.usage.is_output && !shape.is_plain)
    {
        match &shape.kind {
            ShapeKind::Record(members) => {
                for member in members.iter().filter(|member| !member.access.is_empty()) {
                    out.docs("", &member.docs);
                    accessor(shapes, shape, member, out);
                }
            }
            ShapeKind::Variant { cases, .. } => {
                for case in cases {
                    let Some(form) = case.payload else { continue };
                    out.docs("", &case.docs);
                    let test = format!("value->tag != {}", case.constant);
                    let place = format!("value->value.{}", case.name);
                    conditional(shapes, shape, &case.access, form, &test, &place, out);
                }
            }
            ShapeKind::Option { value, .. } => {
                conditional(
                    shapes,
                    shape,
                    &shape.get,
                    *value,
                    "!value->some",
                    "value->value",
                    out,
                );
            }
            ShapeKind::List { element, .. } => {
                list(shapes, shape, *element, out);
                if !shape.at.is_empty() {
                    element_at(shapes, shape, *element, out);
                }
            }
            ShapeKind::Array { element, .. } => {
                if !shape.at.is_empty() {
                    array_at(shapes, shape, *element, out);
                }
            }
            ShapeKind::Enum(_) | ShapeKind::Flags(_) => {}
        }
    }
}

const LEGEND: &str = "\
The result is valid as long as that memory. An accessor that returns bool sets `*out` if it returns true.";

/// The accessor of a record's member that is a slice, or an option that contains one.
fn accessor(shapes: &Shapes, shape: &Shape, member: &Member, out: &mut Source) {
    let (name, form) = (&member.access, member.form);
    let place = format!("value->{}", member.name);
    let parameters = format!("const uint8_t *base, const {} *value", shape.flat);
    match form {
        Form::Shape(index) if shapes.is_open_option(form) => {
            let option = shapes.get(index);
            let ShapeKind::Option { value, .. } = option.kind else {
                return;
            };
            let ty = before_name(&shapes.view(value));
            out.line(&format!(
                "static inline bool {name}({parameters}, {ty}*out) {{"
            ));
            out.line(&format!("  return {}(base, &{place}, out);", option.get));
        }
        _ => {
            let ty = before_name(&shapes.view(form));
            out.line(&format!("static inline {ty}{name}({parameters}) {{"));
            out.line(&format!("  return {};", shapes.view_of(form, &place)));
        }
    }
    out.line("}");
    out.blank();
}

/// The accessor of a value that exists unless the condition `absent` holds.
fn conditional(
    shapes: &Shapes,
    shape: &Shape,
    name: &str,
    form: Form,
    absent: &str,
    place: &str,
    out: &mut Source,
) {
    let ty = before_name(&shapes.view(form));
    out.line(&format!(
        "static inline bool {name}(const uint8_t *base, const {} *value, {ty}*out) {{",
        shape.flat
    ));
    if !shapes.is_slice(form) {
        out.line("  (void)base;");
    }
    out.line(&format!("  if ({absent}) {{"));
    out.line("    return false;");
    out.line("  }");
    out.line(&format!("  *out = {};", shapes.view_of(form, place)));
    out.line("  return true;");
    out.line("}");
    out.blank();
}

fn list(shapes: &Shapes, shape: &Shape, element: Form, out: &mut Source) {
    out.template(
        "\
static inline @list@ @view@(const uint8_t *base, tw_slice slice) {
  @list@ list;
  list.items = (const @element@ *)tw_at(base, slice);
  list.count = slice.length;
  return list;
}",
        &[
            ("wit", &shape.wit),
            ("list", &shape.flat),
            ("view", &shape.get),
            ("element", shapes.flat(element)),
        ],
    );
}

fn element_at(shapes: &Shapes, shape: &Shape, element: Form, out: &mut Source) {
    out.template(
        "\
static inline @element@ @at@(const uint8_t *base, @list@ list, size_t index) {
  return @view@;
}",
        &[
            ("element", &shapes.view(element)),
            ("at", &shape.at),
            ("list", &shape.flat),
            ("view", &shapes.view_of(element, "list.items[index]")),
        ],
    );
}

fn array_at(shapes: &Shapes, shape: &Shape, element: Form, out: &mut Source) {
    out.template(
        "\
static inline @element@ @at@(const uint8_t *base, const @array@ *value, size_t index) {
  return @view@;
}",
        &[
            ("element", &shapes.view(element)),
            ("at", &shape.at),
            ("array", &shape.flat),
            ("view", &shapes.view_of(element, "value->items[index]")),
        ],
    );
}
