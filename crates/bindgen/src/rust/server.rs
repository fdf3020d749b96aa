//! The server: it connects the core with the service's traits.

use super::names::{camel, in_service, param, snake};
use super::{inline, line, params};
use crate::model::{Field, Function, FunctionKind, Package, Resource, TypeKind};

/// The server type, which decodes parameters, calls the trait and encodes results. `constant` is
/// the name of its package.
pub fn server(out: &mut String, package: &Package, constant: &str) {
    let name = camel(&package.interface);
    line(
        out,
        &format!(
            "
            port::server! {{
                pub struct {name}Server<S: {name}>
            }}

            impl<S: {name}> port::Service for {name}Server<S> {{
                const PACKAGE: &'static port::Package = &{constant};

                fn dispatch(&mut self, incoming: port::Incoming) {{
                    match incoming.method() {{"
        ),
    );
    let queued = || {
        let all = package.functions.iter().enumerate();
        all.filter(|(_, function)| !function.options.is_inline)
    };
    for (number, function) in queued() {
        let arm = format!("{number} => {},", serve(package, function));
        line(out, &arm);
    }
    line(
        out,
        "other => unreachable!(\"the package has no method {other}\"),
                    }
                }",
    );
    destructors(out, package);
    if inline::is_there(package) {
        line(
            out,
            &format!(
                "
                fn inline() -> Option<Box<dyn port::Inline>> {{
                    Some(Box::new({name}Inlined(S::Inline::default())))
                }}"
            ),
        );
    }
    line(out, "}");
}

/// The async destructor of each resource type.
fn destructors(out: &mut String, package: &Package) {
    let has = |resource: &Resource| Some((camel(&resource.name), resource.destructor?));
    let all: Vec<_> = package.resources.iter().filter_map(has).collect();
    if all.is_empty() {
        return;
    }
    line(
        out,
        "
        fn destructor(value: &(dyn std::any::Any + Send + Sync)) -> Option<u32> {",
    );
    for (name, number) in all {
        line(
            out,
            &format!("if value.is::<S::{name}>() {{ return Some({number}); }}"),
        );
    }
    line(out, "None\n}");
}

/// An expression that serves a call of `function`.
fn serve(package: &Package, function: &Function) -> String {
    let is_method = matches!(function.kind, FunctionKind::Method(_));
    let passed = &function.params[usize::from(is_method)..];
    let (target, name) = match is_method {
        true => ("self_", snake(&function.name)),
        false => ("self.0", in_service(package, function)),
    };
    let arguments: String = passed
        .iter()
        .map(|field| format!(", {}", param(&field.name)))
        .collect();
    let call = format!("{target}.{name}(incoming.call(){arguments})");
    let lookups = lookups(package, function);
    let has_result = function.is_async || function.ok.is_some() || function.error.is_some();
    let body = match (has_result, lookups.as_str()) {
        (false, _) => format!("{{ {lookups}{call}; Ok(()) }}"),
        (true, "") => format!("Ok({call})"),
        (true, _) => format!("{{ {lookups}Ok({call}) }}"),
    };
    let verb = match (function.is_async, &function.error) {
        (false, None) => "serve",
        (false, Some(_)) => "try_serve",
        (true, None) => "serve_async",
        (true, Some(_)) => "try_serve_async",
    };
    format!(
        "incoming.{verb}(|incoming, {}| {body}, port::Incoming::{})",
        params::pattern(package, function),
        reply(function)
    )
}

/// Statements that look up the streams and resources among the parameters. Borrowed resources are
/// looked up before owned ones, so that no resource is taken if this fails.
fn lookups(package: &Package, function: &Function) -> String {
    let mut out = String::new();
    for field in &function.params {
        let name = param(&field.name);
        match field.ty.kind {
            TypeKind::Stream(_) => out += &format!("let {name} = incoming.upstream({name})?;\n"),
            TypeKind::Future(_) => {
                out += &format!(
                    "let {name} = port::UpstreamFuture::from(incoming.upstream({name})?);\n"
                );
            }
            _ => {}
        }
    }
    let mut handles: Vec<_> = function
        .params
        .iter()
        .filter_map(|field| Some((field, resource_type(package, field)?)))
        .collect();
    handles.sort_by_key(|(field, _)| matches!(field.ty.kind, TypeKind::Own(_)));
    for (field, resource) in handles {
        let name = param(&field.name);
        let verb = match field.ty.kind {
            TypeKind::Own(_) => "own",
            _ => "borrow",
        };
        out += &format!("let {name} = incoming.{verb}::<{resource}>({name})?;\n");
    }
    out
}

fn resource_type(package: &Package, field: &Field) -> Option<String> {
    match field.ty.kind {
        TypeKind::Own(id) | TypeKind::Borrow(id) => {
            Some(format!("S::{}", camel(&package.resources[id.0].name)))
        }
        _ => None,
    }
}

/// The function that sends the result.
pub(super) fn reply(function: &Function) -> &'static str {
    match function.ok.as_ref().map(|ty| &ty.kind) {
        Some(TypeKind::Own(_)) => "reply_own",
        Some(TypeKind::Stream(_)) => "reply_stream",
        Some(TypeKind::Future(_)) => "reply_future",
        _ => "reply_value",
    }
}
