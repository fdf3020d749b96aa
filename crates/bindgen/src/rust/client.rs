//! The typed client of the service, and one per resource.

use super::names::{camel, in_client, param};
use super::types::{self, owned};
use super::{docs, line, params};
use crate::model::{Function, FunctionKind, Package, ResourceId, TypeKind, is_destructor};

/// All clients.
pub fn clients(out: &mut String, package: &Package) {
    let name = camel(&package.interface);
    let host = package.host.as_ref().map(|host| camel(&host.interface));
    let host = host.map_or(String::new(), |host| {
        format!(",\n    with_host {host}Server<{host}>")
    });
    line(
        out,
        &format!(
            "
            port::client! {{
                pub struct {name}Client: {name}Server<{name}>, package PACKAGE{host}
            }}

            impl {name}Client {{"
        ),
    );
    for (number, function) in package.functions.iter().enumerate() {
        if !matches!(function.kind, FunctionKind::Method(_)) {
            method(out, package, number, function, ("self.client", "call"));
        }
    }
    line(out, "}");

    for (id, resource) in package.resources.iter().enumerate() {
        let name = camel(&resource.name);
        line(out, "\nport::resource_client! {");
        for doc in resource.docs.lines() {
            line(out, format!("    /// {doc}").trim_end());
        }
        line(
            out,
            &format!("    pub struct {name}Client\n}}\n\nimpl {name}Client {{"),
        );
        for (number, function) in package.functions.iter().enumerate() {
            if function.kind == FunctionKind::Method(ResourceId(id)) {
                method(
                    out,
                    package,
                    number,
                    function,
                    ("self.own.client()", "call"),
                );
            }
        }
        line(out, "}");
    }
}

/// A function that calls `client` with the method `verb`.
pub(super) fn method(
    out: &mut String,
    package: &Package,
    number: usize,
    function: &Function,
    (client, verb): (&str, &str),
) {
    let params = match function.kind {
        FunctionKind::Method(_) => &function.params[1..],
        _ => &function.params[..],
    };
    let declared: String = params
        .iter()
        .map(|field| {
            let ty = match field.ty.kind {
                TypeKind::Own(id) => format!("{}Client", camel(&package.resources[id.0].name)),
                TypeKind::Borrow(id) => format!("&{}Client", camel(&package.resources[id.0].name)),
                _ => types::sent_up(package, &field.ty)
                    .unwrap_or_else(|| types::param(package, &field.ty)),
            };
            format!(", {}: {ty}", param(&field.name))
        })
        .collect();
    let passed = params.iter().map(|field| {
        let name = param(&field.name);
        match field.ty.kind {
            TypeKind::Own(_) => format!("{name}.own.into_handle()"),
            TypeKind::Borrow(_) => format!("{name}.own.handle()"),
            TypeKind::Future(_) => format!("{name}.as_stream()"),
            _ if types::list_param(package, &field.ty).is_some() => format!("{name}.as_list()"),
            _ => name,
        }
    });
    // A destructor takes the resource by value.
    let takes = is_destructor(function);
    let (receiver, handle) = match takes {
        true => ("self", "self.own.into_handle()"),
        false => ("&self", "self.own.handle()"),
    };
    let own = matches!(function.kind, FunctionKind::Method(_)).then(|| handle.to_owned());
    let values: Vec<_> = own.into_iter().chain(passed).collect();
    let passed = params::passed(package, function, &values);

    let (ok, read) = match function.ok.as_ref() {
        None => ("()".to_owned(), "value"),
        Some(ty) => match &ty.kind {
            TypeKind::Own(id) => (types::client(package, *id), "resource"),
            TypeKind::Stream(_) => (types::result(package, function, ty), "stream"),
            TypeKind::Future(_) => (types::result(package, function, ty), "future"),
            _ => (owned(package, ty), "value"),
        },
    };
    let error = types::error(package, function);
    docs(out, &function.docs);
    let (gives, call) = if function.options.is_inline {
        let error = error.unwrap_or("port::NoError".to_owned());
        let gives = format!("Result<{ok}, port::CallError<{error}>>");
        (gives, "call_inline")
    } else {
        let error = error.map_or(String::new(), |error| format!(", {error}"));
        (format!("port::Pending<{ok}{error}>"), verb)
    };
    line(
        out,
        &format!(
            "pub fn {}({receiver}{declared}) -> {gives} {{
                {client}.{call}({number}, &{passed}, port::Reply::{read})
            }}
            ",
            in_client(package, function)
        ),
    );
}
