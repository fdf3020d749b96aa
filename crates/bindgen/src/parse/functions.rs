//! Functions, constructors and methods.

use super::types::{MAX_TUPLE, Types};
use crate::SourceError;
use crate::hash::Describer;
use crate::model::{
    Field, Function, FunctionKind, FunctionOptions, Resource, ResourceId, StreamOptions, Type,
    TypeDef, TypeKind, contains_kind, is_stream_or_future,
};

/// Converts one function.
pub fn convert(
    types: &mut Types<'_>,
    interface: &str,
    function: &wit_parser::Function,
) -> Result<Function, SourceError> {
    let sources = types.sources;
    let refuse = |reason: &str| {
        Err(sources.refused(
            function.span,
            format!("function `{}`", function.name),
            reason,
        ))
    };
    let kind = kind(types, function);
    let Some(kind) = kind else {
        return refuse("getters and setters are not supported: write a method");
    };

    let params = function
        .params
        .iter()
        .map(|p| (p.name.clone(), String::new(), p.ty, p.span))
        .collect();
    let params = types.fields(params, Types::outermost)?;
    if let Some((_, param)) = (params.iter().zip(&function.params))
        .find(|(field, _)| is_stream_or_future(&field.ty) && params.len() > MAX_TUPLE)
    {
        let reason = format!(
            "a function with more than {MAX_TUPLE} parameters cannot have a stream or a future among them"
        );
        return Err(sources.refused(param.span, types.construct(&param.ty), &reason));
    }
    let inside = |field: &Field| {
        !is_stream_or_future(&field.ty)
            && contains_kind(&types.defs, &field.ty, |kind| {
                matches!(kind, TypeKind::Stream(_) | TypeKind::Future(_))
            })
    };
    if let Some((_, param)) = (params.iter().zip(&function.params)).find(|(field, _)| inside(field))
    {
        let reason =
            "a stream or a future is a parameter of its own, and cannot be inside another one";
        return Err(sources.refused(param.span, types.construct(&param.ty), reason));
    }
    let params_layout = types.record_layout(function.params.iter().map(|param| &param.ty));

    let (ok, error) = result(types, function)?;
    if let Some(TypeKind::Borrow(_)) = ok.as_ref().map(|ty| &ty.kind) {
        return refuse(
            "it returns a borrowed resource, which the caller could not give back: return the resource",
        );
    }
    let hashes = Describer {
        types: &types.defs,
        resources: &types.resources,
    }
    .hash_function(&params, ok.as_ref(), error.as_ref());
    let has_stream =
        |ty| contains_kind(&types.defs, ty, |kind| matches!(kind, TypeKind::Stream(_)));
    let mut results = ok.iter().chain(error.iter().flatten());
    let stream = results.any(has_stream).then_some(StreamOptions::DEFAULT);
    Ok(Function {
        name: match kind {
            FunctionKind::Constructor(ResourceId(id)) => types.resources[id].name.clone(),
            _ => function.item_name().to_owned(),
        },
        full_name: format!("{interface}.{}", function.name),
        docs: function.docs.contents.clone().unwrap_or_default(),
        kind,
        is_async: function.kind.is_async(),
        params,
        params_layout,
        ok,
        error,
        hashes,
        options: FunctionOptions::default(),
        stream,
        position: sources.position(function.span),
    })
}

/// The name of an async destructor.
pub const DESTROY: &str = "destroy";

/// The async destructor of a resource: a method that takes its resource by value. WIT has no syntax
/// for it.
pub fn destructor(
    interface: &str,
    types: &[TypeDef],
    resources: &[Resource],
    id: ResourceId,
) -> Function {
    let resource = &resources[id.0];
    // The layout of a handle.
    let (size, align) = (4, 4);
    let params = vec![Field {
        name: "self".to_owned(),
        docs: String::new(),
        ty: Type {
            kind: TypeKind::Own(id),
            size,
            align,
        },
        offset: 0,
    }];
    let docs = format!(
        "Destroys the `{}`, and waits until its destructor has finished. Closing the handle also destroys it, without waiting.",
        resource.name
    );
    Function {
        name: DESTROY.to_owned(),
        full_name: format!("{interface}.[destructor]{}", resource.name),
        docs,
        kind: FunctionKind::Method(id),
        is_async: true,
        params_layout: (size, align),
        hashes: Describer { types, resources }.hash_function(&params, None, None),
        params,
        ok: None,
        error: None,
        options: FunctionOptions::default(),
        stream: None,
        position: resource.position.clone(),
    }
}

/// The kind of a function. `None`: a getter or setter.
fn kind(types: &Types<'_>, function: &wit_parser::Function) -> Option<FunctionKind> {
    use wit_parser::FunctionKind as Kind;
    let resource = |id| types.resource_of(id);
    Some(match function.kind {
        Kind::Freestanding | Kind::AsyncFreestanding => FunctionKind::Free,
        Kind::Constructor(id) => FunctionKind::Constructor(resource(id)),
        Kind::Method(id) | Kind::AsyncMethod(id) => FunctionKind::Method(resource(id)),
        Kind::Static(id) | Kind::AsyncStatic(id) => FunctionKind::Static(resource(id)),
        _ => return None,
    })
}

/// [`Function::ok`] and [`Function::error`].
type ResultTypes = (Option<Type>, Option<Option<Type>>);

fn result(
    types: &mut Types<'_>,
    function: &wit_parser::Function,
) -> Result<ResultTypes, SourceError> {
    let Some(ty) = function.result else {
        return Ok((None, None));
    };
    // An alias of a `result` is resolved.
    let mut inner = ty;
    while let wit_parser::Type::Id(id) = inner {
        match &types.resolve.types[id].kind {
            wit_parser::TypeDefKind::Type(target) => inner = *target,
            wit_parser::TypeDefKind::Result(result) => {
                let span = types.resolve.types[id].span;
                let (ok, error) = (result.ok, result.err);
                let ok = ok.map(|ty| types.outermost(&ty, span)).transpose()?;
                let error = error.map(|ty| types.value(&ty, span)).transpose()?;
                return Ok((ok, Some(error)));
            }
            _ => break,
        }
    }
    Ok((Some(types.outermost(&ty, function.span)?), None))
}
