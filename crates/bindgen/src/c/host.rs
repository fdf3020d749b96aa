//! What the service asks of its host: a struct of functions to fill in, and how each of them answers.

use super::access;
use super::call::hash;
use super::check;
use super::plan::{Call, Outcome, Parameter, Passed, Plan};
use super::shape::Form;
use super::source::Source;
use super::write;

/// The names of a host.
pub(super) struct Host<'a> {
    /// `search_oracle`: the struct, and what the names below begin with.
    pub(super) name: String,
    /// Gives a client its host.
    pub(super) register: String,
    pub(super) serve: String,
    pub(super) functions: Vec<Asked<'a>>,
}

/// A function of the host.
pub(super) struct Asked<'a> {
    pub(super) call: Call<'a>,
    /// The struct's member.
    pub(super) member: String,
    pub(super) serve: String,
    pub(super) answer: String,
    pub(super) fail: String,
}

/// All of it, if the service asks anything.
pub(super) fn emit(plan: &Plan<'_>, out: &mut Source) {
    let Some(host) = &plan.host else {
        return;
    };
    out.banner("What the service asks of its host");
    declare(plan, host, out);
    for asked in &host.functions {
        out.docs("", &asked.call.signature);
        out.blank();
        answers(plan, asked, out);
        serve_one(plan, host, asked, out);
    }
    serve(host, out);
    out.template(
        "\
/* From now on the functions of `*host` are called for what the client's service asks: on the thread that waits in a
 * blocking call of this client, or for each TW_COMPLETION_HOST_CALL that comes to its port by tw_host_serve. They must not
 * make blocking calls of this client: those end as TW_WOULD_PARK. `*host` is used until the client is closed, and is
 * one client's. */
static inline uint32_t @register@(@client@ *client, @host@ *host, tw_error *error) {
  host->tw.serve = @serve@;
  return tw_client_set_host(&client->tw, &host->tw, error);
}",
        &[
            ("register", &host.register),
            ("client", &plan.fixed.client),
            ("host", &host.name),
            ("serve", &host.serve),
        ],
    );
}

fn values<'a>(call: &'a Call<'_>) -> impl Iterator<Item = (&'a Parameter, Form)> {
    let parameters = call.parameters.iter();
    parameters.filter_map(|parameter| match parameter.passed {
        Passed::Value(form) => Some((parameter, form)),
        // The parser lets none through.
        Passed::Handle { .. } | Passed::Upstream { .. } => None,
    })
}

/// "uint64_t " or "const search_point *": what stands before a name.
fn before(ty: &str) -> String {
    match ty.ends_with('*') {
        true => ty.to_owned(),
        false => format!("{ty} "),
    }
}

fn declare(plan: &Plan<'_>, host: &Host<'_>, out: &mut Source) {
    out.docs(
        "",
        "Fill in `context` and the functions; the rest is not yours. A function answers by the function below that has its \
         name and `_answer` or `_fail`, or by tw_host_call_fail: before it returns, or later on any thread with a copy of `*asked`. What \
         it is given is valid until it returns. What nobody answers ends by its deadline.",
    );
    out.line(&format!("typedef struct {} {{", host.name));
    out.line("  tw_host tw;");
    out.line("  void *context;");
    for asked in &host.functions {
        let parameters: String = values(&asked.call)
            .map(|(parameter, form)| {
                format!(", {}{}", before(&plan.shapes.view(form)), parameter.name)
            })
            .collect();
        out.docs("  ", &asked.call.function.docs);
        out.line(&format!(
            "  void (*{})(void *context, const tw_host_call *asked{parameters});",
            asked.member
        ));
    }
    out.line(&format!("}} {};", host.name));
    out.blank();
}

fn answers(plan: &Plan<'_>, asked: &Asked<'_>, out: &mut Source) {
    let call = &asked.call;
    let ok = match call.ok {
        Outcome::Value(form) => Some(form),
        _ => None,
    };
    let hashes = call.function.hashes;
    let one =
        |name: &str, code: &str, hash: u64, size: u32, form: Option<Form>, out: &mut Source| {
            out.docs(
                "",
                &format!(
                    "Answers with {}. TW_STALE: too late.",
                    match code {
                        "TW_OK" => "the result",
                        _ => "the error",
                    }
                ),
            );
            answer(plan, name, code, (hash, size), form, out);
        };
    one(&asked.answer, "TW_OK", hashes.ok, call.ok_size, ok, out);
    if call.function.error.is_some() {
        one(
            &asked.fail,
            "TW_ERROR",
            hashes.error,
            call.error_size,
            call.error,
            out,
        );
    }
}

fn answer(
    plan: &Plan<'_>,
    name: &str,
    code: &str,
    (hash_, size): (u64, u32),
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
        "static inline uint32_t {name}(const tw_host_call *asked, {parameter}tw_error *error) {{"
    ));
    out.line("  tw_writer state;");
    out.line("  tw_writer *writer = &state;");
    let begin = format!("tw_writer_begin(writer, {}, 0, {size});", hash(hash_));
    match form {
        None => out.line(&format!("  {begin}")),
        Some(form) => {
            out.line(&format!("  uint32_t root = {begin}"));
            if shapes.is_struct(form) {
                out.line("  if (!value) {");
                out.line("    writer->status = TW_ARGUMENT;");
                out.line("  } else {");
                out.line(&format!(
                    "    {}",
                    write::put(shapes, form, "root", "*value")
                ));
                out.line("  }");
            } else {
                out.line(&format!("  {}", write::put(shapes, form, "root", "value")));
            }
        }
    }
    out.line(&format!(
        "  return tw_host_call_answer(asked, writer, {code}, error);"
    ));
    out.line("}");
    out.blank();
}

fn serve_one(plan: &Plan<'_>, host: &Host<'_>, asked: &Asked<'_>, out: &mut Source) {
    let call = &asked.call;
    let shapes = &plan.shapes;
    out.line(&format!(
        "static inline void {}(const {} *host, const tw_host_call *asked, const tw_completion *completion) {{",
        asked.serve, host.name
    ));
    out.line("  tw_checker state;");
    out.line("  tw_checker *reader = &state;");
    out.line("  const uint8_t *base = completion->data;");
    let (size, _) = call.function.params_layout;
    out.line(&format!(
        "  const void *root = tw_check_root(reader, base, completion->data_size, {}, {size});",
        hash(call.function.hashes.params)
    ));
    let mut wrong = vec!["!root".to_owned()];
    let mut given = String::new();
    for (parameter, form) in values(call) {
        let place = format!(
            "*(const {} *)tw_at_offset(root, {})",
            shapes.flat(form),
            parameter.offset
        );
        // A value's own place, so that what is made of it reads well.
        let place = format!("({place})");
        if let Some(check) = check::check(shapes, form, &place) {
            wrong.push(format!("!({check})"));
        }
        given.push_str(", ");
        given.push_str(&access::view(shapes, form, &place));
    }
    out.line(&format!("  if ({}) {{", wrong.join(" || ")));
    out.line(&format!(
        "    tw_host_call_fail(asked, TW_ARGUMENT, \"{}: the library's message is malformed\", NULL);",
        call.function.full_name
    ));
    out.line(&format!("  }} else if (!host->{}) {{", asked.member));
    out.line(&format!(
        "    tw_host_call_fail(asked, TW_CLOSED, \"the host has no {}\", NULL);",
        call.function.name
    ));
    out.line("  } else {");
    out.line(&format!(
        "    host->{}(host->context, asked{given});",
        asked.member
    ));
    out.line("  }");
    out.line("}");
    out.blank();
}

fn serve(host: &Host<'_>, out: &mut Source) {
    out.line(&format!(
        "static inline void {}(tw_host *of, const tw_host_call *asked, const tw_completion *completion) {{",
        host.serve
    ));
    out.line(&format!(
        "  const {0} *host = (const {0} *)(const void *)of;",
        host.name
    ));
    out.line("  switch (completion->code) {");
    for (number, asked) in host.functions.iter().enumerate() {
        out.line(&format!("  case {number}:"));
        out.line(&format!("    {}(host, asked, completion);", asked.serve));
        out.line("    break;");
    }
    out.line("  default:");
    out.line(
        "    tw_host_call_fail(asked, TW_ARGUMENT, \"the host has no import of this number\", NULL);",
    );
    out.line("    break;");
    out.line("  }");
    out.line("}");
    out.blank();
}
