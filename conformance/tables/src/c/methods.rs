//! The table of the methods, and the functions in it.

use thalweg_bindgen::c::plan::{Call, ParameterKind, Plan, ResultKind};

use super::{compare, fill};
use crate::source::Source;

/// Writes a function that prepares a request from the JSON of its parameters.
pub fn prepare(plan: &Plan<'_>, call: &Call<'_>, out: &mut Source) {
    let head = format!(
        "uint32_t {}_from(const tw_client *tw, const given *given, tw_request *request, tw_error *error)",
        call.prepare
    );
    out.function(&head, |out| {
        out.line(&format!("  const {} client = {{*tw}};", plan.fixed.client));
        let mut has_handles = false;
        let mut arguments = String::new();
        for (number, parameter) in call.parameters.iter().enumerate() {
            let json = format!("json_array_get(given->params, {number})");
            let by = match &parameter.kind {
                ParameterKind::Handle { resource, .. } => {
                    let ty = &plan.resources[*resource].name;
                    out.line(&format!(
                        "  {ty} a{number} = {{resource_of(given, {json})}};"
                    ));
                    ""
                }
                ParameterKind::StreamWriter { writer, open } => {
                    let ty = &plan.stream_writers[*writer].name;
                    out.line(&format!("  {ty} a{number};"));
                    out.line(&format!(
                        "  uint32_t c{number} = {open}(&client, &a{number}, error);"
                    ));
                    out.line(&format!("  if (c{number} != TW_OK) {{"));
                    out.line(&format!(
                        "    return tw_fail(error, c{number}, \"no stream\");"
                    ));
                    out.line("  }");
                    out.line(&format!("  {ty}_fill({json}, &a{number});"));
                    "&"
                }
                ParameterKind::Value(form) => {
                    if plan.shapes.has_handles(*form) && !has_handles {
                        has_handles = true;
                        out.line("  current_given = given;");
                    }
                    let fill = fill::statement(&plan.shapes, *form, &json, &format!("a{number}"));
                    out.line(&format!("  {} a{number};", plan.shapes.input(*form)));
                    out.line(&format!("  {fill}"));
                    if plan.shapes.is_struct(*form) {
                        "&"
                    } else {
                        ""
                    }
                }
            };
            arguments.push_str(&format!("{by}a{number}, "));
        }
        if call.parameters.is_empty() {
            out.line("  (void)given;");
        }
        out.line(&format!(
            "  return tw_request_end({}(&client, {arguments}request), error);",
            call.prepare
        ));
    });
}

/// Writes a function that decodes a completion and compares its value with the expected JSON.
pub fn read(plan: &Plan<'_>, call: &Call<'_>, out: &mut Source) {
    let shapes = &plan.shapes;
    let head = format!(
        "uint32_t {}_is(const tw_client *tw, tw_completion *completion, expected *expected, tw_error *error)",
        call.read
    );
    out.function(&head, |out| {
        out.line(&format!("  const {} client = {{*tw}};", plan.fixed.client));
        out.line(&format!("  {} result;", call.result));
        out.line(&format!(
            "  uint32_t code = {}(&client, completion, &result, error);",
            call.read
        ));
        out.line("  const uint8_t *base = result.reply.base;");
        out.line("  (void)base;");
        out.line("  (void)expected;");
        let ok = match call.ok {
            ResultKind::Value(form) => Some(form),
            _ => None,
        };
        let mut values = ok.into_iter().chain(call.error);
        if values.any(|form| shapes.has_handles(form)) {
            out.line("  current_reply = &result.reply;");
        }
        out.line("  if (code == TW_OK) {");
        match call.ok {
            ResultKind::Nothing => {}
            ResultKind::Value(form) => {
                let condition = compare::condition(shapes, form, "result.ok", "expected->ok");
                out.line(&format!(
                    "    expected->agrees = !expected->ok || {condition};"
                ));
            }
            ResultKind::Own(_) | ResultKind::Stream(_) => {
                out.line("    expected->handle = result.ok.tw.handle;");
            }
        }
        if let Some(form) = call.error {
            let condition = compare::condition(shapes, form, "result.error", "expected->error");
            out.line("  } else if (code == TW_ERROR) {");
            out.line(&format!(
                "    expected->agrees = !expected->error || {condition};"
            ));
        }
        out.line("  }");
        out.line("  tw_reply_release(&result.reply);");
        out.line("  return code;");
    });
}

/// Writes the table.
pub fn table(plan: &Plan<'_>, out: &mut Source) {
    let interface = format!("{}.", plan.package.interface);
    out.line("static const method methods[] = {");
    for call in &plan.calls {
        let full = &call.function.full_name;
        let name = full.strip_prefix(&interface).unwrap_or(full);
        let (element, size) = match call.ok {
            ResultKind::Stream(index) => {
                let stream = &plan.streams[index];
                (format!("{}_element_is", stream.name), stream.size)
            }
            _ => ("NULL".to_owned(), 0),
        };
        out.line(&format!(
            "    {{\"{name}\", {}_from, {}_is, {element}, {size}}},",
            call.prepare, call.read
        ));
    }
    out.line("};");
}
