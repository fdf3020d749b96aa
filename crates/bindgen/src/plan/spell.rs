//! Types and signatures in WIT.

use crate::model::{Function, FunctionKind, Package, Type, TypeDefKind, TypeKind};

/// How a named type is spelled.
#[derive(Clone, Copy)]
enum Names {
    /// With the name that its user wrote.
    Written,
    /// An alias as its target.
    Resolved,
    /// As [`Names::Resolved`], and every other name as its number, which no other type has.
    Numbers,
}

/// A type in WIT, with the names that its author used.
pub fn spell(package: &Package, ty: &Type) -> String {
    spelled(package, ty, Names::Written)
}

/// A type in WIT, with aliases resolved.
pub(super) fn resolved(package: &Package, ty: &Type) -> String {
    spelled(package, ty, Names::Resolved)
}

/// A text that two types share only if they are the same type.
pub(super) fn key(package: &Package, ty: &Type) -> String {
    spelled(package, ty, Names::Numbers)
}

fn spelled(package: &Package, ty: &Type, names: Names) -> String {
    let inner = |ty: &Type| spelled(package, ty, names);
    let optional = |ty: &Option<Box<Type>>| ty.as_ref().map_or("_".to_owned(), |ty| inner(ty));
    let resource = |id: &crate::model::ResourceId| match names {
        Names::Numbers => format!("@{}", id.0),
        _ => package.resources[id.0].name.clone(),
    };
    let word = match &ty.kind {
        TypeKind::String => "string",
        TypeKind::List(element) => return format!("list<{}>", inner(element)),
        TypeKind::Array(element, count) => return format!("list<{}, {count}>", inner(element)),
        TypeKind::Option(value) => return format!("option<{}>", inner(value)),
        TypeKind::Result {
            ok: None,
            error: None,
        } => "result",
        TypeKind::Result {
            ok: Some(ok),
            error: None,
        } => return format!("result<{}>", inner(ok)),
        TypeKind::Result { ok, error } => {
            return format!("result<{}, {}>", optional(ok), optional(error));
        }
        TypeKind::Tuple(types) => {
            let types: Vec<_> = types.iter().map(inner).collect();
            return format!("tuple<{}>", types.join(", "));
        }
        TypeKind::Named(id) => match (&package.types[id.0].kind, names) {
            (TypeDefKind::Alias(target), Names::Resolved | Names::Numbers) => return inner(target),
            (_, Names::Numbers) => return format!("#{}", id.0),
            _ => &package.types[id.0].name,
        },
        TypeKind::Own(id) => return resource(id),
        TypeKind::Borrow(id) => return format!("borrow<{}>", resource(id)),
        TypeKind::Stream(None) => "stream",
        TypeKind::Stream(Some(element)) => return format!("stream<{}>", inner(element)),
        TypeKind::Future(None) => "future",
        TypeKind::Future(Some(value)) => return format!("future<{}>", inner(value)),
        kind => kind.scalar().expect("only scalars are left").wit(),
    };
    word.to_owned()
}

/// `async func(pattern: string, dir: string) -> result<u64, search-error>`
pub fn spell_signature(package: &Package, function: &Function) -> String {
    let params: Vec<_> = function
        .params
        .iter()
        .filter(|field| field.name != "self")
        .map(|field| format!("{}: {}", field.name, spell(package, &field.ty)))
        .collect();
    let ok = function.ok.as_ref().map(|ty| spell(package, ty));
    let result = match (&ok, &function.error) {
        (None, None) => String::new(),
        (Some(ok), None) => format!(" -> {ok}"),
        (None, Some(None)) => " -> result".to_owned(),
        (Some(ok), Some(None)) => format!(" -> result<{ok}>"),
        (ok, Some(Some(error))) => {
            let ok = ok.as_deref().unwrap_or("_");
            format!(" -> result<{ok}, {}>", spell(package, error))
        }
    };
    let params = params.join(", ");
    match function.kind {
        FunctionKind::Constructor(_) => format!("constructor({params}){result}"),
        kind => {
            let is_static = if matches!(kind, FunctionKind::Static(_)) {
                "static "
            } else {
                ""
            };
            let is_async = if function.is_async { "async " } else { "" };
            format!("{is_static}{is_async}func({params}){result}")
        }
    }
}
