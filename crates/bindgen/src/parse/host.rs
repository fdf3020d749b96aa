//! What a world imports: types of other interfaces, and the functions of one, which the host has.

use super::functions;
use super::options::check_values;
use super::sources::Sources;
use super::types::Types;
use crate::SourceError;
use crate::model::Host;
use wit_parser::{InterfaceId, PackageId, Resolve, TypeDefKind, WorldItem, WorldKey};

/// The one interface with functions that the package's world imports, with its name.
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
                    return refuse(construct, "put it into an interface, and import that");
                }
                WorldItem::Type { .. } => {
                    let reason = "put it into an interface, and `use` it there";
                    return refuse(format!("import of `{name}`"), reason);
                }
            };
            let interface = &resolve.interfaces[id];
            let construct = || format!("import of `{name}`");
            let is_resource = |id| matches!(resolve.types[id].kind, TypeDefKind::Resource);
            if interface.types.values().any(|id| is_resource(*id)) {
                return refuse(construct(), "a host has functions and no resources");
            }
            if interface.functions.is_empty() {
                continue;
            }
            if interface.package != Some(package) {
                let reason = "it belongs to another package, of which only interfaces that have types alone may be used";
                return refuse(construct(), reason);
            }
            if found.is_some() {
                let reason = "a world imports one interface with functions; this is a second one";
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

/// Converts its types and functions.
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
        // Nobody keeps a stream for it.
        function.stream = None;
        if let Err(reason) = check_values(&types.defs, "a function of the host", &function) {
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
