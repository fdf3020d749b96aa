//! The imports of a world: types of other interfaces, and the functions of one interface, the host
//! imports.

use super::functions;
use super::options::check_values;
use super::sources::Sources;
use super::types::Types;
use crate::SourceError;
use crate::model::Host;
use wit_parser::{InterfaceId, PackageId, Resolve, TypeDefKind, WorldItem, WorldKey};

/// The name and id of the imported interface that has functions, if there is one.
pub fn imported_interface(
    sources: &Sources,
    resolve: &Resolve,
    package: PackageId,
) -> Result<Option<(String, InterfaceId)>, SourceError> {
    let worlds = resolve.packages[package].worlds.values();
    let mut found = None;
    for world in worlds.map(|id| &resolve.worlds[*id]) {
        for (key, item) in &world.imports {
            let name = resolve.name_world_key(key);
            let refuse = |construct: String, reason: &str| {
                let span = if item.span().is_known() {
                    item.span()
                } else {
                    world.span
                };
                Err(sources.refused(span, construct, reason))
            };
            let id = match item {
                WorldItem::Interface { id, .. } => *id,
                WorldItem::Function(function) => {
                    let construct = format!("import of `{}`", function.name);
                    return refuse(
                        construct,
                        "move it into an interface, and import the interface",
                    );
                }
                WorldItem::Type { .. } => {
                    let reason = "move it into an interface, and `use` it there";
                    return refuse(format!("import of `{name}`"), reason);
                }
            };
            let interface = &resolve.interfaces[id];
            let construct = || format!("import of `{name}`");
            let is_resource = |id| matches!(resolve.types[id].kind, TypeDefKind::Resource);
            if interface.types.values().any(|id| is_resource(*id)) {
                return refuse(
                    construct(),
                    "an imported interface has functions and types, but no resources",
                );
            }
            if interface.functions.is_empty() {
                continue;
            }
            if interface.package != Some(package) {
                let reason = "it belongs to another package: an interface of another package may be imported only for its types";
                return refuse(construct(), reason);
            }
            if found.is_some() {
                let reason = "a world imports one interface with functions, and this is another";
                return refuse(construct(), reason);
            }
            let name = match key {
                WorldKey::Name(name) => name.clone(),
                WorldKey::Interface(_) => interface.name.clone().unwrap_or(name),
            };
            found = Some((name, id));
        }
    }
    Ok(found)
}

/// Converts the types and functions of the imported interface.
pub fn convert(
    types: &mut Types<'_>,
    (name, id): (String, InterfaceId),
) -> Result<Host, SourceError> {
    let interface = &types.resolve.interfaces[id];
    for id in interface.types.values() {
        types.define(*id)?;
    }
    let mut converted = Vec::new();
    for declared in interface.functions.values() {
        let mut function = functions::convert(types, &name, declared)?;
        // Streams are refused just below, so their options have no use.
        function.stream = None;
        if let Err(reason) = check_values(&types.defs, "a host import", &function) {
            let construct = format!("function `{}`", declared.name);
            return Err(types.sources.refused(declared.span, construct, &reason));
        }
        converted.push(function);
    }
    Ok(Host {
        interface: name,
        layout: crate::hash::layout_hash(&converted),
        docs: interface.docs.contents.clone().unwrap_or_default(),
        functions: converted,
    })
}
