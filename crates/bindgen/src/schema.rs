//! What CDDL and JSON Schema have in common: which definitions a package has, and under which names.
//!
//! A named type has its own name. What a function takes and gives is named after it, `search.count.params`, `.result`, `.error` and
//! `.element` (of its stream or future); a resource's functions are `search.query.progress` and `search.query.@constructor`. What has
//! a resource in it has no definition, and no parameters with a stream have one: a handle means nothing outside of its process.

use crate::model::{self, Field, Function, FunctionKind, Package, Type, TypeDefKind, TypeKind};

/// One definition.
pub(crate) struct Definition<'a> {
    pub(crate) name: String,
    /// Lines without comment marks; may be empty.
    pub(crate) docs: &'a str,
    pub(crate) what: What<'a>,
}

/// What is defined.
pub(crate) enum What<'a> {
    Named(&'a TypeDefKind),
    /// A function's parameters, as a record.
    Params(&'a Vec<Field>),
    /// A result, an error's payload or an element; `None`: nothing.
    Value(Option<&'a Type>),
}

/// All of a package's definitions, its host's functions behind its own.
pub(crate) fn definitions(package: &Package) -> Vec<Definition<'_>> {
    let mut out = Vec::new();
    for definition in &package.types {
        if !definition_holds(package, &definition.kind) {
            out.push(Definition {
                name: definition.name.clone(),
                docs: &definition.docs,
                what: What::Named(&definition.kind),
            });
        }
    }
    let host = package.host.iter().flat_map(|host| &host.functions);
    for function in package.functions.iter().chain(host) {
        of_function(package, function, &mut out);
    }
    out
}

/// The documentation stands at the first definition of the function.
fn of_function<'a>(package: &'a Package, function: &'a Function, out: &mut Vec<Definition<'a>>) {
    let contains_handle = |ty: &Type| model::contains_handle(&package.types, ty);
    let name = name_of(package, function);
    let mut docs = function.docs.as_str();
    let mut add = |part: &str, what: What<'a>| {
        out.push(Definition {
            name: format!("{name}.{part}"),
            docs: std::mem::take(&mut docs),
            what,
        });
    };
    let sent_up = |ty: &Type| matches!(ty.kind, TypeKind::Stream(_) | TypeKind::Future(_));
    let params = &mut function.params.iter();
    if !params.any(|field| contains_handle(&field.ty) || sent_up(&field.ty)) {
        add("params", What::Params(&function.params));
    }
    let (part, value) = match function.ok.as_ref().map(|ty| (&ty.kind, ty)) {
        Some((TypeKind::Stream(item) | TypeKind::Future(item), _)) => ("element", item.as_deref()),
        Some((_, ty)) => ("result", Some(ty)),
        None => ("result", None),
    };
    if !value.is_some_and(contains_handle) {
        add(part, What::Value(value));
    }
    if let Some(payload) = &function.error
        && !payload.as_ref().is_some_and(contains_handle)
    {
        add("error", What::Value(payload.as_ref()));
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

/// What a type is, aliases seen through.
pub(crate) fn resolve<'a>(package: &'a Package, ty: &'a Type) -> &'a TypeKind {
    match &ty.kind {
        TypeKind::Named(id) => match &package.types[id.0].kind {
            TypeDefKind::Alias(ty) => resolve(package, ty),
            _ => &ty.kind,
        },
        kind => kind,
    }
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
