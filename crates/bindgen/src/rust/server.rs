//! The server: it connects the core with the service's traits.

use super::names::{camel, in_service, param, snake};
use super::{inline, line, params};
use crate::model::{
    Field, Function, FunctionKind, Package, Resource, Type, TypeKind, is_stream_or_future,
};

/// The server type, which decodes parameters, calls the trait and encodes results. `constant` is
/// the name of its package.
pub fn server(out: &mut String, package: &Package, constant: &str) {
    let name = camel(&package.interface);
    line(
        out,
        &format!(
            "
            /// The server of an implementation of [`{name}`]. A library exports it, and a client
            /// starts it.
            #[derive(Debug)]
            pub struct {name}Server<S>(S);

            impl<S: {name}> {name}Server<S> {{
                /// A server of `service`.
                pub fn new(service: S) -> Self {{
                    Self(service)
                }}
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
        line(
            out,
            &format!(
                "{number} => self.{}(incoming),",
                serve_name(package, function)
            ),
        );
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
    line(out, "}\n");
    line(out, &format!("impl<S: {name}> {name}Server<S> {{"));
    for (_, function) in queued() {
        serve(out, package, function);
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

pub(super) fn serve_name(package: &Package, function: &Function) -> String {
    let name = match function.kind {
        FunctionKind::Method(id) => {
            format!("{}-method-{}", package.resources[id.0].name, function.name)
        }
        _ => in_service(package, function)
            .trim_start_matches("r#")
            .replace('_', "-"),
    };
    snake(&format!("serve-{name}"))
}

fn serve(out: &mut String, package: &Package, function: &Function) {
    let uses_self = !matches!(function.kind, FunctionKind::Method(_));
    let receiver = if uses_self { "&mut self" } else { "&self" };
    line(
        out,
        &format!(
            "fn {}({receiver}, incoming: port::Incoming) {{",
            serve_name(package, function)
        ),
    );
    read_params(out, package, function);

    let arguments: Vec<_> = match function.kind {
        FunctionKind::Method(_) => &function.params[1..],
        _ => &function.params[..],
    }
    .iter()
    .map(|field| format!(", {}", param(&field.name)))
    .collect();
    let arguments = arguments.concat();
    let call = match function.kind {
        FunctionKind::Method(_) => format!(
            "self_.{}(incoming.call(){arguments})",
            snake(&function.name)
        ),
        _ => format!(
            "self.0.{}(incoming.call(){arguments})",
            in_service(package, function)
        ),
    };
    if function.is_async {
        line(out, &format!("let task = {call};"));
        line(
            out,
            &format!(
                "incoming.run(task, |incoming, result| {});",
                reply(package, function, "result")
            ),
        );
    } else if function.ok.is_none() && function.error.is_none() {
        line(out, &format!("{call};\nincoming.reply(&());"));
    } else {
        line(out, &format!("let result = {call};"));
        line(out, &reply(package, function, "result"));
    }
    line(out, "}\n");
}

/// Decodes the parameters into variables, and looks up resources. Borrowed resources are looked up
/// first, so that no resource is taken if this fails.
pub(super) fn read_params(out: &mut String, package: &Package, function: &Function) {
    let fields = &function.params;
    let names = params::pattern(package, function);
    let tuple = params::read_as(package, function);
    let bind = if fields.is_empty() {
        String::new()
    } else {
        format!("let {names} = ")
    };
    let found = if fields.is_empty() {
        "Ok(()) => {}"
    } else {
        "Ok(params) => params,"
    };
    line(
        out,
        &format!(
            "{bind}match incoming.params::<{tuple}>() {{
                {found}
                Err(refusal) => return incoming.refuse(refusal),
            }};"
        ),
    );
    read_streams(out, function);
    let mut handles: Vec<_> = fields
        .iter()
        .filter(|field| resource_type(package, field).is_some())
        .collect();
    handles.sort_by_key(|field| matches!(field.ty.kind, TypeKind::Own(_)));
    for field in handles {
        let (name, word) = (
            param(&field.name),
            if matches!(field.ty.kind, TypeKind::Own(_)) {
                "own"
            } else {
                "borrow"
            },
        );
        let resource = resource_type(package, field).expect("only resources are in the list");
        line(
            out,
            &format!(
                "let {name} = match incoming.{word}::<{resource}>({name}) {{
                    Ok(resource) => resource,
                    Err(refusal) => return incoming.refuse(refusal),
                }};"
            ),
        );
    }
}

/// Looks up the streams and futures among the parameters.
fn read_streams(out: &mut String, function: &Function) {
    for field in function
        .params
        .iter()
        .filter(|field| is_stream_or_future(&field.ty))
    {
        let name = param(&field.name);
        let future = match field.ty.kind {
            TypeKind::Future(_) => "port::UpstreamFuture::from(stream)",
            _ => "stream",
        };
        line(
            out,
            &format!(
                "let {name} = match incoming.upstream({name}) {{
                    Ok(stream) => {future},
                    Err(refusal) => return incoming.refuse(refusal),
                }};"
            ),
        );
    }
}

fn resource_type(package: &Package, field: &Field) -> Option<String> {
    match field.ty.kind {
        TypeKind::Own(id) | TypeKind::Borrow(id) => {
            Some(format!("S::{}", camel(&package.resources[id.0].name)))
        }
        _ => None,
    }
}

/// An expression that replies with `result`.
pub(super) fn reply(package: &Package, function: &Function, result: &str) -> String {
    let ok = |value: &str| match &function.ok {
        Some(Type {
            kind: TypeKind::Own(id),
            ..
        }) => {
            format!(
                "incoming.reply_own::<S::{}>({value})",
                camel(&package.resources[id.0].name)
            )
        }
        Some(Type {
            kind: TypeKind::Stream(_),
            ..
        }) => format!("incoming.reply_stream({value})"),
        Some(Type {
            kind: TypeKind::Future(_),
            ..
        }) => format!("incoming.reply_stream({value}.into_stream())"),
        _ => format!("incoming.reply(&{value})"),
    };
    match &function.error {
        None => ok(result),
        Some(_) => format!(
            "match {result} {{
                Ok(value) => {},
                Err(error) => incoming.reply_error(&error),
            }}",
            ok("value")
        ),
    }
}
