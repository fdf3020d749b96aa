//! Type annotations.

use super::client::Face;
use super::plan::Plan;
use crate::model::{Scalar, Type, TypeDefKind, TypeKind};

/// The place of a type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A parameter, which accepts any sequence or buffer.
    Parameter,
    /// A field, a result or a payload, which the codec creates.
    Value,
}

/// The annotation of a value of `ty`.
pub(super) fn of(plan: &Plan<'_>, ty: &Type, place: Place) -> String {
    match &ty.kind {
        TypeKind::String => "str".into(),
        TypeKind::List(element) | TypeKind::Array(element, _) if is_byte(plan, element) => {
            match place {
                Place::Parameter => "bytes | bytearray | memoryview".into(),
                Place::Value => "bytes".into(),
            }
        }
        TypeKind::List(element) | TypeKind::Array(element, _) => {
            let list = if place == Place::Parameter {
                "Sequence"
            } else {
                "list"
            };
            format!("{list}[{}]", of(plan, element, place))
        }
        TypeKind::Option(payload) if can_be_none(plan, payload) => {
            format!("thalweg.Some[{}] | None", of(plan, payload, place))
        }
        TypeKind::Option(payload) => format!("{} | None", of(plan, payload, place)),
        TypeKind::Result { ok, error } => {
            let side = |side: &Option<Box<Type>>| {
                side.as_ref()
                    .map_or("None".into(), |side| of(plan, side, place))
            };
            format!("thalweg.Ok[{}] | thalweg.Err[{}]", side(ok), side(error))
        }
        TypeKind::Tuple(items) if items.is_empty() => "tuple[()]".into(),
        TypeKind::Tuple(items) => {
            let items: Vec<String> = items.iter().map(|item| of(plan, item, place)).collect();
            format!("tuple[{}]", items.join(", "))
        }
        TypeKind::Named(id) => {
            let (def, planned) = plan.type_of(*id);
            // As a parameter, an alias of a list accepts any sequence, which its name would not
            // express.
            match &def.kind {
                TypeDefKind::Alias(target) if place == Place::Parameter => of(plan, target, place),
                _ => planned.class.clone(),
            }
        }
        TypeKind::Own(_) => "thalweg.OwnedResource".into(),
        TypeKind::Stream(element) => {
            let object = carried(plan, element.as_deref(), place);
            format!("thalweg.OwnedStream[{object}, {object}]")
        }
        TypeKind::Future(value) => {
            format!(
                "thalweg.OwnedFuture[{}]",
                carried(plan, value.as_deref(), place)
            )
        }
        // `plan` has reported this as an error.
        TypeKind::Borrow(_) => "object".into(),
        kind => match kind.scalar().expect("only scalars are left") {
            Scalar::Bool => "bool".into(),
            Scalar::Char => "str".into(),
            Scalar::F32 | Scalar::F64 => "float".into(),
            _ => "int".into(),
        },
    }
}

/// The annotation of a parameter.
pub(super) fn parameter(plan: &Plan<'_>, ty: &Type, face: Face) -> String {
    match &ty.kind {
        TypeKind::Own(id) | TypeKind::Borrow(id) => resource(plan, id.0, face).to_owned(),
        TypeKind::Stream(element) => {
            let element = carried(plan, element.as_deref(), Place::Parameter);
            match face {
                Face::Sync => format!("Iterable[{element}]"),
                Face::Async => format!("AsyncIterable[{element}] | Iterable[{element}]"),
            }
        }
        TypeKind::Future(value) => {
            let value = carried(plan, value.as_deref(), Place::Parameter);
            let given = format!("thalweg.NoValue | {value}");
            match face {
                Face::Sync => given,
                Face::Async => format!("Awaitable[{given}] | {given}"),
            }
        }
        _ => of(plan, ty, Place::Parameter),
    }
}

/// The element type of a stream or a future: `None` if it has no element.
fn carried(plan: &Plan<'_>, element: Option<&Type>, place: Place) -> String {
    element.map_or("None".into(), |element| of(plan, element, place))
}

/// The annotation of the result of a call.
pub(super) fn result(plan: &Plan<'_>, ok: Option<&Type>, face: Face) -> String {
    match ok.map(|ok| (&ok.kind, ok)) {
        None => "None".into(),
        Some((TypeKind::Own(id), _)) => resource(plan, id.0, face).to_owned(),
        Some((TypeKind::Stream(element), _)) => {
            let stream = if face == Face::Sync {
                "Stream"
            } else {
                "AsyncStream"
            };
            let object = carried(plan, element.as_deref(), Place::Value);
            let view = element.as_ref().and_then(|element| view(plan, element));
            let view = view.unwrap_or_else(|| object.clone());
            format!("thalweg.{stream}[{object}, {view}]")
        }
        Some((TypeKind::Future(value), _)) => {
            let future = if face == Face::Sync {
                "Future"
            } else {
                "AsyncFuture"
            };
            let value = carried(plan, value.as_deref(), Place::Value);
            format!("thalweg.{future}[{value}]")
        }
        Some((_, ok)) => of(plan, ok, Place::Value),
    }
}

/// The view class of `element`, if it has one.
pub(super) fn view(plan: &Plan<'_>, element: &Type) -> Option<String> {
    match plan.resolve(element).kind {
        TypeKind::Named(id) => plan.type_of(id).1.view.clone(),
        _ => None,
    }
}

fn resource<'p>(plan: &'p Plan<'_>, place: usize, face: Face) -> &'p str {
    let (sync, aio) = &plan.resources[place];
    if face == Face::Sync { sync } else { aio }
}

/// Whether the type is `u8` or an alias of it.
pub(super) fn is_byte(plan: &Plan<'_>, ty: &Type) -> bool {
    plan.resolve(ty).kind == TypeKind::U8
}

/// Which of the parameters have the default `None`: the options after the last parameter that is
/// not an option.
pub(super) fn defaults<'t>(
    plan: &Plan<'_>,
    types: impl DoubleEndedIterator<Item = &'t Type> + ExactSizeIterator,
) -> Vec<bool> {
    let count = types.len();
    let options = types.rev().take_while(|ty| can_be_none(plan, ty)).count();
    (0..count).map(|place| place >= count - options).collect()
}

/// Whether a value of the type can be `None`, so that an option of it needs a wrapper.
pub(super) fn can_be_none(plan: &Plan<'_>, ty: &Type) -> bool {
    matches!(plan.resolve(ty).kind, TypeKind::Option(_))
}
