//! Functions that guests cannot have, in any language.

use crate::SourceError;
use crate::model::{
    Function, Package, Type, TypeKind, contains_handle, contains_stream, is_stream_or_future,
};

/// Refuses the functions that a guest cannot have.
///
/// # Errors
/// The first one, with its position.
pub(crate) fn refuse<'a>(
    package: &Package,
    functions: impl IntoIterator<Item = &'a Function>,
) -> Result<(), SourceError> {
    for function in functions {
        let reason = if function.options.is_inline {
            "a guest has no inline methods: use the option `brief`"
        } else if package
            .resources
            .iter()
            .any(|resource| resource.destructor.is_some())
        {
            "a guest has no async destructors: its function for the drop of a resource returns at once"
        } else if returns_stream_inside(package, function) {
            "a guest has no streams or futures inside of other values"
        } else {
            continue;
        };
        return Err(error(function, reason));
    }
    Ok(())
}

/// Whether a stream or future is inside of the function's result or error, but not the whole result.
fn returns_stream_inside(package: &Package, function: &Function) -> bool {
    let ok = (function.ok.iter()).filter(|ty| !is_stream_or_future(ty));
    let mut values = ok.chain(function.error.iter().flatten());
    values.any(|ty| contains_stream(&package.types, ty))
}

/// Refuses what guests in C, C++ and Go have: resources inside of other values, streams that are
/// parameters, and host imports.
///
/// # Errors
/// The first function with one, with its position.
pub(crate) fn refuse_unlike_c(package: &Package, language: &str) -> Result<(), SourceError> {
    let is_inside = |ty: &Type| match &ty.kind {
        TypeKind::Own(_) | TypeKind::Borrow(_) => false,
        TypeKind::Stream(element) | TypeKind::Future(element) => element
            .as_ref()
            .is_some_and(|ty| contains_handle(&package.types, ty)),
        _ => contains_handle(&package.types, ty),
    };
    refuse_inputs(package, language)?;
    for function in &package.functions {
        let errors = function.error.iter().flatten();
        let params = function.params.iter().map(|field| &field.ty);
        if params.chain(&function.ok).chain(errors).any(is_inside) {
            return Err(error(
                function,
                &format!(
                    "a guest in {language} cannot have resources and streams inside of other values yet"
                ),
            ));
        }
    }
    Ok(())
}

/// Refuses streams that are parameters, and host imports.
///
/// # Errors
/// The first function with one, with its position.
pub(crate) fn refuse_inputs(package: &Package, language: &str) -> Result<(), SourceError> {
    if let Some(import) = package.host.iter().flat_map(|host| &host.functions).next() {
        let reason = format!("a guest in {language} cannot call host imports yet");
        return Err(error(import, &reason));
    }
    for function in &package.functions {
        if (function.params.iter()).any(|field| is_stream_or_future(&field.ty)) {
            let reason = format!("a guest in {language} cannot take streams and futures yet");
            return Err(error(function, &reason));
        }
    }
    Ok(())
}

/// Refuses streams and futures inside of other values.
///
/// # Errors
/// The first function with one, with its position.
pub(crate) fn refuse_streams_in_values(package: &Package) -> Result<(), SourceError> {
    let is_inside = |ty: &Type| {
        !is_stream_or_future(ty)
            && contains_kind(&package.types, ty, |kind| {
                matches!(kind, TypeKind::Stream(_) | TypeKind::Future(_))
            })
    };
    for function in &package.functions {
        let errors = function.error.iter().flatten();
        let params = function.params.iter().map(|field| &field.ty);
        if params.chain(&function.ok).chain(errors).any(is_inside) {
            let reason = "a guest has no streams and futures inside of other values";
            return Err(error(function, reason));
        }
    }
    Ok(())
}

fn error(function: &Function, reason: &str) -> SourceError {
    SourceError {
        position: function.position.clone(),
        construct: format!("function `{}`", function.full_name),
        reason: reason.to_owned(),
    }
}
