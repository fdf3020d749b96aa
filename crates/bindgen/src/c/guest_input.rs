//! The inputs of a guest besides arguments: elements of streams that are parameters, and answers of host
//! imports.

use super::host::values;
use super::plan::{Call, Plan, ResultKind, StreamWriter};
use super::shape::{Form, before_name};
use super::write;
use crate::model::{Function, Package};
use crate::plan::source::Source;

/// The host imports of a package that [`Package::for_guest`] has made.
pub(super) fn imports(package: &Package) -> &[Function] {
    &package.functions
}

/// The struct of the reader of a stream parameter.
pub(super) fn reader_name(stream: &StreamWriter) -> String {
    let stem = stream.name.strip_suffix("_writer");
    format!("{}_reader", stem.unwrap_or(&stream.name))
}

/// Writes the readers of streams and futures that are parameters.
pub(super) fn readers(plan: &Plan<'_>, out: &mut Source) {
    if !plan.stream_writers.is_empty() {
        out.docs("", READERS);
        out.blank();
    }
    for stream in &plan.stream_writers {
        let name = reader_name(stream);
        out.template(
            "\
typedef struct @name@ {
  tw_element_reader tw;
} @name@;",
            &[("name", &name)],
        );
        match stream.element {
            None => out.template(
                "\
static inline uint32_t @name@_receive(@name@ *reader, uint64_t deadline_ns, tw_error *error) {
  return tw_element_reader_receive(&reader->tw, deadline_ns, error);
}",
                &[("name", &name)],
            ),
            Some(form) => out.template(
                "\
static inline uint32_t @name@_receive(@name@ *reader, uint64_t deadline_ns, @type@*element, tw_error *error) {
  uint32_t code = tw_element_reader_receive(&reader->tw, deadline_ns, error);
  if (code == TW_OK) {
    const void *root = tw_guest_message_root(&reader->tw.element);
@base@    *element = @value@;
  }
  return code;
}",
                &[
                    ("name", &name),
                    ("type", &before_name(&plan.shapes.view(form))),
                    ("base", &base(plan, form, "reader->tw.element")),
                    ("value", &value(plan, form, "root")),
                ],
            ),
        }
        out.template(
            "\
static inline void @name@_close(@name@ *reader) {
  tw_element_reader_close(&reader->tw);
}",
            &[("name", &name)],
        );
    }
}

const READERS: &str = "\
A reader reads a stream or future that is a parameter, on a thread of the guest, also after
the call was answered. _receive waits for an element, which is valid until the next _receive.
TW_CLOSED: there are no more. Call _close in any case.";

/// A line that declares `base`, if the value has text, bytes or lists.
fn base(plan: &Plan<'_>, form: Form, message: &str) -> String {
    match plan.shapes.is_slice(form) {
        true => format!("    const uint8_t *base = {message}.data;\n"),
        false => String::new(),
    }
}

/// The value at a place.
fn value(plan: &Plan<'_>, form: Form, place: &str) -> String {
    let shapes = &plan.shapes;
    let flat = shapes.flat(form);
    match shapes.is_struct(form) {
        true => format!("(const {flat} *){place}"),
        false => shapes.view_of(form, &format!("*(const {flat} *){place}")),
    }
}

/// Writes the functions that call the host.
pub(super) fn host_calls(plan: &Plan<'_>, out: &mut Source) {
    if plan.calls.is_empty() {
        return;
    }
    out.banner("Calls of the host");
    out.docs("", CALLS);
    out.blank();
    for (number, call) in plan.calls.iter().enumerate() {
        let mut docs = format!("{}: {}", call.function.full_name, call.signature);
        if !call.function.docs.is_empty() {
            docs.push_str("\n\n");
            docs.push_str(&call.function.docs);
        }
        out.docs("", &docs);
        host_call(plan, call, number, out);
    }
}

const CALLS: &str = "\
The program that calls the guest has these functions, its host imports. F calls one during
`call`, on a thread of the guest, and waits for the answer. In F_result, `ok` is set with
TW_OK and `error` with TW_ERROR. Call F_release(&result) after F, whatever it returns: it frees
the memory that they point to. TW_WOULD_PARK: a function of the guest must not wait. TW_CLOSED:
the program has not set its functions.";

fn host_call(plan: &Plan<'_>, call: &Call<'_>, number: usize, out: &mut Source) {
    let shapes = &plan.shapes;
    let ok = match call.ok {
        ResultKind::Value(form) => Some(form),
        // The parser refuses host imports with handles.
        _ => None,
    };
    out.line(&format!("typedef struct {} {{", call.result));
    out.line("  const tw_guest_core *core;");
    out.line("  tw_guest_message message;");
    for (form, member) in [(ok, "ok"), (call.error, "error")] {
        if let Some(form) = form {
            out.line(&format!("  {}{member};", before_name(&shapes.view(form))));
        }
    }
    out.line(&format!("}} {};", call.result));
    out.blank();
    let parameters: String = values(call)
        .map(|(parameter, form)| match shapes.is_struct(form) {
            true => format!("const {} *{}, ", shapes.input(form), parameter.name),
            false => format!("{} {}, ", shapes.input(form), parameter.name),
        })
        .collect();
    out.line(&format!(
        "static inline uint32_t {}(const tw_incoming *call, {parameters}{} *result, tw_error *error) {{",
        call.blocking, call.result
    ));
    out.line("  uint32_t code;");
    out.line("  tw_writer writer;");
    let (size, _) = call.function.params_layout;
    let root = if call.parameters.is_empty() {
        ""
    } else {
        "uint32_t root = "
    };
    out.line(&format!(
        "  {root}tw_writer_begin(&writer, {}[{number}].params, 0, {size});",
        plan.fixed.imports
    ));
    for (parameter, form) in values(call) {
        let at = match parameter.offset {
            0 => "root".to_owned(),
            offset => format!("root + {offset}"),
        };
        let name = &parameter.name;
        match shapes.is_struct(form) {
            true => {
                let put = write::put(shapes, "&writer", form, &at, &format!("*{name}"));
                out.line(&format!("  if (tw_writer_require(&writer, {name})) {{"));
                out.line(&format!("    {put}"));
                out.line("  }");
            }
            false => {
                let put = write::put(shapes, "&writer", form, &at, name);
                out.line(&format!("  {put}"));
            }
        }
    }
    out.line("  memset(result, 0, sizeof(*result));");
    out.line("  result->core = call->core;");
    out.line(&format!(
        "  code = tw_incoming_import(call, {number}, &writer, &result->message, error);"
    ));
    for (form, member, code) in [(ok, "ok", "TW_OK"), (call.error, "error", "TW_ERROR")] {
        let Some(form) = form else { continue };
        out.line(&format!("  if (code == {code}) {{"));
        out.line("    const void *answer = tw_guest_message_root(&result->message);");
        let base = base(plan, form, "result->message");
        base.lines().for_each(|line| out.line(line));
        out.line(&format!(
            "    result->{member} = {};",
            value(plan, form, "answer")
        ));
        out.line("  }");
    }
    out.line("  return code;");
    out.line("}");
    out.blank();
    out.template(
        "\
static inline void @call@_release(@result@ *result) {
  result->core->message_release(&result->message);
}",
        &[("call", &call.blocking), ("result", &call.result)],
    );
}
