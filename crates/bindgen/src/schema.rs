//! The definitions of a package in CDDL and JSON Schema, and their names.
//!
//! A named type keeps its name. The values of a function are named after it: `search.count.params`,
//! `.result`, `.error` and `.element` (of its stream or future). Functions of a resource are
//! `search.query.progress` and `search.query.@constructor`. Values that contain resources, and
//! parameters that contain streams, have no definition, because a handle has no meaning outside its
//! process.

use crate::model::{self, Field, Function, FunctionKind, Package, Type, TypeDefKind, TypeKind};

/// One definition.
pub(crate) struct Definition<'a> {
    pub(crate) name: String,
    /// The documentation, without comment marks; may be empty.
    pub(crate) docs: &'a str,
    pub(crate) body: Body<'a>,
}

/// The defined value.
pub(crate) enum Body<'a> {
    Named(&'a TypeDefKind),
    /// The parameters of a function, as a record.
    Params(&'a Vec<Field>),
    /// A result, an error payload or an element. `None`: no value.
    Value(Option<&'a Type>),
}

/// All definitions of a package; those of the host imports come last.
pub(crate) fn definitions(package: &Package) -> Vec<Definition<'_>> {
    let mut out = Vec::new();
    for definition in &package.types {
        if !definition_holds(package, &definition.kind) {
            out.push(Definition {
                name: definition.name.clone(),
                docs: &definition.docs,
                body: Body::Named(&definition.kind),
            });
        }
    }
    let host = package.host.iter().flat_map(|host| &host.functions);
    for function in package.functions.iter().chain(host) {
        of_function(package, function, &mut out);
    }
    out
}

/// The first definition of the function gets its documentation.
fn of_function<'a>(package: &'a Package, function: &'a Function, out: &mut Vec<Definition<'a>>) {
    let contains_handle = |ty: &Type| model::contains_handle(&package.types, ty);
    let name = name_of(package, function);
    let mut docs = function.docs.as_str();
    let mut add = |part: &str, body: Body<'a>| {
        out.push(Definition {
            name: format!("{name}.{part}"),
            docs: std::mem::take(&mut docs),
            body,
        });
    };
    let sent_up = |ty: &Type| matches!(ty.kind, TypeKind::Stream(_) | TypeKind::Future(_));
    let params = &mut function.params.iter();
    if !params.any(|field| contains_handle(&field.ty) || sent_up(&field.ty)) {
        add("params", Body::Params(&function.params));
    }
    let (part, value) = match function.ok.as_ref().map(|ty| (&ty.kind, ty)) {
        Some((TypeKind::Stream(item) | TypeKind::Future(item), _)) => ("element", item.as_deref()),
        Some((_, ty)) => ("result", Some(ty)),
        None => ("result", None),
    };
    if !value.is_some_and(contains_handle) {
        add(part, Body::Value(value));
    }
    if let Some(payload) = &function.error
        && !payload.as_ref().is_some_and(contains_handle)
    {
        add("error", Body::Value(payload.as_ref()));
    }
}

fn name_of(package: &Package, function: &Function) -> String {
    let interface = function.full_name.split('.').next().unwrap_or_default();
    let name = &function.name;
    let resource = |id: model::ResourceId| &package.resources[id.0].name;
    match function.kind {
        FunctionKind::Free => format!("{interface}.{name}"),
        FunctionKind::Constructor(id) => format!("{interface}.{}.@constructor", resource(id)),
        FunctionKind::Method(id) | FunctionKind::Static(id) => {
            format!("{interface}.{}.{name}", resource(id))
        }
    }
}

fn definition_holds(package: &Package, kind: &TypeDefKind) -> bool {
    let contains_handle = |ty: &Type| model::contains_handle(&package.types, ty);
    match kind {
        TypeDefKind::Record(fields) => fields.iter().any(|field| contains_handle(&field.ty)),
        TypeDefKind::Variant { cases, .. } => cases
            .iter()
            .any(|case| case.payload.as_ref().is_some_and(contains_handle)),
        TypeDefKind::Enum(_) | TypeDefKind::Flags(_) => false,
        TypeDefKind::Alias(ty) => contains_handle(ty),
    }
}

/// The kind of a type, with aliases resolved.
pub(crate) fn resolve<'a>(package: &'a Package, ty: &'a Type) -> &'a TypeKind {
    &model::resolve_alias(&package.types, ty).kind
}

/// `thalweg:search@0.1.0`.
pub(crate) fn id(package: &Package) -> String {
    let Package {
        namespace,
        name,
        version,
        ..
    } = package;
    format!("{namespace}:{name}@{version}")
}
