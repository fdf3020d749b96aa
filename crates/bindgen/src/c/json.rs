//! Tables for the runner of the conformance scenarios in C, which has no reflection: values from JSON, values against
//! JSON, and one entry a method. They stand on the package's header and on `conformance/c/values.h`.
//!
//! For each type that goes in there is `T_from(json, out)`, for each that comes out `T_is(base, view, json)`.

use super::access;
use super::plan::{Call, Outcome, Passed, Plan, Stream};
use super::shape::{Case, Form, Label, Member, Scalar, Shape, ShapeKind, Shapes};
use super::source::Source;
use super::upstream::Upstream;

/// The whole file.
pub(super) fn emit(plan: &Plan<'_>, out: &mut Source) {
    let prefix = plan.names.prefix();
    let id = format!("{}:{}", plan.package.namespace, plan.package.name);
    out.line(&format!(
        "/* Generated from {id} for the conformance runner. Do not edit. */"
    ));
    out.line(&format!("#include \"{prefix}.h\""));
    out.line("#include \"values.h\"");
    out.blank();
    let shapes = plan.shapes.0.iter().enumerate();
    // What a stream in a value carries has none in it, and is looked at before the value is.
    let (holding, others): (Vec<_>, Vec<_>) = shapes.partition(|(_, shape)| shape.holds);
    for_shapes(plan, &others, out);
    for stream in &plan.streams {
        element(plan, stream.element, &stream.name, out);
        if !stream.take.is_empty() {
            held_stream(stream, out);
        }
    }
    for_shapes(plan, &holding, out);
    for up in &plan.upstreams {
        sent_up(plan, up, out);
    }
    for call in &plan.calls {
        prepare(plan, call, out);
        read(plan, call, out);
    }
    table(plan, out);
}

fn for_shapes(plan: &Plan<'_>, shapes: &[(usize, &Shape)], out: &mut Source) {
    for (index, shape) in shapes {
        if shape.usage.goes_in {
            from(&plan.shapes, *index, shape, out);
        }
        if shape.usage.comes_out {
            is(&plan.shapes, *index, shape, out);
        }
    }
}

/// A stream in a value is JSON's list of all that comes out of it, a future its value.
fn held_stream(stream: &Stream, out: &mut Source) {
    let name = &stream.name;
    let template = if stream.is_future {
        HELD_FUTURE
    } else {
        HELD_STREAM
    };
    out.template(
        template,
        &[
            ("stream", name),
            ("take", &stream.take),
            ("batch", &stream.batch),
            ("at", &stream.at),
        ],
    );
    out.blank();
}

const HELD_STREAM: &str = "\
static inline bool @stream@_held_is(const uint8_t *base, tw_handle_ref value, const json_t *json) {
  @stream@ stream;
  @batch@ batch;
  size_t count = 0;
  bool agrees = json_is_array(json) && @take@(reply_now, value, &stream, NULL) == TW_OK;
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

const HELD_FUTURE: &str = "\
static inline bool @stream@_held_is(const uint8_t *base, tw_handle_ref value, const json_t *json) {
  @stream@ future;
  tw_batch batch;
  const void *came = NULL;
  bool agrees = @take@(reply_now, value, &future, NULL) == TW_OK;
  (void)base;
  if (agrees) {
    agrees = tw_future_wait(&future.tw, TW_FOREVER, 0, &batch, NULL) == TW_OK;
    came = agrees ? tw_batch_at(&batch, 0) : NULL;
    agrees = agrees && @stream@_element_is(batch.base, came, json);
    @stream@_close(&future, NULL);
  }
  return agrees;
}";

/// `u8`, `text`, `conformance_shape`: what the functions for a form begin with.
fn stem(shapes: &Shapes, form: Form) -> String {
    match form {
        Form::Scalar(scalar) => scalar.wit().to_owned(),
        Form::Text => "text".to_owned(),
        Form::Bytes => "bytes".to_owned(),
        Form::Held(index) => match &shapes.1[index].stream {
            Some(stream) => format!("{}_held", stream.name),
            None => "held".to_owned(),
        },
        Form::Shape(index) => shapes.get(index).flat.clone(),
    }
}

/// A list of them is bytes, in place or not.
fn is_byte(element: Form) -> bool {
    element == Form::Scalar(Scalar::U8)
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

// ---- From JSON

/// C that fills `place` from `json`.
fn fill(shapes: &Shapes, form: Form, json: &str, place: &str) -> String {
    format!("{}_from({json}, &{place});", stem(shapes, form))
}

fn from(shapes: &Shapes, index: usize, shape: &Shape, out: &mut Source) {
    let name = stem(shapes, Form::Shape(index));
    let ty = &shape.input;
    out.line(&format!(
        "static inline void {name}_from(const json_t *json, {ty} *out) {{"
    ));
    match &shape.kind {
        ShapeKind::Record(members) => {
            for (place, member) in members.iter().enumerate() {
                let json = part(member, place);
                let place = format!("out->{}", member.name);
                out.line(&format!("  {}", fill(shapes, member.form, &json, &place)));
            }
        }
        ShapeKind::Variant { cases, .. } => {
            out.line("  memset(out, 0, sizeof(*out));");
            for case in cases {
                out.line(&format!("  if (is_case(json, {})) {{", quoted(&case.wit)));
                out.line(&format!("    out->tag = {};", case.constant));
                if let Some(form) = case.payload {
                    let json = payload(shape, case);
                    let place = format!("out->value.{}", case.name);
                    out.line(&format!("    {}", fill(shapes, form, &json, &place)));
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
            out.line("  memset(out, 0, sizeof(*out));");
            out.line("  out->some = !json_is_null(json);");
            out.line("  if (out->some) {");
            let inner = fill(
                shapes,
                *value,
                "json_object_get(json, \"some\")",
                "out->value",
            );
            out.line(&format!("    {inner}"));
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
            out.line("  size_t index;");
            out.line(&format!("  for (index = 0; index < {count}; index++) {{"));
            let json = "item_at(json, index)";
            let inner = fill(shapes, *element, json, "out->items[index]");
            out.line(&format!("    {inner}"));
            out.line("  }");
        }
        ShapeKind::List { element, .. } => {
            let item = shapes.input(*element);
            out.line("  size_t index;");
            out.line("  out->count = item_count(json);");
            out.line(&format!(
                "  {item} *items = ({item} *)take(out->count * sizeof(*items));"
            ));
            out.line("  for (index = 0; index < out->count; index++) {");
            out.line(&format!(
                "    {}",
                fill(shapes, *element, "item_at(json, index)", "items[index]")
            ));
            out.line("  }");
            out.line("  out->items = items;");
        }
    }
    out.line("}");
    out.blank();
}

/// JSON of a record's field, or of a tuple's element.
fn part(member: &Member, place: usize) -> String {
    match member.wit.as_str() {
        "" => format!("json_array_get(json, {place})"),
        name => format!("json_object_get(json, {})", quoted(name)),
    }
}

/// JSON of what a case holds. A result is an object of one member, named by its side.
fn payload(shape: &Shape, case: &Case) -> String {
    let key = if shape.named {
        "value"
    } else {
        case.wit.as_str()
    };
    format!("json_object_get(json, {})", quoted(key))
}

/// An array of names, and how many: two arguments.
fn label_list(labels: &[Label]) -> String {
    let names: Vec<_> = labels.iter().map(|label| quoted(&label.wit)).collect();
    format!(
        "(const char *const[]){{{}}}, {}",
        names.join(", "),
        labels.len()
    )
}

// ---- Against JSON

/// A condition of C: what `view` gives is what `json` says.
fn same(shapes: &Shapes, form: Form, view: &str, json: &str) -> String {
    format!("{}_is(base, {view}, {json})", stem(shapes, form))
}

fn is(shapes: &Shapes, index: usize, shape: &Shape, out: &mut Source) {
    let form = Form::Shape(index);
    let name = stem(shapes, form);
    let ty = shapes.view(form);
    let space = if ty.ends_with('*') { "" } else { " " };
    out.line(&format!(
        "static inline bool {name}_is(const uint8_t *base, {ty}{space}value, const json_t *json) {{"
    ));
    out.line("  (void)base;");
    match &shape.kind {
        ShapeKind::Record(members) => {
            for (place, member) in members.iter().enumerate() {
                let view = if shapes.is_slice(member.form) {
                    format!("{}(base, value)", member.access)
                } else {
                    access::view(shapes, member.form, &format!("value->{}", member.name))
                };
                let condition = same(shapes, member.form, &view, &part(member, place));
                out.line(&format!("  if (!{condition}) {{"));
                out.line("    return false;");
                out.line("  }");
            }
            out.line("  return true;");
        }
        ShapeKind::Variant { cases, .. } => {
            for case in cases {
                out.line(&format!("  if (value->tag == {}) {{", case.constant));
                let named = format!("is_case(json, {})", quoted(&case.wit));
                match case.payload {
                    None => out.line(&format!("    return {named};")),
                    Some(form) if case.access.is_empty() => {
                        let place = format!("value->value.{}", case.name);
                        let view = access::view(shapes, form, &place);
                        let held = same(shapes, form, &view, &payload(shape, case));
                        out.line(&format!("    return {named} && {held};"));
                    }
                    Some(form) => {
                        let held = same(shapes, form, "held", &payload(shape, case));
                        out.line(&format!("    {};", declare(&shapes.view(form), "held")));
                        out.line(&format!(
                            "    return {named} && {}(base, value, &held) && {held};",
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
            let json = "json_object_get(json, \"some\")";
            let (test, view) = if shape.plain {
                (
                    "value->some".to_owned(),
                    access::view(shapes, *value, "value->value"),
                )
            } else {
                out.line(&format!("  {};", declare(&shapes.view(*value), "held")));
                (
                    format!("{}(base, value, &held)", shape.get),
                    "held".to_owned(),
                )
            };
            let held = same(shapes, *value, &view, json);
            out.line(&format!(
                "  return {test} ? !json_is_null(json) && {held} : json_is_null(json);"
            ));
        }
        ShapeKind::Array { element, .. } if is_byte(*element) => {
            out.line("  const tw_bytes bytes = {value->items, sizeof(value->items)};");
            out.line("  return bytes_is(base, bytes, json);");
        }
        ShapeKind::Array { element, count, .. } => {
            let view = match shape.at.as_str() {
                "" => access::view(shapes, *element, "value->items[index]"),
                at => format!("{at}(base, value, index)"),
            };
            let condition = same(shapes, *element, &view, "item_at(json, index)");
            out.line("  size_t index;");
            out.line(&format!("  bool same = item_count(json) == {count};"));
            out.line(&format!(
                "  for (index = 0; same && index < {count}; index++) {{"
            ));
            out.line(&format!("    same = {condition};"));
            out.line("  }");
            out.line("  return same;");
        }
        ShapeKind::List { element, .. } => {
            let view = match shape.at.as_str() {
                "" => access::view(shapes, *element, "value.items[index]"),
                at => format!("{at}(base, value, index)"),
            };
            let condition = same(shapes, *element, &view, "item_at(json, index)");
            out.line("  size_t index;");
            out.line("  bool same = value.count == item_count(json);");
            out.line("  for (index = 0; same && index < value.count; index++) {");
            out.line(&format!("    same = {condition};"));
            out.line("  }");
            out.line("  return same;");
        }
    }
    out.line("}");
    out.blank();
}

fn declare(ty: &str, name: &str) -> String {
    if ty.ends_with('*') {
        format!("{ty}{name}")
    } else {
        format!("{ty} {name}")
    }
}

// ---- Methods

/// A stream's records, whatever they are, for the table.
fn element(plan: &Plan<'_>, form: Option<Form>, name: &str, out: &mut Source) {
    let shapes = &plan.shapes;
    let Some(form) = form else {
        out.line(&format!(
            "static inline bool {name}_element_is(const uint8_t *base, const void *place, const json_t *json) {{"
        ));
        out.line("  return base && place && json_is_null(json);");
        out.line("}");
        out.blank();
        return;
    };
    let flat = shapes.flat(form);
    let view = access::view(shapes, form, "(*record)").replace("&(*record)", "record");
    out.line(&format!(
        "static inline bool {name}_element_is(const uint8_t *base, const void *place, const json_t *json) {{"
    ));
    out.line(&format!("  const {flat} *record = (const {flat} *)place;"));
    out.line(&format!("  return {};", same(shapes, form, &view, "json")));
    out.line("}");
    out.blank();
}

/// All is sent before the call: a scenario has no more than there is room for. What the call does not take is gone with the client.
fn sent_up(plan: &Plan<'_>, up: &Upstream, out: &mut Source) {
    let (name, shapes) = (&up.name, &plan.shapes);
    let declared = |out: &mut Source, json: &str| {
        let Some(form) = up.element else {
            return String::new();
        };
        out.line(&format!("    {} element;", shapes.input(form)));
        out.line(&format!("    {}", fill(shapes, form, json, "element")));
        let by = if shapes.is_struct(form) { "&" } else { "" };
        format!("{by}element, ")
    };
    out.line(&format!(
        "static inline void {name}_fill(const json_t *json, {name} *stream) {{"
    ));
    if up.is_future {
        out.line("  const json_t *value = json_object_get(json, \"some\");");
        out.line("  if (value) {");
        let element = declared(out, "value");
        out.line(&format!("    {name}_set(stream, {element}NULL);"));
        out.line("  }");
    } else {
        out.line("  size_t index;");
        out.line("  for (index = 0; index < item_count(json); index++) {");
        let element = declared(out, "item_at(json, index)");
        out.line(&format!("    {name}_send(stream, {element}0, NULL);"));
        out.line("  }");
        out.line(&format!("  {name}_end(stream, NULL);"));
    }
    out.line("  stream->tw.table->stream_close(stream->tw.writer, NULL);");
    out.line("}");
    out.blank();
}

fn prepare(plan: &Plan<'_>, call: &Call<'_>, out: &mut Source) {
    out.line(&format!(
        "static inline uint32_t {}_from(const tw_client *untyped, const given *given, tw_writer *writer, tw_submission *submission, tw_error *error) {{",
        call.prepare
    ));
    out.line(&format!(
        "  const {} client = {{*untyped}};",
        plan.fixed.client
    ));
    let values = call.parameters.iter().filter_map(|p| match p.passed {
        Passed::Value(form) => Some(form),
        Passed::Handle { .. } | Passed::Upstream { .. } => None,
    });
    if values.into_iter().any(|form| plan.shapes.holds(form)) {
        out.line("  given_now = given;");
    }
    let mut arguments = String::new();
    for (place, parameter) in call.parameters.iter().enumerate() {
        let json = format!("json_array_get(given->params, {place})");
        match parameter.passed {
            Passed::Handle { resource, .. } => {
                let ty = &plan.resources[resource].name;
                out.line(&format!(
                    "  {ty} a{place} = {{resource_of(given, {json})}};"
                ));
                arguments.push_str(&format!("a{place}, "));
            }
            Passed::Upstream { upstream, ref open } => {
                let ty = &plan.upstreams[upstream].name;
                out.line(&format!("  {ty} a{place};"));
                out.line(&format!(
                    "  uint32_t c{place} = {open}(&client, &a{place}, error);"
                ));
                out.line(&format!("  if (c{place} != TW_OK) {{"));
                out.line(&format!(
                    "    return tw_fail(error, c{place}, \"no stream\");"
                ));
                out.line("  }");
                out.line(&format!("  {ty}_fill({json}, &a{place});"));
                arguments.push_str(&format!("&a{place}, "));
            }
            Passed::Value(form) => {
                out.line(&format!("  {} a{place};", plan.shapes.input(form)));
                out.line(&format!(
                    "  {}",
                    fill(&plan.shapes, form, &json, &format!("a{place}"))
                ));
                let by = if plan.shapes.is_struct(form) { "&" } else { "" };
                arguments.push_str(&format!("{by}a{place}, "));
            }
        }
    }
    if call.parameters.is_empty() {
        out.line("  (void)given;");
    }
    out.line(&format!(
        "  return {}(&client, {arguments}writer, submission, error);",
        call.prepare
    ));
    out.line("}");
    out.blank();
}

fn read(plan: &Plan<'_>, call: &Call<'_>, out: &mut Source) {
    out.line(&format!(
        "static inline uint32_t {}_is(const tw_client *untyped, tw_completion *completion, expected *expected, tw_error *error) {{",
        call.read
    ));
    out.line(&format!(
        "  const {} client = {{*untyped}};",
        plan.fixed.client
    ));
    out.line(&format!("  {} result;", call.result));
    out.line(&format!(
        "  uint32_t code = {}(&client, completion, &result, error);",
        call.read
    ));
    out.line("  const uint8_t *base = result.reply.base;");
    out.line("  (void)base;");
    out.line("  (void)expected;");
    let ok = match call.ok {
        Outcome::Value(form) => Some(form),
        _ => None,
    };
    let mut values = ok.into_iter().chain(call.error);
    if values.any(|form| plan.shapes.holds(form)) {
        out.line("  reply_now = &result.reply;");
    }
    out.line("  if (code == TW_OK) {");
    match call.ok {
        Outcome::Nothing => {}
        Outcome::Value(form) => {
            let same = same(&plan.shapes, form, "result.ok", "expected->ok");
            out.line(&format!("    expected->agrees = !expected->ok || {same};"));
        }
        Outcome::Own(_) | Outcome::Stream(_) => {
            out.line("    expected->handle = result.ok.tw.handle;");
        }
    }
    if let Some(form) = call.error {
        let same = same(&plan.shapes, form, "result.error", "expected->error");
        out.line("  } else if (code == TW_ERROR) {");
        out.line(&format!(
            "    expected->agrees = !expected->error || {same};"
        ));
    }
    out.line("  }");
    out.line("  tw_reply_release(&result.reply);");
    out.line("  return code;");
    out.line("}");
    out.blank();
}

fn table(plan: &Plan<'_>, out: &mut Source) {
    let own = format!("{}.", plan.package.interface);
    out.line("static const method methods[] = {");
    for call in &plan.calls {
        let full = &call.function.full_name;
        let name = quoted(full.strip_prefix(&own).unwrap_or(full));
        let (element, size) = match call.ok {
            Outcome::Stream(index) => {
                let stream = &plan.streams[index];
                (format!("{}_element_is", stream.name), stream.size)
            }
            _ => ("NULL".to_owned(), 0),
        };
        out.line(&format!(
            "    {{{name}, {}_from, {}_is, {element}, {size}}},",
            call.prepare, call.read
        ));
    }
    out.line("};");
    out.blank();
}
