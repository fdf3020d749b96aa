//! Host imports: a struct of functions that the host fills in, and functions that answer them.

use super::check;
use super::handles;
use super::names::{self, MEMBER, Names};
use super::plan::{Call, Parameter, ParameterKind, Plan, ResultKind};
use super::shape::{Form, before_name};
use super::write;
use crate::model::Package;
use crate::plan::source::Source;

/// The imported interface.
pub(super) struct Host<'a> {
    /// The struct, and the prefix of the names below: `search_oracle`.
    pub(super) name: String,
    /// The function that sets a client's host.
    pub(super) set_host: String,
    pub(super) serve: String,
    pub(super) imports: Vec<Import<'a>>,
}

/// A host import.
pub(super) struct Import<'a> {
    pub(super) call: Call<'a>,
    /// The member of the struct.
    pub(super) member: String,
    pub(super) serve: String,
    pub(super) answer: String,
    pub(super) fail: String,
}

/// Names the host imports.
pub(super) fn plan<'a>(
    package: &'a Package,
    calls: Vec<Call<'a>>,
    names: &mut Names,
) -> Option<Host<'a>> {
    let host = package.host.as_ref()?;
    let stem = names::snake(&host.interface);
    let name = names.claim(&stem);
    let imports = calls.into_iter().map(|call| {
        let own = names::snake(&call.function.name);
        Import {
            member: MEMBER.of(&call.function.name),
            serve: names.claim(&format!("{stem}_{own}_serve")),
            answer: names.claim(&format!("{stem}_{own}_answer")),
            fail: names.claim(&format!("{stem}_{own}_fail")),
            call,
        }
    });
    let imports = imports.collect();
    Some(Host {
        name,
        imports,
        serve: names.claim(&format!("{stem}_serve")),
        set_host: names.claim("client_set_host"),
    })
}

/// Writes the host imports, if the service has any.
pub(super) fn emit(plan: &Plan<'_>, out: &mut Source) {
    let Some(host) = &plan.host else {
        return;
    };
    out.banner("Host imports");
    out.docs("", LEGEND);
    declare(plan, host, out);
    for (number, import) in host.imports.iter().enumerate() {
        let Call {
            function,
            signature,
            ..
        } = &import.call;
        out.docs("", &format!("{}: {signature}", function.full_name));
        let method = format!("{}[{number}]", plan.fixed.imports);
        answers(plan, import, &method, out);
        serve_one(plan, host, import, &method, out);
    }
    serve(host, out);
    out.template(
        "\
/* Sets the host of a client. `*host` is used until the client is closed, by this client alone. */
static inline uint32_t @set_host@(@client@ *client, @host@ *host, tw_error *error) {
  host->tw.serve = @serve@;
  return tw_client_set_host(&client->tw, &host->tw, error);
}",
        &[
            ("set_host", &host.set_host),
            ("client", &plan.fixed.client),
            ("host", &host.name),
            ("serve", &host.serve),
        ],
    );
}

const LEGEND: &str = "\
The service calls these functions on its host. Fill in `context` and the functions. They are
called on the thread that waits in a blocking call of the client; or in tw_host_serve, which
you call for each TW_COMPLETION_HOST_CALL that you reap. They must not make blocking calls of
the client: these return TW_WOULD_PARK.

A function answers with the function of its name and `_answer` or `_fail`, or with
tw_host_call_fail: before it returns, or later on any thread with a copy of `*call`. Its
arguments are valid until it returns. A host call that is not answered ends at its deadline.
`_answer` and `_fail` return TW_STALE if the host call has ended.";

pub(super) fn values<'a>(call: &'a Call<'_>) -> impl Iterator<Item = (&'a Parameter, Form)> {
    call.parameters
        .iter()
        .filter_map(|parameter| match parameter.kind {
            ParameterKind::Value(form) => Some((parameter, form)),
            // The parser refuses host imports with handles.
            ParameterKind::Handle { .. } | ParameterKind::StreamWriter { .. } => None,
        })
}

fn declare(plan: &Plan<'_>, host: &Host<'_>, out: &mut Source) {
    out.line(&format!("typedef struct {} {{", host.name));
    out.line("  tw_host tw;");
    out.line("  void *context;");
    for import in &host.imports {
        let parameters: String = values(&import.call)
            .map(|(parameter, form)| {
                let ty = plan.shapes.view(form);
                format!(", {}{}", before_name(&ty), parameter.name)
            })
            .collect();
        out.docs("  ", &import.call.function.docs);
        out.line(&format!(
            "  void (*{})(void *context, const tw_host_call *call{parameters});",
            import.member
        ));
    }
    out.line(&format!("}} {};", host.name));
    out.blank();
}

const HOST: Answering = Answering {
    call: "tw_host_call",
    send: "tw_host_call_answer",
};

fn answers(plan: &Plan<'_>, import: &Import<'_>, method: &str, out: &mut Source) {
    let call = &import.call;
    let ok = match call.ok {
        ResultKind::Value(form) => Some(form),
        _ => None,
    };
    let size = call.ok_size;
    answer(
        plan,
        &HOST,
        &import.answer,
        ("TW_OK", &format!("{method}.ok")),
        size,
        ok,
        out,
    );
    if call.function.error.is_some() {
        let code = ("TW_ERROR", &*format!("{method}.error"));
        answer(
            plan,
            &HOST,
            &import.fail,
            code,
            call.error_size,
            call.error,
            out,
        );
    }
}

/// The names that an answering function uses, as a host or as a guest.
pub(super) struct Answering {
    /// The type of the call.
    pub(super) call: &'static str,
    /// The function that sends the message.
    pub(super) send: &'static str,
}

/// Writes a function that answers with `code` and a value of the layout with this hash.
pub(super) fn answer(
    plan: &Plan<'_>,
    by: &Answering,
    name: &str,
    (code, layout): (&str, &str),
    size: u32,
    form: Option<Form>,
    out: &mut Source,
) {
    let shapes = &plan.shapes;
    let parameter = match form {
        None => String::new(),
        Some(form) if shapes.is_struct(form) => format!("const {} *value, ", shapes.input(form)),
        Some(form) => format!("{} value, ", shapes.input(form)),
    };
    out.line(&format!(
        "static inline uint32_t {name}(const {} *call, {parameter}tw_error *error) {{",
        by.call
    ));
    out.line("  tw_writer writer;");
    let handles = form.and_then(|form| match shapes.is_struct(form) {
        true => handles::count(shapes, form, "*value").map(|count| format!("value ? {count} : 0")),
        false => handles::count(shapes, form, "value"),
    });
    let handles = handles.unwrap_or_else(|| "0".to_owned());
    let begin = format!("tw_writer_begin(&writer, {layout}, {handles}, {size});");
    match form {
        None => out.line(&format!("  {begin}")),
        Some(form) if shapes.is_struct(form) => {
            let put = write::put(shapes, "&writer", form, "root", "*value");
            out.line(&format!("  uint32_t root = {begin}"));
            out.line("  if (tw_writer_require(&writer, value)) {");
            out.line(&format!("    {put}"));
            out.line("  }");
        }
        Some(form) => {
            let put = write::put(shapes, "&writer", form, "root", "value");
            out.line(&format!("  uint32_t root = {begin}"));
            out.line(&format!("  {put}"));
        }
    }
    out.line(&format!(
        "  return {}(call, &writer, {code}, error);",
        by.send
    ));
    out.line("}");
    out.blank();
}

/// Writes a function that checks the arguments of a host call and calls the host's function.
fn serve_one(
    plan: &Plan<'_>,
    host: &Host<'_>,
    import: &Import<'_>,
    method: &str,
    out: &mut Source,
) {
    let call = &import.call;
    let shapes = &plan.shapes;
    out.line(&format!(
        "static inline void {}(const {} *host, const tw_host_call *call, uint64_t size) {{",
        import.serve, host.name
    ));
    out.line("  const uint8_t *base = call->base;");
    out.line("  tw_checker checker;");
    let (size, _) = call.function.params_layout;
    out.line(&format!(
        "  const void *root = tw_check_root(&checker, base, size, {method}.params, {size});"
    ));
    let mut invalid = vec!["!root".to_owned()];
    let mut arguments = String::new();
    for (parameter, form) in values(call) {
        let at = format!("tw_at_offset(root, {})", parameter.offset);
        if let Some(check) = check::function(shapes, form) {
            invalid.push(format!("!{check}(&checker, {at})"));
        }
        let flat = shapes.flat(form);
        arguments.push_str(", ");
        arguments.push_str(&match shapes.is_struct(form) {
            true => format!("(const {flat} *){at}"),
            false => shapes.view_of(form, &format!("*(const {flat} *){at}")),
        });
    }
    out.line(&format!("  if ({}) {{", invalid.join(" || ")));
    out.line(&format!(
        "    tw_host_call_fail(call, TW_ARGUMENT, \"{}: the library's message is malformed\", NULL);",
        call.function.full_name
    ));
    out.line(&format!("  }} else if (!host->{}) {{", import.member));
    out.line(&format!(
        "    tw_host_call_fail(call, TW_CLOSED, \"the host has no {}\", NULL);",
        call.function.name
    ));
    out.line("  } else {");
    out.line(&format!(
        "    host->{}(host->context, call{arguments});",
        import.member
    ));
    out.line("  }");
    out.line("}");
    out.blank();
}

fn serve(host: &Host<'_>, out: &mut Source) {
    out.line(&format!(
        "static inline void {}(tw_host *tw, const tw_host_call *call, const tw_completion *completion) {{",
        host.serve
    ));
    out.line(&format!(
        "  const {0} *host = (const {0} *)(const void *)tw;",
        host.name
    ));
    out.line("  switch (completion->code) {");
    for (number, import) in host.imports.iter().enumerate() {
        out.line(&format!("  case {number}:"));
        out.line(&format!(
            "    {}(host, call, completion->data_size);",
            import.serve
        ));
        out.line("    break;");
    }
    out.line("  default:");
    out.line(
        "    tw_host_call_fail(call, TW_ARGUMENT, \"the host has no import of this number\", NULL);",
    );
    out.line("    break;");
    out.line("  }");
    out.line("}");
    out.blank();
}
