//! Functions that compare C values with JSON.

use thalweg_bindgen::c::plan::{Plan, Stream};
use thalweg_bindgen::c::shape::{Form, Shape, ShapeKind, Shapes};

use super::{is_byte, json_of_member, json_of_payload, label_list, stem};
use crate::source::Source;

/// A C condition: `view` is equal to `json`.
pub fn condition(shapes: &Shapes, form: Form, view: &str, json: &str) -> String {
    format!("{}_is(base, {view}, {json})", stem(shapes, form))
}

/// A C declaration.
fn declare(ty: &str, name: &str) -> String {
    match ty.ends_with('*') {
        true => format!("{ty}{name}"),
        false => format!("{ty} {name}"),
    }
}

/// Writes the function of a shape.
pub fn shape(shapes: &Shapes, index: usize, shape: &Shape, out: &mut Source) {
    let form = Form::Shape(index);
    let value = declare(&shapes.view(form), "value");
    out.function(
        &format!(
            "bool {}_is(const uint8_t *base, {value}, const json_t *json)",
            stem(shapes, form)
        ),
        |out| {
            out.line("  (void)base;");
            body(shapes, shape, out);
        },
    );
}

fn body(shapes: &Shapes, shape: &Shape, out: &mut Source) {
    match &shape.kind {
        ShapeKind::Record(members) => {
            for (number, member) in members.iter().enumerate() {
                let view = if shapes.is_slice(member.form) {
                    format!("{}(base, value)", member.access)
                } else {
                    shapes.view_of(member.form, &format!("value->{}", member.name))
                };
                let json = json_of_member(member, number);
                let condition = condition(shapes, member.form, &view, &json);
                out.line(&format!("  if (!{condition}) {{"));
                out.line("    return false;");
                out.line("  }");
            }
            out.line("  return true;");
        }
        ShapeKind::Variant { cases, .. } => {
            for case in cases {
                let json = json_of_payload(shape, case);
                let is_case = format!("is_case(json, \"{}\")", case.wit);
                out.line(&format!("  if (value->tag == {}) {{", case.constant));
                match case.payload {
                    None => out.line(&format!("    return {is_case};")),
                    Some(form) if case.access.is_empty() => {
                        let view = shapes.view_of(form, &format!("value->value.{}", case.name));
                        let condition = condition(shapes, form, &view, &json);
                        out.line(&format!("    return {is_case} && {condition};"));
                    }
                    Some(form) => {
                        let condition = condition(shapes, form, "payload", &json);
                        out.line(&format!("    {};", declare(&shapes.view(form), "payload")));
                        out.line(&format!(
                            "    return {is_case} && {}(base, value, &payload) && {condition};",
                            case.access
                        ));
                    }
                }
                out.line("  }");
            }
            out.line("  return false;");
        }
        ShapeKind::Enum(labels) => {
            out.line(&format!(
                "  return value == label_of(json, {});",
                label_list(labels)
            ));
        }
        ShapeKind::Flags(labels) => {
            out.line(&format!(
                "  return value == flags_of(json, {});",
                label_list(labels)
            ));
        }
        ShapeKind::Option { value, .. } => {
            let (is_some, view) = if shape.is_plain {
                let view = shapes.view_of(*value, "value->value");
                ("value->some".to_owned(), view)
            } else {
                out.line(&format!("  {};", declare(&shapes.view(*value), "inner")));
                (
                    format!("{}(base, value, &inner)", shape.get),
                    "inner".to_owned(),
                )
            };
            let condition = condition(shapes, *value, &view, "json_object_get(json, \"some\")");
            out.line(&format!(
                "  return {is_some} ? !json_is_null(json) && {condition} : json_is_null(json);"
            ));
        }
        ShapeKind::Array { element, .. } if is_byte(*element) => {
            out.line("  const tw_bytes bytes = {value->items, sizeof(value->items)};");
            out.line("  return bytes_is(base, bytes, json);");
        }
        ShapeKind::Array { element, count, .. } => {
            elements(
                shapes,
                shape,
                *element,
                "value->items[index]",
                &count.to_string(),
                out,
            );
        }
        ShapeKind::List { element, .. } => {
            elements(
                shapes,
                shape,
                *element,
                "value.items[index]",
                "value.count",
                out,
            );
        }
    }
}

/// Compares all elements of a list.
fn elements(
    shapes: &Shapes,
    shape: &Shape,
    element: Form,
    place: &str,
    count: &str,
    out: &mut Source,
) {
    let view = match shape.at.as_str() {
        "" => shapes.view_of(element, place),
        at => format!("{at}(base, value, index)"),
    };
    let condition = condition(shapes, element, &view, "item_at(json, index)");
    out.line("  size_t index;");
    out.line(&format!("  bool is_equal = item_count(json) == {count};"));
    out.line(&format!(
        "  for (index = 0; is_equal && index < {count}; index++) {{"
    ));
    out.line(&format!("    is_equal = {condition};"));
    out.line("  }");
    out.line("  return is_equal;");
}

/// Writes a function that compares an element of a stream, for the table of methods.
pub fn element(plan: &Plan<'_>, stream: &Stream, out: &mut Source) {
    let shapes = &plan.shapes;
    let head = format!(
        "bool {}_element_is(const uint8_t *base, const void *place, const json_t *json)",
        stream.name
    );
    out.function(&head, |out| match stream.element {
        None => out.line("  return base && place && json_is_null(json);"),
        Some(form) => {
            let flat = shapes.flat(form);
            let view = shapes.view_of(form, "*record");
            out.line(&format!("  const {flat} *record = (const {flat} *)place;"));
            out.line(&format!(
                "  return {};",
                condition(shapes, form, &view, "json")
            ));
        }
    });
}

/// Writes a function that compares a stream inside a value with a JSON list of all its elements, or
/// a future with its value.
pub fn stream_in_value(stream: &Stream, out: &mut Source) {
    out.template(
        if stream.is_future { FUTURE } else { STREAM },
        &[
            ("stream", &stream.name),
            ("take", &stream.take),
            ("batch", &stream.batch),
            ("at", &stream.at),
        ],
    );
}

const STREAM: &str = "\
static inline bool @stream@_handle_is(const uint8_t *base, tw_handle_ref value, const json_t *json) {
  @stream@ stream;
  @batch@ batch;
  size_t count = 0;
  bool agrees = json_is_array(json) && @take@(current_reply, value, &stream, NULL) == TW_OK;
  uint32_t code = agrees ? TW_OK : TW_CLOSED;
  (void)base;
  while (code == TW_OK && (code = @stream@_acquire(&stream, 256, TW_FOREVER, &batch, NULL)) == TW_OK) {
    uint32_t i;
    for (i = 0; i < batch.tw.count; i++) {
      agrees = agrees && @stream@_element_is(batch.tw.base, @at@(&batch, i), json_array_get(json, count));
      count++;
    }
    code = @stream@_release(&stream, batch.tw.count, NULL);
  }
  if (agrees) {
    @stream@_close(&stream, NULL);
  }
  return agrees && code == TW_CLOSED && count == json_array_size(json);
}";

const FUTURE: &str = "\
static inline bool @stream@_handle_is(const uint8_t *base, tw_handle_ref value, const json_t *json) {
  @stream@ future;
  tw_batch batch;
  const void *element = NULL;
  bool agrees = @take@(current_reply, value, &future, NULL) == TW_OK;
  (void)base;
  if (agrees) {
    agrees = tw_future_wait(&future.tw, TW_FOREVER, 0, &batch, NULL) == TW_OK;
    element = agrees ? tw_batch_at(&batch, 0) : NULL;
    agrees = agrees && @stream@_element_is(batch.base, element, json);
    @stream@_close(&future, NULL);
  }
  return agrees;
}";
