//! Calls: to prepare a submission, to submit it, to read how it ended, and all of that at once.

use super::access;
use super::check;
use super::held;
use super::plan::{Call, Outcome, Parameter, Passed, Plan};
use super::shape::Form;
use super::source::Source;
use super::write;

/// All calls, in the order of their numbers.
pub(super) fn emit(plan: &Plan<'_>, out: &mut Source) {
    for call in &plan.calls {
        heading(plan, call, out);
        result(plan, call, out);
        prepare(plan, call, out);
        submit(plan, call, out);
        read(plan, call, out);
        blocking(plan, call, out);
        stream_error(plan, call, out);
    }
}

fn heading(plan: &Plan<'_>, call: &Call<'_>, out: &mut Source) {
    out.banner(call.function.full_name.as_str());
    let mut docs = call.signature.clone();
    for parameter in call
        .parameters
        .iter()
        .filter(|parameter| !parameter.docs.is_empty())
    {
        docs.push_str(&format!("\n`{}`: {}", parameter.name, parameter.docs));
    }
    for parameter in &call.parameters {
        if let Passed::Handle { own: true, .. } = parameter.passed {
            let name = &parameter.name;
            docs.push_str(&format!(
                "\n`{name}` is the service's once the call was submitted: do not close it."
            ));
        }
    }
    for parameter in &call.parameters {
        if let Passed::Upstream { open, .. } = &parameter.passed {
            let name = &parameter.name;
            docs.push_str(&format!(
                "\n`{name}`: made by `{open}`, for this call alone. The service has its reader once the call was submitted: \
                 who does that with tw_table.submit sets `{name}->tw.reader` to 0."
            ));
        }
    }
    for parameter in &call.parameters {
        if held(plan, parameter).is_some() && !is_handle(parameter) {
            let name = &parameter.name;
            docs.push_str(&format!(
                "\nThe resources in `{name}` are the service's once the call was submitted: do not close them."
            ));
        }
    }
    if !call.function.docs.is_empty() {
        docs.push_str("\n\n");
        docs.push_str(&call.function.docs);
    }
    out.docs("", &docs);
    out.blank();
}

/// "uint64_t ok;": C's type of the ok side, if it has one.
fn ok_type(plan: &Plan<'_>, call: &Call<'_>) -> Option<String> {
    match call.ok {
        Outcome::Nothing => None,
        Outcome::Value(form) => Some(plan.shapes.view(form)),
        Outcome::Own(index) => Some(plan.resources[index].name.clone()),
        Outcome::Stream(index) => Some(plan.streams[index].name.clone()),
    }
}

fn declare(ty: &str, name: &str) -> String {
    if ty.ends_with('*') {
        format!("{ty}{name};")
    } else {
        format!("{ty} {name};")
    }
}

fn result(plan: &Plan<'_>, call: &Call<'_>, out: &mut Source) {
    out.docs(
        "",
        "How it ended. Whatever that was: tw_reply_release(&result.reply) when done with it.",
    );
    out.line(&format!("typedef struct {} {{", call.result));
    out.line("  tw_reply reply;");
    if let Some(ty) = ok_type(plan, call) {
        let note = match call.ok {
            Outcome::Own(_) | Outcome::Stream(_) => " /* where TW_OK; yours to close */",
            _ => " /* where TW_OK */",
        };
        out.line(&format!("  {}{note}", declare(&ty, "ok")));
    }
    if let Some(form) = call.error {
        let ty = plan.shapes.view(form);
        out.line(&format!("  {} /* where TW_ERROR */", declare(&ty, "error")));
    }
    out.line(&format!("}} {};", call.result));
    out.blank();
}

/// "tw_text pattern, const search_options_in *options, "
fn parameters(plan: &Plan<'_>, call: &Call<'_>) -> String {
    let mut list = String::new();
    for parameter in &call.parameters {
        let name = &parameter.name;
        list.push_str(&match parameter.passed {
            Passed::Handle { resource, .. } => {
                format!("{} {name}, ", plan.resources[resource].name)
            }
            Passed::Upstream { upstream, .. } => {
                format!("{} *{name}, ", plan.upstreams[upstream].name)
            }
            Passed::Value(form) if plan.shapes.is_struct(form) => {
                format!("const {} *{name}, ", plan.shapes.input(form))
            }
            Passed::Value(form) => format!("{} {name}, ", plan.shapes.input(form)),
        });
    }
    list
}

/// "pattern, options, "
fn arguments(call: &Call<'_>) -> String {
    call.parameters
        .iter()
        .map(|parameter| format!("{}, ", parameter.name))
        .collect()
}

fn is_pointer(plan: &Plan<'_>, parameter: &Parameter) -> bool {
    match parameter.passed {
        Passed::Value(form) => plan.shapes.is_struct(form),
        Passed::Upstream { .. } => true,
        Passed::Handle { .. } => false,
    }
}

fn is_handle(parameter: &Parameter) -> bool {
    matches!(
        parameter.passed,
        Passed::Handle { .. } | Passed::Upstream { .. }
    )
}

/// C's number of the resources in a parameter, if it can have any.
fn held(plan: &Plan<'_>, parameter: &Parameter) -> Option<String> {
    let name = &parameter.name;
    let form = match parameter.passed {
        Passed::Handle { .. } | Passed::Upstream { .. } => return Some("1".to_owned()),
        Passed::Value(form) => form,
    };
    if !is_pointer(plan, parameter) {
        return held::count(&plan.shapes, form, name);
    }
    let count = held::count(&plan.shapes, form, &format!("*{name}"))?;
    let count = count.replace("&*", "");
    Some(format!("({name} ? {count} : 0)"))
}

fn prepare(plan: &Plan<'_>, call: &Call<'_>, out: &mut Source) {
    let is_plain = |p: &&Parameter| is_handle(p) || held(plan, p).is_none();
    let known = call.parameters.iter().all(|p| is_plain(&p));
    let counts: Vec<_> = call
        .parameters
        .iter()
        .filter_map(|p| held(plan, p))
        .collect();
    let handles = if known {
        counts.len().to_string()
    } else {
        counts.join(" + ")
    };
    let handles = handles.as_str();
    out.docs(
        "",
        "Writes the call's message and fills `*submission` but for token and deadline. Then\n\
         tw_table.submit, alone or with others; then tw_writer_free, also after a failure.",
    );
    out.line(&format!(
        "static inline uint32_t {}(const {} *client, {}tw_writer *writer, tw_submission *submission, tw_error *error) {{",
        call.prepare,
        plan.fixed.client,
        parameters(plan, call)
    ));
    let pointers: Vec<_> = call
        .parameters
        .iter()
        .filter(|p| is_pointer(plan, p))
        .collect();
    if call.parameters.is_empty() {
        begin(call, handles, "  ", out);
    } else {
        out.line(&format!("  uint32_t root = {}", begun(call, handles)));
    }
    if !pointers.is_empty() {
        let nulls: Vec<_> = pointers.iter().map(|p| format!("!{}", p.name)).collect();
        out.line(&format!("  if ({}) {{", nulls.join(" || ")));
        out.line("    writer->status = TW_ARGUMENT;");
        out.line("  } else {");
    }
    let indent = if pointers.is_empty() { "  " } else { "    " };
    let mut handle = 0;
    for parameter in &call.parameters {
        let at = match parameter.offset {
            0 => "root".to_owned(),
            offset => format!("root + {offset}"),
        };
        let name = &parameter.name;
        let line = match parameter.passed {
            Passed::Handle { .. } | Passed::Upstream { .. } => {
                let end = match parameter.passed {
                    Passed::Upstream { .. } => "->tw.reader",
                    _ => ".tw.handle",
                };
                handle += 1;
                match known {
                    true => format!("tw_put_handle(writer, {at}, {}, {name}{end});", handle - 1),
                    false => format!("tw_put_next_handle(writer, {at}, {name}{end});"),
                }
            }
            Passed::Value(form) if is_pointer(plan, parameter) => {
                write::put(&plan.shapes, form, &at, &format!("*{name}"))
            }
            Passed::Value(form) => write::put(&plan.shapes, form, &at, name),
        };
        out.line(&format!("{indent}{line}"));
    }
    if !pointers.is_empty() {
        out.line("  }");
    }
    out.line(&format!(
        "  return tw_prepare(&client->tw, writer, {}, \"{}\", submission, error);",
        call.method, call.blocking
    ));
    out.line("}");
    out.blank();
}

fn begun(call: &Call<'_>, handles: &str) -> String {
    let (size, _) = call.function.params_layout;
    format!(
        "tw_writer_begin(writer, {}, {handles}, {size});",
        hash(call.function.hashes.params)
    )
}

fn begin(call: &Call<'_>, handles: &str, indent: &str, out: &mut Source) {
    out.line(&format!("{indent}{}", begun(call, handles)));
}

pub(super) fn hash(hash: u64) -> String {
    format!("UINT64_C(0x{hash:016x})")
}

fn submit(plan: &Plan<'_>, call: &Call<'_>, out: &mut Source) {
    out.docs(
        "",
        "Submits it on the client's port. The completion will carry `token`. `*call` is for cancelling,\n\
         and may be NULL.",
    );
    out.line(&format!(
        "static inline uint32_t {}(const {} *client, {}uint64_t deadline_ns, uint64_t token, tw_handle *call, tw_error *error) {{",
        call.submit,
        plan.fixed.client,
        parameters(plan, call)
    ));
    out.template(
        "  tw_writer writer;
  tw_submission submission;
  uint32_t code = @prepare@(client, @arguments@&writer, &submission, error);
  if (code == TW_OK) {
    submission.token = token;
    submission.deadline_ns = deadline_ns;
    code = tw_submit(&client->tw, &submission, error);
@given@    if (call) {
      *call = submission.call;
    }
  }
  tw_writer_free(&writer);
  return code;
}",
        &[
            ("prepare", &call.prepare),
            ("arguments", &arguments(call)),
            ("given", &given(call)),
        ],
    );
}

/// Once it was submitted, its streams are read by the service.
fn given(call: &Call<'_>) -> String {
    let streams = call.parameters.iter().filter_map(|p| match p.passed {
        Passed::Upstream { .. } => Some(format!("      {}->tw.reader = 0;\n", p.name)),
        _ => None,
    });
    match streams.collect::<String>().as_str() {
        "" => String::new(),
        streams => format!("    if (code == TW_OK) {{\n{streams}    }}\n"),
    }
}

fn read(plan: &Plan<'_>, call: &Call<'_>, out: &mut Source) {
    out.docs(
        "",
        "Reads how it ended, and takes the completion over. Returns the ending.",
    );
    out.line(&format!(
        "static inline uint32_t {}(const {} *client, tw_completion *completion, {} *result, tw_error *error) {{",
        call.read, plan.fixed.client, call.result
    ));
    let checks_ok = !matches!(call.ok, Outcome::Nothing);
    let checks_error = call.error.is_some();
    if checks_ok || checks_error {
        out.line("  tw_checker state;");
        out.line("  tw_checker *reader = &state;");
    }
    out.line("  memset(result, 0, sizeof(*result));");
    out.line("  tw_reply_take(&result->reply, client->tw.table, completion);");
    out.line("  if (result->reply.completion.code == TW_OK) {");
    match call.ok {
        Outcome::Nothing => {
            out.line("    tw_reply_release(&result->reply);");
            out.line("    return TW_OK;");
        }
        Outcome::Value(form) => {
            value(
                plan,
                call,
                form,
                "ok",
                call.function.hashes.ok,
                call.ok_size,
                out,
            );
            if plan.shapes.is_plain(form) && !plan.shapes.is_struct(form) {
                out.line("    tw_reply_release(&result->reply);");
            }
            out.line("    return TW_OK;");
        }
        Outcome::Own(_) | Outcome::Stream(_) => {
            root(call, "uint32_t", call.function.hashes.ok, 4, None, out);
            out.line("    result->ok.tw.table = client->tw.table;");
            out.line(
                "    return tw_reply_take_root_handle(&result->reply, *root, &result->ok.tw.handle, error);",
            );
        }
    }
    out.line("  }");
    if let Some(form) = call.error {
        out.line("  if (result->reply.completion.code == TW_ERROR) {");
        value(
            plan,
            call,
            form,
            "error",
            call.function.hashes.error,
            call.error_size,
            out,
        );
        out.line("  }");
    }
    out.line("  return tw_reply_error(&result->reply, error);");
    out.line("}");
    out.blank();
}

/// Declares the root of a result or of an error, and checks it.
fn root(call: &Call<'_>, ty: &str, hash_: u64, size: u32, check: Option<String>, out: &mut Source) {
    out.line(&format!(
        "    const {ty} *root = (const {ty} *)tw_reply_root("
    ));
    out.line(&format!(
        "        &result->reply, reader, {}, {size});",
        hash(hash_)
    ));
    let wrong = match check {
        Some(check) => format!("!root || !({check})"),
        None => "!root".to_owned(),
    };
    out.line(&format!("    if ({wrong}) {{"));
    out.line(&format!(
        "      return tw_reply_malformed(&result->reply, \"{}\", error);",
        call.blocking
    ));
    out.line("    }");
}

fn value(
    plan: &Plan<'_>,
    call: &Call<'_>,
    form: Form,
    member: &str,
    hash: u64,
    size: u32,
    out: &mut Source,
) {
    let shapes = &plan.shapes;
    let mut check = check::check(shapes, form, "*root");
    if shapes.holds(form) {
        let all = "tw_check_all_handles(reader)";
        check = check.map(|check| format!("{check} && {all}"));
    }
    root(call, shapes.flat(form), hash, size, check, out);
    let view = if shapes.is_struct(form) {
        "root".to_owned()
    } else {
        access::view(shapes, form, "*root").replace("(base,", "(result->reply.base,")
    };
    out.line(&format!("    result->{member} = {view};"));
}

fn blocking(plan: &Plan<'_>, call: &Call<'_>, out: &mut Source) {
    let (how, docs) = if call.function.options.is_inline {
        (
            "tw_call_inline",
            "Calls it on this thread: see tw_call_inline. Returns the ending, or why there was no call.",
        )
    } else {
        (
            "tw_call",
            "Calls it and waits: see tw_call. Returns the ending, or why there was no call.",
        )
    };
    out.docs("", docs);
    out.line(&format!(
        "static inline uint32_t {}(const {} *client, {}uint64_t deadline_ns, {} *result, tw_error *error) {{",
        call.blocking,
        plan.fixed.client,
        parameters(plan, call),
        call.result
    ));
    out.template(
        "  tw_writer writer;
  tw_submission submission;
  tw_completion completion;
  uint32_t code = @prepare@(client, @arguments@&writer, &submission, error);
  memset(result, 0, sizeof(*result));
  if (code == TW_OK) {
    submission.deadline_ns = deadline_ns;
    code = @how@(&client->tw, &submission, &completion, error);
@given@  }
  tw_writer_free(&writer);
  return code == TW_OK ? @read@(client, &completion, result, error) : code;
}",
        &[
            ("prepare", &call.prepare),
            ("arguments", &arguments(call)),
            ("how", how),
            ("given", &given(call)),
            ("read", &call.read),
        ],
    );
}

/// Reads what a stream of the function ended with, as if the call had ended so.
fn stream_error(plan: &Plan<'_>, call: &Call<'_>, out: &mut Source) {
    let Outcome::Stream(index) = call.ok else {
        return;
    };
    if call.stream_error.is_empty() {
        return;
    }
    out.blank();
    out.docs(
        "",
        "Reads the error with which a stream of this function ended as TW_ERROR. Returns TW_ERROR and sets\n\
         result->error, which is valid until the stream is closed; or why there is none.",
    );
    out.line(&format!(
        "static inline uint32_t {}(const {} *client, const {} *stream, {} *result, tw_error *error) {{",
        call.stream_error, plan.fixed.client, plan.streams[index].name, call.result
    ));
    out.template(
        "  tw_completion completion;
  uint32_t code = tw_stream_error(&stream->tw, &completion, error);
  memset(result, 0, sizeof(*result));
  return code == TW_OK ? @read@(client, &completion, result, error) : code;
}",
        &[("read", &call.read)],
    );
}
