//! Functions that guests cannot have, in any language.

use crate::SourceError;
use crate::model::{Function, Package, contains_stream, is_stream_or_future};

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
        return Err(SourceError {
            position: function.position.clone(),
            construct: format!("function `{}`", function.full_name),
            reason: reason.to_owned(),
        });
    }
    Ok(())
}

/// Whether a stream or future is inside of the function's result or error, but not the whole result.
fn returns_stream_inside(package: &Package, function: &Function) -> bool {
    let ok = (function.ok.iter()).filter(|ty| !is_stream_or_future(ty));
    let mut values = ok.chain(function.error.iter().flatten());
    values.any(|ty| contains_stream(&package.types, ty))
}
