//! Types that cannot get another case without breaking older programs: see docs/evolution.md.

use crate::model::{Package, TypeDef, TypeDefKind, TypeId};

/// The enums and variants without a case `unknown`, except those that the policy file lists as
/// `closed`. An older program cannot read a case that a later version adds to such a type.
pub fn types_without_unknown(package: &Package) -> Vec<&TypeDef> {
    let types = package.types.iter().enumerate();
    types
        .filter(|(id, def)| lacks_unknown(def) && !package.closed.contains(&TypeId(*id)))
        .map(|(_, def)| def)
        .collect()
}

fn lacks_unknown(def: &TypeDef) -> bool {
    match &def.kind {
        TypeDefKind::Enum(labels) => labels.iter().all(|label| label.name != "unknown"),
        TypeDefKind::Variant { cases, .. } => cases
            .iter()
            .all(|case| case.name != "unknown" || case.payload.is_some()),
        _ => false,
    }
}
