//! Rust types: owned types, views and parameters.

use super::names::camel;
use crate::model::{
    Function, Package, ResourceId, Scalar, Type, TypeDefKind, TypeKind, contains_kind,
    is_stream_or_future, resolve_alias,
};

/// The owned type.
pub fn owned(package: &Package, ty: &Type) -> String {
    let of = |ty: &Type| owned(package, ty);
    match &ty.kind {
        TypeKind::String => "String".to_owned(),
        TypeKind::List(item) => format!("Vec<{}>", of(item)),
        TypeKind::Array(item, count) => array(&of(item), *count),
        TypeKind::Option(item) => format!("Option<{}>", of(item)),
        TypeKind::Result { ok, error } => {
            let side = |ty: &Option<Box<Type>>| ty.as_ref().map_or("()".to_owned(), |ty| of(ty));
            format!("Result<{}, {}>", side(ok), side(error))
        }
        TypeKind::Tuple(items) => tuple(items.iter().map(of)),
        TypeKind::Named(id) => camel(&package.types[id.0].name),
        TypeKind::Own(_) | TypeKind::Stream(_) | TypeKind::Future(_) => {
            format!("port::Owned<{}>", named_by_handle(package, ty))
        }
        TypeKind::Borrow(_) => "wire::Handle".to_owned(),
        // `s8` is `i8` in Rust.
        kind => kind
            .scalar()
            .expect("only scalars are left")
            .wit()
            .replace('s', "i"),
    }
}

/// The type of the ok side of a function. A stream or a future is its reader, which can end with
/// the error of the function.
pub fn result(package: &Package, function: &Function, ty: &Type) -> String {
    match (is_stream_or_future(ty), error(package, function)) {
        (true, Some(error)) => reader(package, ty, &format!(", {error}")),
        (true, None) => reader(package, ty, ""),
        (false, _) => owned(package, ty),
    }
}

/// The error type of a function. `None`: it has no error.
pub fn error(package: &Package, function: &Function) -> Option<String> {
    let error = function.error.as_ref()?;
    Some(
        error
            .as_ref()
            .map_or("()".to_owned(), |ty| owned(package, ty)),
    )
}

/// The type of a handle inside a value.
fn named_by_handle(package: &Package, ty: &Type) -> String {
    match &ty.kind {
        TypeKind::Own(id) => client(package, *id),
        TypeKind::Stream(_) | TypeKind::Future(_) => reader(package, ty, ""),
        _ => unreachable!("the type has no handle"),
    }
}

/// The reader of a stream or a future. `error` follows the element type.
fn reader(package: &Package, ty: &Type, error: &str) -> String {
    let (reader, item) = match &ty.kind {
        TypeKind::Stream(item) => ("StreamReader", item),
        TypeKind::Future(item) => ("FutureReader", item),
        _ => unreachable!("the type has no reader"),
    };
    format!("port::{reader}<{}{error}>", element(package, item))
}

/// The type of a stream or a future that is a parameter. `None`: it is neither.
pub fn sent_up(package: &Package, ty: &Type) -> Option<String> {
    match &ty.kind {
        TypeKind::Stream(item) => Some(format!("port::Upstream<{}>", element(package, item))),
        TypeKind::Future(item) => Some(format!("port::UpstreamFuture<{}>", element(package, item))),
        _ => None,
    }
}

/// The element type of a stream. `()`: it has no element type.
pub fn element(package: &Package, item: &Option<Box<Type>>) -> String {
    item.as_ref()
        .map_or("()".to_owned(), |item| owned(package, item))
}

/// The typed client of a resource.
pub fn client(package: &Package, id: ResourceId) -> String {
    format!("{}Client", camel(&package.resources[id.0].name))
}

/// The view type, with the lifetime `'a`.
pub fn view(package: &Package, ty: &Type) -> String {
    let of = |ty: &Type| view(package, ty);
    match &ty.kind {
        TypeKind::String => "&'a str".to_owned(),
        TypeKind::Own(_) | TypeKind::Stream(_) | TypeKind::Future(_) => {
            format!("port::OwnedView<'a, {}>", named_by_handle(package, ty))
        }
        TypeKind::List(item) => format!("wire::ListView<'a, {}>", owned(package, item)),
        TypeKind::Array(item, count) => array(&of(item), *count),
        TypeKind::Option(item) => format!("Option<{}>", of(item)),
        TypeKind::Result { ok, error } => {
            let side = |ty: &Option<Box<Type>>| ty.as_ref().map_or("()".to_owned(), |ty| of(ty));
            format!("Result<{}, {}>", side(ok), side(error))
        }
        TypeKind::Tuple(items) => tuple(items.iter().map(of)),
        TypeKind::Named(id) => match &package.types[id.0].kind {
            TypeDefKind::Alias(ty) if !plain(package, ty) => of(ty),
            _ if super::has_view(package, id.0) => {
                format!("{}View<'a>", camel(&package.types[id.0].name))
            }
            _ => owned(package, ty),
        },
        _ => owned(package, ty),
    }
}

/// The parameter type of a client: a plain value, a slice if the list has the same layout in Rust,
/// or else any value that can be encoded as the type.
pub fn param(package: &Package, ty: &Type) -> String {
    match &resolve_alias(&package.types, ty).kind {
        TypeKind::String => "&str".to_owned(),
        TypeKind::List(item) if is_number(item) => format!("&[{}]", owned(package, item)),
        _ if plain(package, ty) => owned(package, ty),
        _ => list_param(package, ty)
            .unwrap_or_else(|| format!("&dyn wire::Encode<As = {}>", owned(package, ty))),
    }
}

/// The parameter type of a client for a list whose elements are no numbers.
pub fn list_param(package: &Package, ty: &Type) -> Option<String> {
    match &resolve_alias(&package.types, ty).kind {
        TypeKind::List(item) if !is_number(item) => {
            Some(format!("impl wire::AsList<{}>", owned(package, item)))
        }
        _ => None,
    }
}

fn array(item: &str, count: u32) -> String {
    format!("[{item}; {}]", super::number(count.into()))
}

/// A tuple of the given texts.
pub fn tuple(items: impl Iterator<Item = String>) -> String {
    let items: Vec<_> = items.collect();
    match items.as_slice() {
        [one] => format!("({one},)"),
        _ => format!("({})", items.join(", ")),
    }
}

/// Whether every bit pattern is a value, so that nothing has to be checked.
pub fn is_number(ty: &Type) -> bool {
    ty.kind.scalar().is_some_and(Scalar::is_number)
}

/// Whether the type has no tails and owns nothing, so that it is `Copy` and its own view.
pub fn plain(package: &Package, ty: &Type) -> bool {
    !contains_kind(&package.types, ty, |kind| {
        use TypeKind::{Future, List, Own, Stream, String};
        matches!(kind, String | List(_) | Own(_) | Stream(_) | Future(_))
    })
}

/// Whether a value can own a resource, a stream or a future.
pub fn owns(package: &Package, ty: &Type) -> bool {
    contains_kind(&package.types, ty, |kind| {
        matches!(
            kind,
            TypeKind::Own(_) | TypeKind::Stream(_) | TypeKind::Future(_)
        )
    })
}

/// Whether the type contains a float, so that it is not `Eq`.
pub fn has_float(package: &Package, ty: &Type) -> bool {
    contains_kind(&package.types, ty, |kind| {
        matches!(kind, TypeKind::F32 | TypeKind::F64)
    })
}
