//! The interfaces that a guest implements, and the function that serves them.

use super::Go;
use super::layout::{self, Row};
use crate::model::{FunctionKind, OverflowPolicy, StreamOptions};
use crate::plan::source::Source;
use crate::plan::{Function, ParameterKind, ResultKind, spell_signature};

const SERVICE: &str = "\
Service is the state of one client. The methods for a `func` are called one at a time. Those for an \
`async func` run at the same time as all others. The context of a call ends with the call, and that \
of a stream with the stream.";

const ASYNC: &str = "Other methods may run at the same time.";
const BRIEF: &str = "It must not wait: the calls of all clients wait for it.";
const STREAM: &str =
    "The sequence is iterated on a goroutine of its own. An error ends the stream.";
const FUTURE: &str = "The function that it returns is called on a goroutine of its own.";
const INPUT: &str = "A parameter that is a stream is read once. If its iteration has not begun when the call \
ends, it is closed.";

/// Writes the interfaces of the state and of the resources.
pub(super) fn interfaces(go: &Go<'_>, out: &mut Source) {
    layout::docs(out, SERVICE, "");
    out.open("type Service interface {");
    for (number, function) in go.plan.imports.iter().enumerate() {
        if function.resource().is_none() {
            method(go, number, function, out);
        }
    }
    out.line("// Close is called after the last call, when the client was closed.");
    out.line("Close()");
    out.close("}");
    out.blank();
    let resources = &go.plan.package.resources;
    for (id, (resource, name)) in resources.iter().zip(&go.names.resources).enumerate() {
        let about = format!("{name} is the resource `{}`.", resource.name);
        layout::docs(out, &about, &resource.docs);
        out.open(&format!("type {name} interface {{"));
        for (number, function) in go.plan.imports.iter().enumerate() {
            if function.resource().is_some_and(|of| of.0 == id) {
                method(go, number, function, out);
            }
        }
        out.line("// Drop is called when no program has the resource any more.");
        out.line("Drop()");
        out.close("}");
        out.blank();
    }
    if !resources.is_empty() {
        out.line("// The types of the resources.");
        out.open("const (");
        for (id, name) in go.names.resources.iter().enumerate() {
            let first = if id == 0 { " uint32 = iota" } else { "" };
            out.line(&format!("type{name}{first}"));
        }
        out.close(")");
        out.blank();
    }
}

fn method(go: &Go<'_>, number: usize, function: &Function<'_>, out: &mut Source) {
    let model = function.function;
    let name = &go.names.methods[number];
    let mut notes = Vec::new();
    if model.docs.trim().is_empty() {
        let signature = spell_signature(go.plan.package, model);
        notes.push(format!("{name} serves `{signature}`."));
    }
    if model.is_async {
        notes.push(ASYNC.to_owned());
    }
    if model.options.is_brief {
        notes.push(BRIEF.to_owned());
    }
    if let ResultKind::Stream(stream) = function.ok {
        let is_future = go.plan.streams[stream].is_future;
        notes.push(if is_future { FUTURE } else { STREAM }.to_owned());
    }
    let is_stream = |parameter: &crate::plan::Parameter<'_>| match parameter.kind {
        ParameterKind::Stream(stream) => !go.plan.upstreams[stream].is_future,
        _ => false,
    };
    if function.parameters.iter().any(is_stream) {
        notes.push(INPUT.to_owned());
    }
    layout::docs(out, "", &model.docs);
    if !model.docs.trim().is_empty() && !notes.is_empty() {
        out.line("//");
    }
    layout::docs(out, "", &notes.join(" "));
    let mut parameters = vec!["ctx context.Context".to_owned()];
    for ((_, parameter), name) in function.written().zip(go.names.parameters(function)) {
        let ty = match parameter.kind {
            ParameterKind::Value(ty) => go.ty(ty),
            ParameterKind::Resource { id, .. } => go.names.resources[id.0].clone(),
            ParameterKind::Stream(stream) => {
                let stream = &go.plan.upstreams[stream];
                let element = go.element(stream.element);
                match stream.is_future {
                    true => format!("func(context.Context) ({element}, error)"),
                    false => format!("iter.Seq2[{element}, error]"),
                }
            }
        };
        parameters.push(format!("{name} {ty}"));
    }
    let parameters = parameters.join(", ");
    let result = match result(go, function) {
        Some(result) => format!("({result}, error)"),
        None => "error".to_owned(),
    };
    out.line(&format!("{name}({parameters}) {result}"));
}

/// The type of a result, without the error.
fn result(go: &Go<'_>, function: &Function<'_>) -> Option<String> {
    Some(match function.ok {
        ResultKind::Nothing => return None,
        ResultKind::Value(ty) => go.ty(ty),
        ResultKind::Resource(id) => go.names.resources[id.0].clone(),
        ResultKind::Stream(stream) => {
            let stream = &go.plan.streams[stream];
            let element = go.element(stream.element);
            match stream.is_future {
                true => format!("func() ({element}, error)"),
                false => format!("iter.Seq2[{element}, error]"),
            }
        }
    })
}

const SERVE: &str = "\
Serve makes this library a guest that serves the package. Call it once, in a function init of package \
main. open is called for each client of a program, before its first call; its error ends that call.";

/// Writes the function that serves the package.
pub(super) fn serve(go: &Go<'_>, out: &mut Source) {
    let package = go.plan.package;
    layout::docs(out, SERVE, "");
    out.open("func Serve(open func() (Service, error)) {");
    out.open("guest.Serve(guest.Package[Service]{");
    let mut fields = vec![
        row(
            "Name",
            format!("\"{}:{}\"", package.namespace, package.name),
        ),
        row("Version", format!("\"{}\"", package.version)),
    ];
    if package.limits.block_when_full {
        fields.push(row("Block", "true".to_owned()));
    }
    fields.push(row(
        "MaxQueuedCalls",
        package.limits.max_queued_calls.to_string(),
    ));
    fields.push(row(
        "MaxQueuedBytes",
        package.limits.max_queued_bytes.to_string(),
    ));
    layout::rows(&fields, out);
    out.open("Methods: []guest.Method[Service]{");
    for (number, function) in go.plan.imports.iter().enumerate() {
        out.open("{");
        let mut rows = description(go, function);
        rows.push(row("Serve", format!("serve{}", go.names.functions[number])));
        layout::rows(&rows, out);
        out.close("},");
    }
    out.close("},");
    if !go.plan.functions.is_empty() {
        out.open("Imports: []guest.Import{");
        for import in &go.plan.functions {
            out.open("{");
            layout::rows(&description(go, import), out);
            out.close("},");
        }
        out.close("},");
    }
    out.close("}, open)");
    out.close("}");
    out.blank();
}

fn row(key: &str, value: String) -> Row {
    Row {
        docs: String::new(),
        left: format!("{key}:"),
        right: format!("{value},"),
    }
}

fn description(go: &Go<'_>, function: &Function<'_>) -> Vec<Row> {
    let model = function.function;
    let types = go.plan.descriptions(model).join("\\n");
    let mut rows = vec![
        row("Name", format!("\"{}\"", model.full_name)),
        row("Description", format!("\"{types}\"")),
    ];
    let flags = [
        (model.is_async, "Async"),
        (model.options.is_idempotent, "Idempotent"),
        (model.options.is_cbor, "CBOR"),
        (model.options.is_brief, "Brief"),
    ];
    let flags = flags.iter().filter(|(is_set, _)| *is_set);
    let flags: Vec<_> = flags.map(|(_, name)| format!("guest.{name}")).collect();
    if !flags.is_empty() {
        rows.push(row("Flags", flags.join(" | ")));
    }
    if let Some(policy) = policy(function) {
        rows.push(row("Policy", policy));
    }
    rows
}

/// The options of a method that are not the defaults.
fn policy(function: &Function<'_>) -> Option<String> {
    let options = function.function.options;
    let stream = function.function.stream.unwrap_or(StreamOptions::DEFAULT);
    let default = StreamOptions::DEFAULT;
    let duration = |nanoseconds: u64| format!("{nanoseconds} * time.Nanosecond");
    let overflow = match stream.overflow {
        OverflowPolicy::Latest => "guest.OverflowLatest",
        OverflowPolicy::DropNewest => "guest.OverflowDropNewest",
        OverflowPolicy::DropOldest => "guest.OverflowDropOldest",
        OverflowPolicy::Fail => "guest.OverflowFail",
        _ => "guest.OverflowBlock",
    };
    let fields = [
        (
            options.notice_interval_ns > 0,
            "NoticeInterval",
            duration(options.notice_interval_ns),
        ),
        (
            options.timeout_ns > 0,
            "Timeout",
            duration(options.timeout_ns),
        ),
        (stream.linger_ns > 0, "Linger", duration(stream.linger_ns)),
        (
            stream.overflow != default.overflow,
            "Overflow",
            overflow.to_owned(),
        ),
        (
            stream.capacity != default.capacity,
            "Capacity",
            stream.capacity.to_string(),
        ),
        (
            stream.max_record_size != default.max_record_size,
            "MaxRecordSize",
            stream.max_record_size.to_string(),
        ),
    ];
    let fields = fields.into_iter().filter(|(is_set, ..)| *is_set);
    let fields: Vec<_> = fields
        .map(|(_, key, value)| format!("{key}: {value}"))
        .collect();
    (!fields.is_empty()).then(|| format!("guest.Policy{{{}}}", fields.join(", ")))
}

/// The receiver of a function's method: the state, or a resource.
pub(super) fn receiver(function: &Function<'_>) -> &'static str {
    match function.function.kind {
        FunctionKind::Method(_) => "self",
        _ => "service",
    }
}
