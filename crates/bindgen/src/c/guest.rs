//! The header of a guest: a struct of functions that the guest fills in, and functions that answer its
//! calls.

use super::guest_input::{self, imports};
use super::host::{Answering, Host, Import, answer, values};
use super::library;
use super::names::{self, MEMBER, Names};
use super::naming::stem_of;
use super::plan::{Call, ParameterKind, Plan, ResultKind, Stream};
use super::shape::before_name;
use super::{access, handles, types, write};
use crate::model::{Function, OverflowPolicy, Package, StreamOptions};
use crate::plan::names::Scope;
use crate::plan::source::Source;

const GUEST: Answering = Answering {
    call: "tw_incoming",
    send: "tw_incoming_answer",
};

/// The functions of a package that [`Package::for_guest`] has made.
fn functions(package: &Package) -> &[Function] {
    package.host.as_ref().map_or(&[], |host| &host.functions)
}

/// Names the functions of a guest.
pub(super) fn plan<'a>(
    package: &'a Package,
    calls: Vec<Call<'a>>,
    names: &mut Names,
) -> Option<Host<'a>> {
    let name = names.claim("guest");
    for function in [
        "open",
        "call",
        "cancel",
        "drop",
        "close",
        "unload",
        "package",
        "policies",
        "functions",
    ] {
        names.claim(&format!("guest_{function}"));
    }
    let mut members = Scope::default();
    let fixed = [
        "core", "context", "flags", "load", "unload", "open", "close", "cancel",
    ];
    let fixed = fixed.map(str::to_owned);
    let drops = (0..package.resources.len()).map(|number| drop_member(package, number));
    for member in fixed.into_iter().chain(drops) {
        members.claim(member);
    }
    let imports = calls.into_iter().map(|call| {
        let stem = stem_of(package, call.function);
        Import {
            member: members.claim(MEMBER.of(&stem)),
            serve: names.claim(&format!("{stem}_serve")),
            answer: names.claim(&format!("{stem}_answer")),
            fail: {
                names.claim(&format!("{stem}_fail_stream"));
                names.claim(&format!("{stem}_fail"))
            },
            call,
        }
    });
    Some(Host {
        name,
        imports: imports.collect(),
        serve: names.claim("guest_serve"),
        set_host: String::new(),
    })
}

/// Writes the header.
pub(super) fn emit(plan: &Plan<'_>, out: &mut Source) {
    let Some(guest) = &plan.host else { return };
    head(plan, out);
    types::emit(plan, "results", out);
    access::emit(plan, "the call", out);
    let mut writers = Source::new(&super::FORMAT);
    handles::emit(plan, &mut writers);
    write::emit(plan, &mut writers);
    let writers = writers.finish();
    if writers.len() > 1 {
        out.banner("Writing results");
        writers.lines().for_each(|line| out.line(line));
        out.blank();
    }
    out.banner("The functions of the guest");
    out.docs("", LEGEND);
    out.blank();
    resource_types(plan, out);
    guest_input::readers(plan, out);
    declare(plan, guest, out);
    for (index, stream) in plan.streams.iter().enumerate() {
        stream_writer(plan, index, stream, out);
    }
    out.docs("", "The methods, by number.");
    let all = functions(plan.package).iter();
    library::functions(plan.package, &plan.fixed.methods, all, out);
    if !plan.calls.is_empty() {
        out.docs("", "The functions of the host, by number.");
        let all = imports(plan.package).iter();
        library::functions(plan.package, &plan.fixed.imports, all, out);
    }
    out.banner("Answers");
    out.docs("", ANSWERS);
    out.blank();
    for (number, import) in guest.imports.iter().enumerate() {
        answers(plan, import, number, out);
    }
    guest_input::host_calls(plan, out);
    out.banner("The connection with Thalweg");
    description(plan, guest, out);
    for import in &guest.imports {
        serve_one(plan, guest, import, out);
    }
    dispatch(plan, guest, out);
    library::tail(out);
}

const LEGEND: &str = "\
The program's calls arrive in these functions. `state` is what `open` has set. A function
answers its call with the function of its name and `_answer` or `_fail`, or with
tw_incoming_fail: before it returns, or later on any thread with a copy of `*call`. Its
arguments are valid until it returns.

The functions of one state are called one at a time, those of different states at the same
time, on threads of Thalweg. They return soon and never wait: work that takes long or waits is
done on a thread of the guest, which answers later. A call that is not answered ends at its
deadline, or when its client is closed.";

const ANSWERS: &str = "\
Each ends its call. TW_STALE: the call has ended before. TW_GUEST_LOST: the result is
malformed; the call has ended with this failure. An object that is a result belongs to the
program if the result is TW_OK, and otherwise still to the guest.";

fn head(plan: &Plan<'_>, out: &mut Source) {
    let package = plan.package;
    let guard = format!("{}_GUEST_H", plan.prefix().to_ascii_uppercase());
    out.line(&format!(
        "/* Generated by `thalweg gen --guest c` from {}:{}@{}. Do not edit. */",
        package.namespace, package.name, package.version
    ));
    out.blank();
    out.docs("", &package.docs);
    out.line(&format!("#ifndef {guard}"));
    out.line(&format!("#define {guard}"));
    out.blank();
    out.line("#include \"thalweg_serve.h\"");
    out.blank();
}

/// The constant for a resource type.
fn resource_type(plan: &Plan<'_>, resource: usize) -> String {
    let name = names::snake(&plan.package.resources[resource].name);
    format!("{}_TYPE_{name}", plan.prefix()).to_ascii_uppercase()
}

/// The member that drops a resource.
fn drop_member(package: &Package, resource: usize) -> String {
    format!("{}_drop", names::snake(&package.resources[resource].name))
}

fn resource_types(plan: &Plan<'_>, out: &mut Source) {
    let count = plan.package.resources.len();
    if count == 0 {
        return;
    }
    out.docs("", "The types of resources.");
    out.line("enum {");
    for resource in 0..count {
        let comma = if resource + 1 == count { "" } else { "," };
        out.line(&format!(
            "  {} = {resource}{comma}",
            resource_type(plan, resource)
        ));
    }
    out.line("};");
    out.blank();
}

/// C parameters for the arguments, with a comma before each.
fn parameters(plan: &Plan<'_>, call: &Call<'_>) -> String {
    let mut list = String::new();
    for parameter in &call.parameters {
        let ty = match parameter.kind {
            ParameterKind::Value(form) => plan.shapes.view(form),
            ParameterKind::Handle { .. } => "void *".to_owned(),
            ParameterKind::StreamWriter { writer, .. } => {
                guest_input::reader_name(&plan.stream_writers[writer])
            }
        };
        list.push_str(&format!(", {}{}", before_name(&ty), parameter.name));
    }
    list
}

fn declare(plan: &Plan<'_>, guest: &Host<'_>, out: &mut Source) {
    out.docs(
        "",
        "What the guest serves. Fill in `context` and the functions.",
    );
    out.line(&format!("typedef struct {} {{", guest.name));
    out.line("  const tw_guest_core *core; /* set when the guest is opened */");
    out.line("  void *context;");
    out.docs(
        "  ",
        "0, or TW_GUEST_ASYNC_MAY_BLOCK: the functions for an `async func` run on threads of a pool.",
    );
    out.line("  uint32_t flags;");
    out.docs(
        "  ",
        "The library was opened: starts threads, for example. Another result than TW_OK refuses it,\n\
         with the message of `error`. May be NULL.",
    );
    out.line("  uint32_t (*load)(void *context, tw_error *error);");
    out.docs("  ", "The library is not used any more. May be NULL.");
    out.line("  void (*unload)(void *context);");
    out.docs(
        "  ",
        "Sets `*state` for a new instance, before its first call. Another result than TW_OK ends that\n\
         call as TW_GUEST_LOST with the message of `error`. NULL: the state is `context`.",
    );
    out.line("  uint32_t (*open)(void *context, void **state, tw_error *error);");
    out.docs(
        "  ",
        "Ends a state. Its calls have ended, and its objects were dropped. May be NULL.",
    );
    out.line("  void (*close)(void *state);");
    out.docs("  ", "A call ended before it was answered. May be NULL.");
    out.line("  void (*cancel)(void *state, tw_handle call);");
    for import in &guest.imports {
        let function = import.call.function;
        let mut docs = import.call.signature.clone();
        if !function.docs.is_empty() {
            docs.push_str("\n\n");
            docs.push_str(&function.docs);
        }
        out.docs("  ", &docs);
        out.line(&format!(
            "  void (*{})(void *state, const tw_incoming *call{});",
            import.member,
            parameters(plan, &import.call)
        ));
    }
    for (number, resource) in plan.package.resources.iter().enumerate() {
        out.docs(
            "  ",
            &format!(
                "No program has this `{}` any more. May be NULL.",
                resource.name
            ),
        );
        out.line(&format!(
            "  void (*{})(void *state, void *object);",
            drop_member(plan.package, number)
        ));
    }
    out.line(&format!("}} {};", guest.name));
    out.blank();
}

fn answers(plan: &Plan<'_>, import: &Import<'_>, number: usize, out: &mut Source) {
    let call = &import.call;
    let method = format!("{}[{number}]", plan.fixed.methods);
    out.docs(
        "",
        &format!("{}: {}", call.function.full_name, call.signature),
    );
    let ok = match call.ok {
        ResultKind::Own(resource) => {
            out.template(
                "\
static inline uint32_t @answer@(const tw_incoming *call, void *object, tw_error *error) {
  return tw_incoming_answer_object(call, @type@, object, error);
}",
                &[
                    ("answer", &import.answer),
                    ("type", &resource_type(plan, resource)),
                ],
            );
            return failing(plan, import, &method, out);
        }
        ResultKind::Stream(index) => {
            out.template(
                "\
static inline uint32_t @answer@(const tw_incoming *call, @writer@ *writer, tw_error *error) {
  return tw_incoming_answer_stream(call, &writer->tw, error);
}",
                &[
                    ("answer", &import.answer),
                    ("writer", &writer_name(plan, index)),
                ],
            );
            failing(plan, import, &method, out);
            return ending(plan, import, (index, &method), out);
        }
        ResultKind::Value(form) => Some(form),
        ResultKind::Nothing => None,
    };
    let layout = format!("{method}.ok");
    answer(
        plan,
        &GUEST,
        &import.answer,
        ("TW_OK", &layout),
        call.ok_size,
        ok,
        out,
    );
    failing(plan, import, &method, out);
}

fn failing(plan: &Plan<'_>, import: &Import<'_>, method: &str, out: &mut Source) {
    let call = &import.call;
    if call.function.error.is_some() {
        let layout = format!("{method}.error");
        let code = ("TW_ERROR", layout.as_str());
        answer(
            plan,
            &GUEST,
            &import.fail,
            code,
            call.error_size,
            call.error,
            out,
        );
    }
}

/// The struct of the writer of a stream.
fn writer_name(plan: &Plan<'_>, index: usize) -> String {
    format!("{}_writer", plan.streams[index].name)
}

/// Writes the writing end of a stream or future.
fn stream_writer(plan: &Plan<'_>, index: usize, stream: &Stream, out: &mut Source) {
    let shapes = &plan.shapes;
    let name = writer_name(plan, index);
    let size = stream.size.to_string();
    let what = match stream.is_future {
        true => "Sets the value of a future. Call _send once, and then _finish.",
        false => {
            "Writes a stream. Call _finish when it is complete. With `tw.batch`, records become visible in groups."
        }
    };
    out.docs("", what);
    out.template(
        "\
typedef struct @name@ {
  tw_record_writer tw;
} @name@;",
        &[("name", &name)],
    );
    match stream.element {
        None => out.template(
            "\
static inline uint32_t @name@_send(@name@ *writer, uint32_t count, uint64_t deadline_ns, tw_error *error) {
  return tw_record_writer_send(&writer->tw, NULL, count, 0, deadline_ns, error);
}",
            &[("name", &name)],
        ),
        Some(form) if shapes.is_plain(form) => out.template(
            "\
static inline uint32_t @name@_send(@name@ *writer, const @element@ *records, uint32_t count, uint64_t deadline_ns, tw_error *error) {
  return tw_record_writer_send(&writer->tw, records, count, @size@, deadline_ns, error);
}",
            &[("name", &name), ("element", shapes.input(form)), ("size", &size)],
        ),
        Some(form) => {
            let ty = shapes.input(form);
            let (parameter, pointer) = match shapes.is_struct(form) {
                true => (format!("const {ty} *record"), "record"),
                false => (format!("{ty} record"), "&record"),
            };
            let place = format!("*(const {ty} *)record");
            let put = write::put(shapes, "message", form, "at", &place);
            out.template(
                "\
static inline void @name@_put(tw_writer *message, uint32_t at, const void *record) {
  @put@
}

static inline uint32_t @name@_send(@name@ *writer, @parameter@, uint64_t deadline_ns, tw_error *error) {
  return tw_record_writer_put(&writer->tw, @name@_put, @pointer@, @size@, deadline_ns, error);
}",
                &[
                    ("name", &name),
                    ("parameter", &parameter),
                    ("pointer", pointer),
                    ("put", &put),
                    ("size", &size),
                ],
            );
        }
    }
    out.template(
        "\
static inline uint32_t @name@_finish(@name@ *writer, tw_error *error) {
  return tw_record_writer_finish(&writer->tw, error);
}

static inline uint32_t @name@_abort(@name@ *writer, const char *text, tw_error *error) {
  return tw_record_writer_abort(&writer->tw, text, text ? strlen(text) : 0, error);
}",
        &[("name", &name)],
    );
}

/// Writes the function that ends the stream of a function with its error.
fn ending(plan: &Plan<'_>, import: &Import<'_>, (index, method): (usize, &str), out: &mut Source) {
    let Some(form) = import.call.error else {
        return;
    };
    let shapes = &plan.shapes;
    let (parameter, place) = match shapes.is_struct(form) {
        true => (format!("const {} *value", shapes.input(form)), "*value"),
        false => (format!("{} value", shapes.input(form)), "value"),
    };
    let put = write::put(shapes, "&message", form, "root", place);
    out.template(
        "\
static inline uint32_t @fail@_stream(@writer@ *writer, @parameter@, tw_error *error) {
  tw_writer message;
  uint32_t root = tw_writer_begin(&message, @method@.error, 0, @size@);
  @put@
  return tw_record_writer_fail(&writer->tw, &message, error);
}",
        &[
            ("fail", &import.fail),
            ("writer", &writer_name(plan, index)),
            ("parameter", &parameter),
            ("method", method),
            ("size", &import.call.error_size.to_string()),
            ("put", &put),
        ],
    );
}

/// A policy of a stream in C.
fn overflow(options: &StreamOptions) -> &'static str {
    match options.overflow {
        OverflowPolicy::Latest => "TW_OVERFLOW_LATEST",
        OverflowPolicy::DropNewest => "TW_OVERFLOW_DROP_NEWEST",
        OverflowPolicy::DropOldest => "TW_OVERFLOW_DROP_OLDEST",
        OverflowPolicy::Fail => "TW_OVERFLOW_FAIL",
        _ => "TW_OVERFLOW_BLOCK",
    }
}

fn description(plan: &Plan<'_>, guest: &Host<'_>, out: &mut Source) {
    let Package {
        namespace,
        name,
        version,
        limits,
        ..
    } = plan.package;
    let policies = functions(plan.package).iter().map(|function| {
        let stream = function.stream.unwrap_or(StreamOptions::DEFAULT);
        format!(
            "    {{UINT64_C({}), UINT64_C({}), UINT64_C({}), {}, {}, {}, 0}},",
            function.options.notice_interval_ns,
            function.options.timeout_ns,
            stream.linger_ns,
            overflow(&stream),
            stream.capacity,
            stream.max_record_size
        )
    });
    out.line(&format!(
        "static const tw_guest_policy {}_policies[] = {{",
        guest.name
    ));
    policies.for_each(|line| out.line(&line));
    out.line("};");
    out.blank();
    let flags = if limits.block_when_full {
        "TW_GUEST_BLOCK"
    } else {
        "0"
    };
    out.line(&format!(
        "static const tw_guest_package {}_package = {{",
        guest.name
    ));
    out.line(&format!(
        "    (uint32_t)sizeof(tw_guest_package), {flags}, \"{namespace}:{name}\", \"{version}\","
    ));
    let imports = match plan.calls.is_empty() {
        true => "NULL",
        false => &plan.fixed.imports,
    };
    out.line(&format!(
        "    {}, {}_policies, {imports}, {}, {},",
        plan.fixed.methods,
        guest.name,
        guest.imports.len(),
        plan.calls.len()
    ));
    out.line(&format!(
        "    {}, 0, UINT64_C({})}};",
        limits.max_queued_calls, limits.max_queued_bytes
    ));
    out.blank();
}

fn serve_one(plan: &Plan<'_>, guest: &Host<'_>, import: &Import<'_>, out: &mut Source) {
    let call = &import.call;
    let shapes = &plan.shapes;
    out.line(&format!(
        "static inline void {}(const {} *guest, void *state, const tw_incoming *call) {{",
        import.serve, guest.name
    ));
    if !call.parameters.is_empty() {
        out.line("  const void *root = tw_incoming_root(call);");
    }
    if values(call).any(|(_, form)| shapes.is_slice(form)) {
        out.line("  const uint8_t *base = call->base;");
    }
    for parameter in &call.parameters {
        match parameter.kind {
            ParameterKind::Handle { .. } => {
                out.line(&format!("  void *{} = NULL;", parameter.name));
            }
            ParameterKind::StreamWriter { writer, .. } => {
                let reader = guest_input::reader_name(&plan.stream_writers[writer]);
                out.line(&format!("  {reader} {};", parameter.name));
            }
            ParameterKind::Value(_) => {}
        }
    }
    out.line(&format!("  if (!guest->{}) {{", import.member));
    out.line(&format!(
        "    tw_incoming_fail(call, TW_GUEST_LOST, \"the guest has no function for {}\", NULL);",
        call.function.full_name
    ));
    out.line("    return;");
    out.line("  }");
    let mut arguments = String::new();
    for parameter in &call.parameters {
        let at = format!("tw_argument_at(root, {})", parameter.offset);
        arguments.push_str(", ");
        match parameter.kind {
            ParameterKind::Handle { resource, is_own } => {
                out.line(&format!(
                    "  if (!tw_incoming_object(call, {at}, {}, {is_own}, &{})) {{",
                    resource_type(plan, resource),
                    parameter.name
                ));
                out.line("    return;");
                out.line("  }");
                arguments.push_str(&parameter.name);
            }
            ParameterKind::Value(form) => {
                let flat = shapes.flat(form);
                arguments.push_str(&match shapes.is_struct(form) {
                    true => format!("(const {flat} *){at}"),
                    false => shapes.view_of(form, &format!("*(const {flat} *){at}")),
                });
            }
            ParameterKind::StreamWriter { .. } => arguments.push_str(&parameter.name),
        }
    }
    open_readers(call, out);
    out.line(&format!(
        "  guest->{}(state, call{arguments});",
        import.member
    ));
    out.line("}");
    out.blank();
}

/// Writes C that opens the readers of the streams among the arguments.
fn open_readers(call: &Call<'_>, out: &mut Source) {
    let mut opened: Vec<&str> = Vec::new();
    for parameter in &call.parameters {
        if let ParameterKind::StreamWriter { .. } = parameter.kind {
            let (name, offset) = (parameter.name.as_str(), parameter.offset);
            out.line(&format!(
                "  if (!tw_incoming_reader(call, tw_argument_at(root, {offset}), &{name}.tw)) {{"
            ));
            for reader in &opened {
                out.line(&format!("    tw_element_reader_close(&{reader}.tw);"));
            }
            out.line("    return;");
            out.line("  }");
            opened.push(name);
        }
    }
}

fn dispatch(plan: &Plan<'_>, guest: &Host<'_>, out: &mut Source) {
    let name = &guest.name;
    out.template(
        "\
static inline uint32_t @guest@_open(void *ctx, uint64_t *state, tw_error *error) {
  const @guest@ *guest = (const @guest@ *)ctx;
  void *opened = guest->context;
  uint32_t code = guest->open ? guest->open(guest->context, &opened, error) : (uint32_t)TW_OK;
  *state = (uint64_t)(uintptr_t)opened;
  return code;
}",
        &[("guest", name)],
    );
    out.line(&format!(
        "static inline void {name}_call(void *ctx, uint64_t number, const tw_guest_call *call) {{"
    ));
    out.line(&format!("  const {name} *guest = (const {name} *)ctx;"));
    out.line("  tw_incoming incoming = tw_incoming_of(guest->core, call);");
    out.line("  void *state = (void *)(uintptr_t)number;");
    out.line("  switch (call->method) {");
    for (number, import) in guest.imports.iter().enumerate() {
        out.line(&format!("  case {number}:"));
        out.line(&format!("    {}(guest, state, &incoming);", import.serve));
        out.line("    break;");
    }
    out.line("  default:");
    out.line("    break;");
    out.line("  }");
    out.line("}");
    out.blank();
    out.template(
        "\
static inline void @guest@_cancel(void *ctx, uint64_t state, tw_handle call) {
  const @guest@ *guest = (const @guest@ *)ctx;
  if (guest->cancel) {
    guest->cancel((void *)(uintptr_t)state, call);
  }
}

static inline void @guest@_unload(void *ctx) {
  const @guest@ *guest = (const @guest@ *)ctx;
  if (guest->unload) {
    guest->unload(guest->context);
  }
}

static inline void @guest@_close(void *ctx, uint64_t state) {
  const @guest@ *guest = (const @guest@ *)ctx;
  if (guest->close) {
    guest->close((void *)(uintptr_t)state);
  }
}",
        &[("guest", name)],
    );
    out.line(&format!(
        "static inline void {name}_drop(void *ctx, uint64_t number, uint32_t type, uint64_t object) {{"
    ));
    if plan.package.resources.is_empty() {
        out.line("  (void)ctx;");
        out.line("  (void)number;");
        out.line("  (void)type;");
        out.line("  (void)object;");
    } else {
        out.line(&format!("  const {name} *guest = (const {name} *)ctx;"));
        out.line("  void *state = (void *)(uintptr_t)number;");
        out.line("  void (*function)(void *state, void *object) = NULL;");
        out.line("  switch (type) {");
        for resource in 0..plan.package.resources.len() {
            out.line(&format!("  case {}:", resource_type(plan, resource)));
            out.line(&format!(
                "    function = guest->{};",
                drop_member(plan.package, resource)
            ));
            out.line("    break;");
        }
        out.line("  default:");
        out.line("    break;");
        out.line("  }");
        out.line("  if (function) {");
        out.line("    function(state, (void *)(uintptr_t)object);");
        out.line("  }");
    }
    out.line("}");
    out.blank();
    out.template(SERVE, &[("guest", name), ("serve", &guest.serve)]);
    let export = format!("{name}_export").to_ascii_uppercase();
    out.template(
        "\
/* Exports a guest, so that it can be opened as thread:PATH. Once in a library, outside of functions.
 * `guest` is the address of a @guest@ that exists as long as the library. */
#define @export@(guest) \\
  TW_GUEST_SYMBOL uint32_t tw_guest(uint32_t abi, const tw_guest_core *core, uint64_t opening, \\
                                    tw_error *error) { \\
    return @serve@(guest, abi, core, opening, error); \\
  }",
        &[("guest", name), ("serve", &guest.serve), ("export", &export)],
    );
}

const SERVE: &str = "\
static inline uint32_t @serve@(@guest@ *guest, uint32_t abi, const tw_guest_core *core, uint64_t opening, tw_error *error) {
  tw_guest_functions functions;
  uint32_t code = tw_guest_core_check(abi, core, error);
  if (code != TW_OK) {
    return code;
  }
  memset(&functions, 0, sizeof(functions));
  functions.size = (uint32_t)sizeof(functions);
  functions.flags = guest->flags;
  functions.open = @guest@_open;
  functions.call = @guest@_call;
  functions.cancel = @guest@_cancel;
  functions.drop = @guest@_drop;
  functions.close = @guest@_close;
  functions.unload = @guest@_unload;
  guest->core = core;
  code = guest->load ? guest->load(guest->context, error) : (uint32_t)TW_OK;
  if (code == TW_OK) {
    code = core->serve(opening, &@guest@_package, &functions, guest, error);
    if (code != TW_OK) {
      @guest@_unload(guest);
    }
  }
  return code;
}";
