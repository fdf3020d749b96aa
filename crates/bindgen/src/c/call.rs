//! Calls: per function its result, and the functions that prepare a request, decode a completion
//! and make a blocking call.

use super::check;
use super::handles;
use super::plan::{Call, Parameter, ParameterKind, Plan, ResultKind};
use super::shape::{Form, before_name};
use super::write;
use crate::plan::source::Source;

/// Writes all calls, in the order of their numbers.
pub(super) fn emit(plan: &Plan<'_>, out: &mut Source) {
    if plan.calls.is_empty() {
        return;
    }
    out.banner("Calls");
    out.docs("", LEGEND);
    out.blank();
    for call in &plan.calls {
        out.docs("", &docs(plan, call));
        result(plan, call, out);
        prepare(plan, call, out);
        read(plan, call, out);
        blocking(plan, call, out);
        stream_error(plan, call, out);
    }
}

const LEGEND: &str = "\
For each function F: F calls it and waits (tw_call), and returns the outcome or why there was
no call. F_prepare fills in a tw_request, to submit the call without waiting. F_read decodes a
completion of F, which it takes over, and returns the outcome. In F_result, `ok` is set with
TW_OK and `error` with TW_ERROR. Call tw_reply_release(&result.reply) after F and F_read,
whatever they return: it frees the memory that `ok` and `error` point to. Close a resource,
stream or future in `ok`. F_stream_error reads the error of a stream that F returned and that
ended as TW_ERROR; it is valid until the stream is closed. Arguments stay yours unless the
comment of the function says otherwise.";

/// The documentation of a function: its name and signature, its parameters, and the documentation
/// in WIT.
fn docs(plan: &Plan<'_>, call: &Call<'_>) -> String {
    let mut docs = format!("{}: {}", call.function.full_name, call.signature);
    for parameter in &call.parameters {
        if !parameter.docs.is_empty() {
            docs.push_str(&format!("\n`{}`: {}", parameter.name, parameter.docs));
        }
    }
    for parameter in &call.parameters {
        let name = &parameter.name;
        let note = match &parameter.kind {
            ParameterKind::Handle { is_own: true, .. } => {
                format!(
                    "`{name}` belongs to the service once the call is submitted: do not close it."
                )
            }
            ParameterKind::StreamWriter { open, .. } => {
                format!("`{name}` is created by `{open}`, for one call.")
            }
            ParameterKind::Value(form) if plan.shapes.has_handles(*form) => {
                format!(
                    "Resources in `{name}` belong to the service once the call is submitted: do not close them."
                )
            }
            ParameterKind::Handle { .. } | ParameterKind::Value(_) => continue,
        };
        docs.push('\n');
        docs.push_str(&note);
    }
    if !call.function.docs.is_empty() {
        docs.push_str("\n\n");
        docs.push_str(&call.function.docs);
    }
    docs
}

fn result(plan: &Plan<'_>, call: &Call<'_>, out: &mut Source) {
    let ok = match call.ok {
        ResultKind::Nothing => None,
        ResultKind::Value(form) => Some(plan.shapes.view(form)),
        ResultKind::Own(index) => Some(plan.resources[index].name.clone()),
        ResultKind::Stream(index) => Some(plan.streams[index].name.clone()),
    };
    out.line(&format!("typedef struct {} {{", call.result));
    out.line("  tw_reply reply;");
    if let Some(ty) = ok {
        out.line(&format!("  {}ok;", before_name(&ty)));
    }
    if let Some(form) = call.error {
        out.line(&format!("  {}error;", before_name(&plan.shapes.view(form))));
    }
    out.line(&format!("}} {};", call.result));
    out.blank();
}

/// C parameters, such as `tw_text pattern, const search_options_in *options, `.
fn parameters(plan: &Plan<'_>, call: &Call<'_>) -> String {
    let mut list = String::new();
    for parameter in &call.parameters {
        let name = &parameter.name;
        list.push_str(&match parameter.kind {
            ParameterKind::Handle { resource, .. } => {
                format!("{} {name}, ", plan.resources[resource].name)
            }
            ParameterKind::StreamWriter { writer, .. } => {
                format!("{} *{name}, ", plan.stream_writers[writer].name)
            }
            ParameterKind::Value(form) if plan.shapes.is_struct(form) => {
                format!("const {} *{name}, ", plan.shapes.input(form))
            }
            ParameterKind::Value(form) => format!("{} {name}, ", plan.shapes.input(form)),
        });
    }
    list
}

/// C arguments, such as `pattern, options, `.
fn arguments(call: &Call<'_>) -> String {
    call.parameters
        .iter()
        .map(|parameter| format!("{}, ", parameter.name))
        .collect()
}

/// A C expression for the number of handles in the arguments.
fn handle_count(plan: &Plan<'_>, call: &Call<'_>) -> String {
    let mut fixed = 0;
    let mut counts = Vec::new();
    for Parameter { name, kind, .. } in &call.parameters {
        match *kind {
            ParameterKind::Handle { .. } | ParameterKind::StreamWriter { .. } => fixed += 1,
            ParameterKind::Value(form) if plan.shapes.is_struct(form) => {
                let count = handles::count(&plan.shapes, form, &format!("*{name}"));
                counts.extend(count.map(|count| format!("({name} ? {count} : 0)")));
            }
            ParameterKind::Value(form) => {
                counts.extend(handles::count(&plan.shapes, form, name));
            }
        }
    }
    if fixed > 0 || counts.is_empty() {
        counts.insert(0, fixed.to_string());
    }
    counts.join(" + ")
}

fn prepare(plan: &Plan<'_>, call: &Call<'_>, out: &mut Source) {
    out.line(&format!(
        "static inline tw_request *{}(const {} *client, {}tw_request *request) {{",
        call.prepare,
        plan.fixed.client,
        parameters(plan, call)
    ));
    let root = if call.parameters.is_empty() {
        ""
    } else {
        "uint32_t root = "
    };
    let (size, _) = call.function.params_layout;
    out.line(&format!(
        "  {root}tw_request_begin(request, &client->tw, {}, {}, {}, {size});",
        plan.fixed.methods,
        call.method,
        handle_count(plan, call)
    ));
    for parameter in &call.parameters {
        let at = match parameter.offset {
            0 => "root".to_owned(),
            offset => format!("root + {offset}"),
        };
        let name = &parameter.name;
        match parameter.kind {
            ParameterKind::StreamWriter { .. } => out.line(&format!(
                "  tw_request_put_stream(request, {at}, {name} ? &{name}->tw : NULL);"
            )),
            ParameterKind::Handle { .. } => out.line(&format!(
                "  tw_put_handle(&request->writer, {at}, {name}.tw.handle);"
            )),
            ParameterKind::Value(form) if plan.shapes.is_struct(form) => {
                let place = format!("*{name}");
                let put = write::put(&plan.shapes, "&request->writer", form, &at, &place);
                out.line(&format!(
                    "  if (tw_writer_require(&request->writer, {name})) {{"
                ));
                out.line(&format!("    {put}"));
                out.line("  }");
            }
            ParameterKind::Value(form) => {
                let put = write::put(&plan.shapes, "&request->writer", form, &at, name);
                out.line(&format!("  {put}"));
            }
        }
    }
    out.line("  return request;");
    out.line("}");
    out.blank();
}

fn read(plan: &Plan<'_>, call: &Call<'_>, out: &mut Source) {
    out.line(&format!(
        "static inline uint32_t {}(const {} *client, tw_completion *completion, {} *result, tw_error *error) {{",
        call.read, plan.fixed.client, call.result
    ));
    out.line(&format!(
        "  tw_decoder decoder = tw_decode_begin(&client->tw, &{}[{}], completion, result, sizeof(*result), error);",
        plan.fixed.methods, call.method
    ));
    match call.ok {
        ResultKind::Nothing => {}
        ResultKind::Value(form) => decode(plan, "TW_OK", form, call.ok_size, "ok", out),
        ResultKind::Own(_) => out.line("  tw_decode_resource(&decoder, &result->ok.tw);"),
        ResultKind::Stream(_) => out.line("  tw_decode_stream(&decoder, &result->ok.tw);"),
    }
    if let Some(form) = call.error {
        decode(plan, "TW_ERROR", form, call.error_size, "error", out);
    }
    out.line("  return tw_decode_end(&decoder);");
    out.line("}");
    out.blank();
}

/// Writes C that decodes the value of a reply with this code into a member of the result.
fn decode(plan: &Plan<'_>, code: &str, form: Form, size: u32, member: &str, out: &mut Source) {
    let shapes = &plan.shapes;
    let check = check::function(shapes, form).unwrap_or("NULL");
    match form {
        Form::Text => out.line(&format!(
            "  tw_decode_text(&decoder, {code}, &result->{member});"
        )),
        Form::Bytes => out.line(&format!(
            "  tw_decode_bytes(&decoder, {code}, &result->{member});"
        )),
        Form::Shape(index) if shapes.is_list(form) => {
            out.line(&format!(
                "  if (tw_decode_list(&decoder, {code}, {check})) {{"
            ));
            out.line(&format!(
                "    result->{member} = {}(result->reply.base, decoder.slice);",
                shapes.get(index).get
            ));
            out.line("  }");
        }
        Form::Shape(index) if shapes.is_struct(form) => {
            let flat = &shapes.get(index).flat;
            out.line(&format!(
                "  result->{member} = (const {flat} *)tw_decode_root(&decoder, {code}, {size}, {check});"
            ));
        }
        _ => out.line(&format!(
            "  tw_decode_value(&decoder, {code}, &result->{member}, sizeof(result->{member}), {check});"
        )),
    }
}

fn blocking(plan: &Plan<'_>, call: &Call<'_>, out: &mut Source) {
    let how = match call.function.options.is_inline {
        true => "tw_request_call_inline",
        false => "tw_request_call",
    };
    out.line(&format!(
        "static inline uint32_t {}(const {} *client, {}uint64_t deadline_ns, {} *result, tw_error *error) {{",
        call.blocking,
        plan.fixed.client,
        parameters(plan, call),
        call.result
    ));
    out.template(
        "  tw_request request;
  @prepare@(client, @arguments@&request);
  return @read@(client, @how@(&request, deadline_ns, error), result, error);
}",
        &[
            ("prepare", &call.prepare),
            ("arguments", &arguments(call)),
            ("how", how),
            ("read", &call.read),
        ],
    );
}

fn stream_error(plan: &Plan<'_>, call: &Call<'_>, out: &mut Source) {
    let ResultKind::Stream(index) = call.ok else {
        return;
    };
    if call.stream_error.is_empty() {
        return;
    }
    out.line(&format!(
        "static inline uint32_t {}(const {} *client, const {} *stream, {} *result, tw_error *error) {{",
        call.stream_error, plan.fixed.client, plan.streams[index].name, call.result
    ));
    out.template(
        "  tw_completion completion;
  return @read@(client, tw_stream_error(&stream->tw, &completion, error), result, error);
}",
        &[("read", &call.read)],
    );
}
