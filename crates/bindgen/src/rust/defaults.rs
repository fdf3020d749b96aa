//! Defaults of generated types. A reader of an older message gets the default for a field that the
//! message does not have. With `..Default::default()`, a program can build a record to which a
//! later version adds a field.

use super::names::{camel, snake};
use crate::model::{Case, Label, Package, Type, TypeDefKind, TypeKind};

/// The default expression of most types.
const STANDARD: &str = "std::default::Default::default()";
/// The maximum lengths of arrays and tuples with a default in the standard library.
const MAX_ARRAY: u32 = 32;
const MAX_TUPLE: usize = 12;

/// How a named type implements `Default`.
pub enum Default {
    /// Every field has the standard default, or the default is a case without a payload.
    Derived,
    /// An implementation with this expression.
    Written(String),
    /// It has no default, because it contains a handle.
    Missing,
}

/// The default of the named type `id`.
pub fn of_definition(package: &Package, id: usize) -> Default {
    match &package.types[id].kind {
        TypeDefKind::Record(fields) => {
            let values = fields.iter().map(|field| of_type(package, &field.ty));
            let Some(values) = values.collect::<Option<Vec<_>>>() else {
                return Default::Missing;
            };
            if values.iter().all(|value| value == STANDARD) {
                return Default::Derived;
            }
            let each = fields.iter().zip(values);
            let each = each.map(|(field, value)| format!("{}: {value}", snake(&field.name)));
            let each = each.collect::<Vec<_>>().join(", ");
            Default::Written(format!("Self {{ {each} }}"))
        }
        TypeDefKind::Variant { cases, .. } => {
            let Case { name, payload, .. } = &cases[first_case(cases)];
            match payload.as_ref().map(|ty| of_type(package, ty)) {
                None => Default::Derived,
                Some(Some(value)) => Default::Written(format!("Self::{}({value})", camel(name))),
                Some(None) => Default::Missing,
            }
        }
        TypeDefKind::Enum(_) | TypeDefKind::Flags(_) => Default::Derived,
        TypeDefKind::Alias(ty) => match of_type(package, ty) {
            Some(value) if value == STANDARD => Default::Derived,
            Some(value) => Default::Written(value),
            None => Default::Missing,
        },
    }
}

/// The default expression of a type. `None`: it has no default.
fn of_type(package: &Package, ty: &Type) -> Option<String> {
    Some(match &ty.kind {
        TypeKind::Own(_) | TypeKind::Borrow(_) | TypeKind::Stream(_) | TypeKind::Future(_) => {
            return None;
        }
        TypeKind::Array(item, count) => match of_type(package, item)? {
            item if item == STANDARD && *count <= MAX_ARRAY => item,
            item => format!("std::array::from_fn(|_| {item})"),
        },
        TypeKind::Result { ok, .. } => match ok {
            None => "Ok(())".to_owned(),
            Some(ok) => format!("Ok({})", of_type(package, ok)?),
        },
        TypeKind::Tuple(items) => {
            let values = items.iter().map(|item| of_type(package, item));
            let values = values.collect::<Option<Vec<_>>>()?;
            match values.iter().all(|value| value == STANDARD) && items.len() <= MAX_TUPLE {
                true => STANDARD.to_owned(),
                false => super::types::tuple(values.into_iter()),
            }
        }
        TypeKind::Named(id) => match (of_definition(package, id.0), &package.types[id.0].kind) {
            (Default::Missing, _) => return None,
            // An alias has no implementations of its own.
            (Default::Written(value), TypeDefKind::Alias(_)) => value,
            _ => STANDARD.to_owned(),
        },
        _ => STANDARD.to_owned(),
    })
}

/// The default case of a variant.
pub fn first_case(cases: &[Case]) -> usize {
    let is_unknown = |case: &Case| case.name == "unknown" && case.payload.is_none();
    cases.iter().position(is_unknown).unwrap_or(0)
}

/// The default case of an enum.
pub fn first_label(labels: &[Label]) -> usize {
    let is_unknown = |label: &Label| label.name == "unknown";
    labels.iter().position(is_unknown).unwrap_or(0)
}
