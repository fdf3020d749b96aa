//! The functions that serve calls: they read the arguments, call the method, and answer.

use super::{Go, service};
use crate::plan::codec::{At, Codec, Dialect, Leaf, Test};
use crate::plan::source::Source;
use crate::plan::{Function, Handle, Kind, ParameterKind, ResultKind, TypeIndex};
use std::collections::BTreeSet;

/// Writes the functions that serve calls, and those that write errors and elements of streams.
pub(super) fn calls(go: &Go<'_>, out: &mut Source) {
    for (number, function) in go.plan.imports.iter().enumerate() {
        call(go, number, function, out);
    }
    let mut errors = BTreeSet::new();
    for function in &go.plan.imports {
        if let Some(error) = function.error
            && errors.insert(error)
        {
            encode(go, error, function.function.hashes.error, out);
        }
    }
    let elements: BTreeSet<_> = go
        .plan
        .streams
        .iter()
        .filter_map(|one| one.element)
        .collect();
    for ty in elements {
        element(go, ty, out);
    }
    let received: BTreeSet<_> = go
        .plan
        .upstreams
        .iter()
        .filter_map(|one| one.element)
        .collect();
    for ty in received {
        read(go, ty, out);
    }
}

/// The lower half of a hash, which is in the header of a message.
pub(super) fn layout(hash: u64) -> String {
    format!("{:#x}", hash as u32)
}

fn call(go: &Go<'_>, number: usize, function: &Function<'_>, out: &mut Source) {
    let model = function.function;
    let receiver = service::receiver(function);
    let parameter = match receiver {
        "self" => "_",
        name => name,
    };
    out.open(&format!(
        "func serve{}({parameter} Service, call *guest.Call) {{",
        go.names.functions[number]
    ));
    let mut codec = Codec::new(go.plan, go, out);
    if !function.parameters.is_empty() {
        codec.line(&format!(
            "m, at := call.Open({}, {})",
            layout(model.hashes.params),
            model.params_layout.0
        ));
        for parameter in &function.parameters {
            let at = At::new("at").plus(parameter.offset);
            match parameter.kind {
                ParameterKind::Value(ty) => codec.check(ty, &at),
                _ => codec.line(&go.check(Test::Handle, &at)),
            }
        }
        refused(&mut codec, "!call.IsChecked()");
    }
    let mut names = go.names.parameters(function);
    if receiver == "self" {
        names.insert(0, receiver.to_owned());
    }
    for (parameter, name) in function.parameters.iter().zip(&names) {
        let at = At::new("at").plus(parameter.offset);
        match parameter.kind {
            ParameterKind::Value(ty) => {
                let value = codec.get(ty, &at);
                codec.line(&format!("{name} := {value}"));
            }
            ParameterKind::Resource { id, is_own } => {
                let handle = if is_own {
                    Handle::Own(id)
                } else {
                    Handle::Borrow(id)
                };
                let resource = go.get(Leaf::Handle(handle), &at);
                codec.line(&format!("{name} := {resource}"));
            }
            ParameterKind::Stream(stream) => {
                let stream = &go.plan.upstreams[stream];
                let receive = if stream.is_future {
                    "ReceiveFuture"
                } else {
                    "ReceiveStream"
                };
                let read = match stream.element {
                    Some(ty) => format!("read{}", go.names.stems[ty.0]),
                    None => "guest.ReadNothing".to_owned(),
                };
                codec.line(&format!(
                    "{name} := guest.{receive}(call, m.Handle({}), {read})",
                    super::layout::among(&at)
                ));
            }
        }
    }
    if go.plan.handles(function) != Some(0) {
        refused(&mut codec, "call.IsRefused()");
    }
    let arguments = names.iter().skip(usize::from(receiver == "self"));
    let arguments: String = arguments.map(|name| format!(", {name}")).collect();
    let called = format!("{receiver}.{}(call{arguments})", go.names.methods[number]);
    let encode = encoder(go, function);
    let result = match function.ok {
        ResultKind::Nothing => "",
        ResultKind::Stream(_) => "records, ",
        _ => "result, ",
    };
    codec.line(
        &match result {
            "" => format!("if err := {called}; err != nil {{"),
            _ => format!("{result}err := {called}\nif err != nil {{"),
        }
        .replace('\n', "\n\t"),
    );
    codec.line(&format!("\tcall.Fail(err, {encode})"));
    codec.line("\treturn");
    codec.line("}");
    match function.ok {
        ResultKind::Nothing => {
            codec.line(&format!("call.Begin({}, 0)", layout(model.hashes.ok)));
            codec.line("call.Answer()");
        }
        ResultKind::Value(ty) if go.plan.get(ty).has_handles => {
            out.open("call.AnswerResources(func(w *wire.Writer) {");
            begin(go, ty, model.hashes.ok, out);
            Codec::new(go.plan, go, out).put(ty, &At::new("to"), "result");
            out.close("})");
        }
        ResultKind::Value(ty) => {
            codec.line(&format!(
                "w, to := call.Begin({}, {})",
                layout(model.hashes.ok),
                go.plan.get(ty).size
            ));
            codec.put(ty, &At::new("to"), "result");
            codec.line("call.Answer()");
        }
        ResultKind::Resource(id) => {
            let resource = &go.names.resources[id.0];
            codec.line(&format!("call.AnswerObject(type{resource}, result)"));
        }
        ResultKind::Stream(stream) => {
            let stream = &go.plan.streams[stream];
            let answer = if stream.is_future {
                "AnswerFuture"
            } else {
                "AnswerStream"
            };
            let element = match stream.element {
                Some(ty) => format!("element{}", go.names.stems[ty.0]),
                None => "guest.NoElement".to_owned(),
            };
            codec.line(&format!(
                "guest.{answer}(call, records, {element}, {encode})"
            ));
        }
    }
    out.close("}");
    out.blank();
}

/// Ends the function if the condition is true: the call has ended.
fn refused(codec: &mut Codec<'_>, condition: &str) {
    codec.line(&format!("if {condition} {{"));
    codec.line("\treturn");
    codec.line("}");
}

/// The function that writes the error of a function.
fn encoder(go: &Go<'_>, function: &Function<'_>) -> String {
    match (function.error, &function.function.error) {
        (Some(ty), _) => format!("encode{}", go.names.stems[ty.0]),
        (None, Some(_)) => "guest.EncodeNothing".to_owned(),
        (None, None) => "nil".to_owned(),
    }
}

/// Writes the function that writes an error.
fn encode(go: &Go<'_>, ty: TypeIndex, hash: u64, out: &mut Source) {
    let planned = go.plan.get(ty);
    let (stem, name) = (&go.names.stems[ty.0], go.ty(ty));
    let (variable, value) = match (&planned.kind, planned.id) {
        (Kind::Text, _) => (None, "text"),
        (Kind::Record(_), _) | (_, Some(_)) => (Some(name), "value"),
        _ => (Some(format!("guest.Failure[{name}]")), "value.Value"),
    };
    out.open(&format!(
        "func encode{stem}(w *wire.Writer, err error) bool {{"
    ));
    match variable {
        None => {
            out.line("text, ok := guest.TextOf(err)");
            out.open("if !ok {");
        }
        Some(variable) => {
            out.line(&format!("var value {variable}"));
            out.open("if !errors.As(err, &value) {");
        }
    }
    out.line("return false");
    out.close("}");
    begin(go, ty, hash, out);
    Codec::new(go.plan, go, out).put(ty, &At::new("to"), value);
    out.line("return true");
    out.close("}");
    out.blank();
}

/// Writes the line that begins a message.
fn begin(go: &Go<'_>, ty: TypeIndex, hash: u64, out: &mut Source) {
    let size = go.plan.get(ty).size;
    out.line(&format!("to := w.Begin({}, {size})", layout(hash)));
}

/// Writes the function that reads an element of a stream that is a parameter.
fn read(go: &Go<'_>, ty: TypeIndex, out: &mut Source) {
    let (stem, name) = (&go.names.stems[ty.0], go.ty(ty));
    out.open(&format!(
        "func read{stem}(m *wire.Message, at int) {name} {{"
    ));
    let value = Codec::new(go.plan, go, out).get(ty, &At::new("at"));
    out.line(&format!("return {value}"));
    out.close("}");
    out.blank();
}

/// Writes how an element of a stream is written.
fn element(go: &Go<'_>, ty: TypeIndex, out: &mut Source) {
    let (stem, name) = (&go.names.stems[ty.0], go.ty(ty));
    out.open(&format!("var element{stem} = guest.Element[{name}]{{"));
    out.line(&format!("Size: {},", go.plan.get(ty).size));
    out.open(&format!(
        "Put: func(w *wire.Writer, at int, value {name}) {{"
    ));
    Codec::new(go.plan, go, out).put(ty, &At::new("at"), "value");
    out.close("},");
    out.close("}");
    out.blank();
}
