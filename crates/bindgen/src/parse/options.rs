//! What the options of a function mean, once their place and their value were checked.

use crate::model::{Function, Type, TypeKind};
use toml_edit::Item;

/// Writes down what `name = item` says of `function`.
///
/// # Errors
/// Why it cannot be said of this function.
pub fn apply(function: &mut Function, name: &str, item: &Item) -> Result<(), String> {
    if name == "inline" {
        function.options.is_inline = item.as_bool() == Some(true);
        if function.options.is_inline {
            check_inline(function)?;
        }
    }
    Ok(())
}

/// Nothing of the instance may be in it: what runs on the caller's thread cannot reach the actor's objects.
fn check_inline(function: &Function) -> Result<(), String> {
    check_values("an inline function", function)
}

/// Of a function that can take and give values alone.
///
/// # Errors
/// What else it takes or gives.
pub fn check_values(what: &str, function: &Function) -> Result<(), String> {
    for field in &function.params {
        if is_handle(&field.ty) {
            return Err(format!(
                "{what} takes values alone, and `{}` is a resource of the service's",
                field.name
            ));
        }
    }
    if function.ok.as_ref().is_some_and(is_handle) {
        return Err(format!(
            "{what} gives values alone, no resource and no stream"
        ));
    }
    Ok(())
}

fn is_handle(ty: &Type) -> bool {
    matches!(
        ty.kind,
        TypeKind::Own(_) | TypeKind::Borrow(_) | TypeKind::Stream(_) | TypeKind::Future(_)
    )
}
