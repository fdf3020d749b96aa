//! `client.py` and `aio.py`: the client, and a class for each resource.

use std::collections::BTreeSet;
use std::time::Duration;

use super::annotation;
use super::host;
use super::names;
use super::plan::Plan;
use super::source::{self, Doc, Source, mentions};
use crate::model::{Function, FunctionKind, ResourceId, TypeDefKind, TypeKind};
use crate::plan::names::Scope;

/// The kind of a client class.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Face {
    Sync,
    Async,
}

pub(super) fn emit(plan: &Plan<'_>, face: Face) -> Source {
    let mut body = source::file(plan);
    let start = body.len();
    for place in 0..plan.package.resources.len() {
        resource(plan, place, face, &mut body);
    }
    host::protocol(plan, face, &mut body);
    client(plan, face, &mut body);
    let body = body.tail(start);

    let mut out = source::file(plan);
    let whom = if face == Face::Sync {
        "sync code"
    } else {
        "asyncio"
    };
    out.docstring(0, &format!("The client of {} for {whom}.", plan.id()));
    out.blank();
    out.line_at(0, "from __future__ import annotations");
    out.blank();
    if mentions(&body, "builtins") {
        out.line_at(0, "import builtins");
    }
    let abc = [
        "AsyncIterable",
        "Awaitable",
        "Callable",
        "Iterable",
        "Sequence",
    ];
    let abc: Vec<String> = abc
        .into_iter()
        .filter(|name| mentions(&body, name))
        .map(String::from)
        .collect();
    out.import("collections.abc", &abc);
    out.line_at(0, "from os import PathLike");
    let protocol = if plan.host.is_some() {
        "Protocol, "
    } else {
        ""
    };
    out.line_at(0, &format!("from typing import {protocol}Self"));
    out.blank();
    out.line_at(0, "import thalweg");
    out.blank();
    out.line_at(0, "from . import _methods");
    let local = |names: Vec<String>| {
        names
            .into_iter()
            .filter(|name| mentions(&body, name))
            .collect::<Vec<_>>()
    };
    out.import(".types", &local(plan.type_names()));
    out.import(".views", &local(plan.view_names()));
    out.append(&body);
    out
}

pub(super) fn pick(pair: &(String, String), face: Face) -> &str {
    if face == Face::Sync { &pair.0 } else { &pair.1 }
}

fn resource(plan: &Plan<'_>, place: usize, face: Face, out: &mut Source) {
    let resource = &plan.package.resources[place];
    let base = if face == Face::Sync {
        "Resource"
    } else {
        "AsyncResource"
    };
    out.gap();
    out.line_at(
        0,
        &format!(
            "class {}(thalweg.{base}):",
            pick(&plan.resources[place], face)
        ),
    );
    let docs = if resource.docs.trim().is_empty() {
        format!("The resource `{}`.", resource.name)
    } else {
        resource.docs.clone()
    };
    out.docstring(1, &docs);
    out.blank();
    out.line_at(1, "__slots__ = ()");
    let mine = FunctionKind::Method(ResourceId(place));
    let all = plan.package.functions.iter().zip(&plan.methods);
    let of_this = all.filter(|(function, _)| function.kind == mine);
    let named = of_this.map(|(function, constant)| (function, constant, function.name.clone()));
    methods(plan, named.collect(), face, out);
}

/// A method of a class.
struct MethodName<'p> {
    function: &'p Function,
    constant: &'p str,
    name: String,
}

/// Names the methods of a class, and writes them.
fn methods(plan: &Plan<'_>, all: Vec<(&Function, &String, String)>, face: Face, out: &mut Source) {
    let mut taken = Scope::default();
    let all: Vec<MethodName<'_>> = all
        .into_iter()
        .map(|(function, constant, name)| MethodName {
            function,
            constant,
            name: taken.claim(names::METHOD.of(&name)),
        })
        .collect();
    let own = all.iter().map(|method| method.name.clone()).collect();
    for named in &all {
        method(plan, named, &own, face, out);
    }
}

fn client(plan: &Plan<'_>, face: Face, out: &mut Source) {
    let base = if face == Face::Sync {
        "Client"
    } else {
        "AsyncClient"
    };
    out.gap();
    out.line_at(
        0,
        &format!("class {}(thalweg.{base}):", pick(&plan.client, face)),
    );
    let mut docs = plan.package.docs.trim().to_owned();
    if !docs.is_empty() {
        docs.push_str("\n\n");
    }
    docs.push_str(
        "Each client has its own instance of the service. Every call accepts `timeout` in seconds,\n\
         and raises `thalweg.TimedOut` after it.",
    );
    out.docstring(1, &docs);
    out.blank();
    out.line_at(1, "__slots__ = ()");
    out.blank();
    out.line_at(1, "@classmethod");
    let mut parameters = vec![
        Doc::from("cls"),
        "path: str | PathLike[str] | None = None".into(),
    ];
    let library = Doc::from("thalweg.library_path(path, __file__)");
    let mut opened = vec![Doc::from("_methods.PACKAGE"), library];
    let mut hosts = String::new();
    if let Some(host) = &plan.host {
        let host = pick(host, face);
        parameters.extend(["*".into(), format!("host: {host} | None = None").into()]);
        opened.push("host".into());
        hosts = "\n\n`host` provides the host imports of the service.".to_owned();
    }
    out.definition(1, "def open(", parameters, ") -> Self:");
    out.docstring(
        2,
        &format!(
            "Opens a library, by default the one in this package, and makes a client.{hosts}\n\n\
         Raises `OSError` if the library cannot be loaded, and `thalweg.VersionMismatch` if it is\n\
         not compatible with this package."
        ),
    );
    out.statement(2, "", &Doc::call("return cls._open", opened), "");
    let all = plan.package.functions.iter().zip(&plan.methods);
    let named = all.filter(|(function, _)| !matches!(function.kind, FunctionKind::Method(_)));
    let named = named.map(|(function, constant)| {
        let name = plan.whole.name_in_class(function);
        (function, constant, name)
    });
    methods(plan, named.collect(), face, out);
}

/// Writes one method of a class that has the names `own`.
fn method(
    plan: &Plan<'_>,
    named: &MethodName<'_>,
    own: &BTreeSet<String>,
    face: Face,
    out: &mut Source,
) {
    let MethodName {
        function,
        constant,
        name,
    } = named;
    let is_method = matches!(function.kind, FunctionKind::Method(_));
    let params = &function.params[usize::from(is_method)..];
    let mut signature = vec![Doc::from("self")];
    let mut arguments = vec![Doc::from("self"), "timeout".into()];
    if is_method {
        arguments.push("self".into());
    }
    let mut taken = Scope::default();
    let defaults = annotation::defaults(plan, params.iter().map(|param| &param.ty));
    for (param, has_default) in params.iter().zip(defaults) {
        let name = taken.claim(names::PARAMETER.of(&param.name));
        let annotation = annotation::parameter(plan, &param.ty, face);
        let annotation = names::within(&annotation, own);
        let default = if has_default { " = None" } else { "" };
        signature.push(format!("{name}: {annotation}{default}").into());
        arguments.push(name.into());
    }
    let timeout = names::within("timeout: float | None = None", own);
    signature.extend(["*".into(), timeout.into()]);
    if has_notices(function) {
        let on_notice = "on_notice: Callable[[float], object] | None = None";
        signature.push(names::within(on_notice, own).into());
        arguments.push("on_notice=on_notice".into());
    }
    let result = annotation::result(plan, function.ok.as_ref(), face);
    let result = names::within(&result, own);
    let (def, wait, verb) = match face {
        Face::Sync => ("def", "return ", "call"),
        Face::Async => ("async def", "return await ", "start"),
    };
    out.blank();
    out.definition(
        1,
        &format!("{def} {name}("),
        signature,
        &format!(") -> {result}:"),
    );
    out.docstring(2, &docs(plan, function, face));
    let verb = match function.ok.as_ref().map(|ok| &ok.kind) {
        Some(TypeKind::Own(id)) => {
            arguments.insert(0, pick(&plan.resources[id.0], face).into());
            if face == Face::Sync {
                "make"
            } else {
                "start_make"
            }
        }
        _ => verb,
    };
    let is_future = matches!(
        function.ok.as_ref().map(|ok| &ok.kind),
        Some(TypeKind::Future(_))
    );
    if is_future {
        let (wait, class) = match face {
            Face::Sync => ("", "Future"),
            Face::Async => ("await ", "AsyncFuture"),
        };
        let called = Doc::call(&format!("{wait}_methods.{constant}.{verb}"), arguments);
        let made = Doc::call(&format!("return thalweg.{class}"), vec![called]);
        return out.statement(2, "", &made, "");
    }
    let called = Doc::call(&format!("{wait}_methods.{constant}.{verb}"), arguments);
    out.statement(2, "", &called, "");
}

/// Whether callers may request progress notices.
fn has_notices(function: &Function) -> bool {
    function.options.notice_interval_ns > 0
}

/// The documentation of a function, with its exceptions. Empty if there is nothing to document.
pub(super) fn docs(plan: &Plan<'_>, function: &Function, face: Face) -> String {
    let mut docs = function.docs.trim().to_owned();
    for param in &function.params {
        let name = names::PARAMETER.of(&param.name);
        match param.ty.kind {
            TypeKind::Stream(_) => docs.push_str(&format!(
                "\n\n`{name}` is iterated and sent during the call, until the service closes the stream. An\n\
                 exception of the iterator cancels the call, which raises it."
            )),
            TypeKind::Future(_) => docs.push_str(&format!(
                "\n\n`{name}` is a value{}, or `thalweg.NoValue()`.",
                match face {
                    Face::Sync => "",
                    Face::Async => ", or an awaitable of it",
                }
            )),
            _ => {}
        }
    }
    if has_notices(function) {
        docs.push_str(&format!(
            "\n\n`on_notice` is called every {} s during the call, with the seconds since its start. An\n\
             exception cancels the call, which raises it.",
            Duration::from_nanos(function.options.notice_interval_ns).as_secs_f64()
        ));
    }
    let raised = match &function.error {
        None => return docs.trim_start().to_owned(),
        Some(Some(error)) => match plan.resolve(error).kind {
            TypeKind::Named(id) => {
                let (def, planned) = plan.type_of(id);
                match &def.kind {
                    TypeDefKind::Variant { .. } => planned.class.clone(),
                    _ => planned.exception.clone().unwrap_or_default(),
                }
            }
            _ => "thalweg.ServiceError".into(),
        },
        Some(None) => "thalweg.ServiceError".into(),
    };
    format!("{docs}\n\nRaises `{raised}`.")
        .trim_start()
        .to_owned()
}
