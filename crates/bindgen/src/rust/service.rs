//! The traits that a service implements.

use super::names::{camel, in_service, param, snake};
use super::types::{self, owned};
use super::{docs, inline, line};
use crate::model::{Function, FunctionKind, Package, ResourceId, Type, TypeKind};
use std::collections::BTreeSet;

/// The trait of the service, and one per resource.
pub fn traits(out: &mut String, package: &Package) {
    let name = camel(&package.interface);
    line(out, "");
    docs(out, &package.docs);
    line(
        out,
        "///
        /// Implement this trait. A `func` runs on the actor of the instance, one call at a time,
        /// and its result is the reply. An `async func` returns a [`port::Task`], which runs in a
        /// separate actor while the instance serves further calls.",
    );
    line(out, &format!("pub trait {name}: Sized + Send + 'static {{"));
    if inline::is_there(package) {
        line(out, "/// The implementation of the inline functions.");
        line(out, &format!("type Inline: {name}Inline;\n"));
    }
    for (id, resource) in package.resources.iter().enumerate() {
        docs(out, &resource.docs);
        let others = others(package, ResourceId(id)).map(|other| {
            let other = camel(&package.resources[other.0].name);
            format!("{other} = Self::{other}")
        });
        let others = others.collect::<Vec<_>>().join(", ");
        let bound = match others.as_str() {
            "" => String::new(),
            others => format!("<{others}>"),
        };
        line(
            out,
            &format!("type {0}: {0}{bound};\n", camel(&resource.name)),
        );
    }
    for function in package
        .functions
        .iter()
        .filter(|f| !matches!(f.kind, FunctionKind::Method(_)) && !f.options.is_inline)
    {
        docs(out, &function.docs);
        let name = in_service(package, function);
        signature(
            out,
            package,
            function,
            &format!("{name}(&mut self"),
            &function.params,
        );
    }
    line(out, "}");

    for (id, resource) in package.resources.iter().enumerate() {
        line(out, "");
        docs(out, &resource.docs);
        line(
            out,
            &format!(
                "pub trait {}: Sized + Send + Sync + 'static {{",
                camel(&resource.name)
            ),
        );
        for other in others(package, ResourceId(id)) {
            let other = &package.resources[other.0];
            docs(out, &other.docs);
            line(out, &format!("type {0}: {0};\n", camel(&other.name)));
        }
        for function in package
            .functions
            .iter()
            .filter(|f| f.kind == FunctionKind::Method(ResourceId(id)))
        {
            docs(out, &function.docs);
            let receiver = if function.is_async {
                "self: std::sync::Arc<Self>"
            } else {
                "&self"
            };
            let name = snake(&function.name);
            signature(
                out,
                package,
                function,
                &format!("{name}({receiver}"),
                &function.params[1..],
            );
        }
        line(out, "}");
    }
}

/// The other resources that methods of `own` use.
pub(crate) fn others(package: &Package, own: ResourceId) -> impl Iterator<Item = ResourceId> {
    let methods = package
        .functions
        .iter()
        .filter(|function| function.kind == FunctionKind::Method(own));
    let types = methods.flat_map(|f| f.params.iter().map(|field| &field.ty).chain(&f.ok));
    let named: BTreeSet<_> = types
        .filter_map(|ty| match ty.kind {
            TypeKind::Own(id) | TypeKind::Borrow(id) if id != own => Some(id.0),
            _ => None,
        })
        .collect();
    named.into_iter().map(ResourceId)
}

/// Appends a function declaration that begins with `begin`.
pub(crate) fn signature(
    out: &mut String,
    package: &Package,
    function: &Function,
    begin: &str,
    params: &[crate::model::Field],
) {
    let params: String = params
        .iter()
        .map(|field| {
            format!(
                ", {}: {}",
                param(&field.name),
                served(package, function, &field.ty)
            )
        })
        .collect();
    let result = result(package, function);
    let result = if result == "()" {
        String::new()
    } else {
        format!(" -> {result}")
    };
    line(
        out,
        &format!("fn {begin}, call: &port::Call{params}){result};\n"),
    );
}

/// The type of a resource in the declaration of `function`.
fn resource(package: &Package, function: &Function, id: ResourceId) -> String {
    match function.kind {
        FunctionKind::Method(own) if own == id => "Self".to_owned(),
        _ => format!("Self::{}", camel(&package.resources[id.0].name)),
    }
}

/// The type of a parameter of the service.
fn served(package: &Package, function: &Function, ty: &Type) -> String {
    match ty.kind {
        TypeKind::Own(id) | TypeKind::Borrow(id) => {
            format!("std::sync::Arc<{}>", resource(package, function, id))
        }
        _ => types::sent_up(package, ty).unwrap_or_else(|| owned(package, ty)),
    }
}

pub(super) fn result(package: &Package, function: &Function) -> String {
    let ok = match function.ok.as_ref() {
        None => "()".to_owned(),
        Some(Type {
            kind: TypeKind::Own(id),
            ..
        }) => resource(package, function, *id),
        Some(ty) => types::result(package, function, ty),
    };
    let all = match types::error(package, function) {
        None => ok,
        Some(error) => format!("Result<{ok}, {error}>"),
    };
    if function.is_async {
        format!("port::Task<{all}>")
    } else {
        all
    }
}
