//! Types that cannot get another case without harm: see docs/evolution.md.

use crate::model::{Package, TypeDef, TypeDefKind, TypeId};

/// The enums and variants that have no case `unknown` for a case that a later version adds, and that the policy file does not
/// name as `closed`.
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
