//! Functions that fill in C values from JSON.

use thalweg_bindgen::c::plan::StreamWriter;
use thalweg_bindgen::c::shape::{Form, Shape, ShapeKind, Shapes};

use super::{is_byte, json_of_member, json_of_payload, label_list, stem};
use crate::source::Source;

/// A C statement that fills `place` from `json`.
pub fn statement(shapes: &Shapes, form: Form, json: &str, place: &str) -> String {
    format!("{}_from({json}, &{place});", stem(shapes, form))
}

/// Writes the function of a shape.
pub fn shape(shapes: &Shapes, index: usize, shape: &Shape, out: &mut Source) {
    let ty = &shape.input;
    let name = stem(shapes, Form::Shape(index));
    out.function(
        &format!("void {name}_from(const json_t *json, {ty} *out)"),
        |out| body(shapes, shape, ty, out),
    );
}

fn body(shapes: &Shapes, shape: &Shape, ty: &str, out: &mut Source) {
    match &shape.kind {
        ShapeKind::Record(members) => {
            for (number, member) in members.iter().enumerate() {
                let json = json_of_member(member, number);
                let place = format!("out->{}", member.name);
                out.line(&format!(
                    "  {}",
                    statement(shapes, member.form, &json, &place)
                ));
            }
        }
        ShapeKind::Variant { cases, .. } => {
            out.line("  memset(out, 0, sizeof(*out));");
            for case in cases {
                out.line(&format!("  if (is_case(json, \"{}\")) {{", case.wit));
                out.line(&format!("    out->tag = {};", case.constant));
                if let Some(form) = case.payload {
                    let json = json_of_payload(shape, case);
                    let place = format!("out->value.{}", case.name);
                    out.line(&format!("    {}", statement(shapes, form, &json, &place)));
                }
                out.line("    return;");
                out.line("  }");
            }
            out.line("  not_a_value(json);");
        }
        ShapeKind::Enum(labels) => {
            out.line(&format!(
                "  *out = ({ty})label_of(json, {});",
                label_list(labels)
            ));
        }
        ShapeKind::Flags(labels) => {
            out.line(&format!(
                "  *out = ({ty})flags_of(json, {});",
                label_list(labels)
            ));
        }
        ShapeKind::Option { value, .. } => {
            let json = "json_object_get(json, \"some\")";
            out.line("  memset(out, 0, sizeof(*out));");
            out.line("  out->some = !json_is_null(json);");
            out.line("  if (out->some) {");
            out.line(&format!(
                "    {}",
                statement(shapes, *value, json, "out->value")
            ));
            out.line("  }");
        }
        ShapeKind::Array { element, count, .. } if is_byte(*element) => {
            out.line("  tw_bytes bytes;");
            out.line("  bytes_from(json, &bytes);");
            out.line(&format!("  if (bytes.size != {count}) {{"));
            out.line("    not_a_value(json);");
            out.line("  }");
            out.line("  memcpy(out->items, bytes.data, sizeof(out->items));");
        }
        ShapeKind::Array { element, count, .. } => {
            let json = "item_at(json, index)";
            let fill = statement(shapes, *element, json, "out->items[index]");
            out.line("  size_t index;");
            out.line(&format!("  for (index = 0; index < {count}; index++) {{"));
            out.line(&format!("    {fill}"));
            out.line("  }");
        }
        ShapeKind::List { element, .. } => {
            let item = shapes.input(*element);
            let fill = statement(shapes, *element, "item_at(json, index)", "items[index]");
            out.line("  size_t index;");
            out.line("  out->count = item_count(json);");
            out.line(&format!(
                "  {item} *items = ({item} *)allocate(out->count * sizeof(*items));"
            ));
            out.line("  for (index = 0; index < out->count; index++) {");
            out.line(&format!("    {fill}"));
            out.line("  }");
            out.line("  out->items = items;");
        }
    }
}

/// Writes a function that sends all elements before the call, and closes the writer. No scenario
/// has more elements than the stream's capacity.
pub fn stream_writer(shapes: &Shapes, writer: &StreamWriter, out: &mut Source) {
    let name = &writer.name;
    // Declares the element and returns it as an argument.
    let element = |out: &mut Source, json: &str| {
        let Some(form) = writer.element else {
            return String::new();
        };
        out.line(&format!("    {} element;", shapes.input(form)));
        out.line(&format!("    {}", statement(shapes, form, json, "element")));
        let by = if shapes.is_struct(form) { "&" } else { "" };
        format!("{by}element, ")
    };
    out.function(
        &format!("void {name}_fill(const json_t *json, {name} *stream)"),
        |out| {
            if writer.is_future {
                out.line("  const json_t *value = json_object_get(json, \"some\");");
                out.line("  if (value) {");
                let element = element(out, "value");
                out.line(&format!("    {name}_set(stream, {element}NULL);"));
                out.line("  }");
            } else {
                out.line("  size_t index;");
                out.line("  for (index = 0; index < item_count(json); index++) {");
                let element = element(out, "item_at(json, index)");
                out.line(&format!("    {name}_send(stream, {element}0, NULL);"));
                out.line("  }");
                out.line(&format!("  {name}_finish(stream, NULL);"));
            }
            out.line("  stream->tw.table->stream_close(stream->tw.writer, NULL);");
        },
    );
}
