//! Parses WIT and its `.thalweg.toml` into a [`Package`].
//!
//! `wit-parser` parses the grammar and computes the sizes. This module checks Thalweg's own
//! requirements and reports the position of each violation: a package has a version and one world,
//! which exports one interface and imports at most one, and it uses only constructs that the
//! generators support.

mod functions;
pub(crate) use functions::DESTROY;
mod host;
mod option_table;
mod options;
mod policy;
mod policy_docs;
mod sources;
mod types;

use crate::SourceError;
use crate::hash;
use crate::model::Package;
use policy::Policies;
use sources::Sources;
use std::path::Path;
use types::Types;
use wit_parser::{InterfaceId, PackageId, Resolve, WorldItem, WorldKey};

/// Parses a package: a `.wit` file, or a directory of `.wit` files with its `deps`, and the
/// `<package>.thalweg.toml` next to it.
///
/// # Errors
/// The first construct that is wrong or not supported, or a file that cannot be read.
pub fn parse(path: &Path) -> Result<Package, SourceError> {
    package_of(Sources::read(path)?)
}

/// Parses a package from text: one WIT file and its policy file. The files need not exist on disk.
///
/// # Errors
/// As for [`parse`].
pub fn parse_text(path: &Path, wit: &str, policy: &str) -> Result<Package, SourceError> {
    package_of(Sources::of_text(path, wit, policy))
}

fn package_of(mut sources: Sources) -> Result<Package, SourceError> {
    let (resolve, id) = sources.resolve()?;
    let package = &resolve.packages[id];
    let Some(version) = &package.name.version else {
        let construct = format!("package `{}`", package.name);
        return Err(sources.package_refused(
            construct,
            "it has no version: write `@0.1.0` after its name",
        ));
    };
    let (interface_name, interface_id) = exported_interface(&sources, &resolve, id)?;
    let imported = host::imported_interface(&sources, &resolve, id)?;
    let interface = &resolve.interfaces[interface_id];

    let mut types = Types::new(&sources, &resolve, interface_id)?;
    for id in interface.types.values() {
        types.define(*id)?;
    }
    let mut functions = Vec::new();
    for function in interface.functions.values() {
        functions.push(functions::convert(&mut types, &interface_name, function)?);
    }
    let host = match imported {
        Some(imported) => Some(host::convert(&mut types, imported)?),
        None => None,
    };
    let Types {
        defs,
        mut resources,
        ..
    } = types;
    let Policies {
        limits,
        closed,
        destructors,
    } = policy::apply(
        &sources,
        &package.name.name,
        &interface_name,
        &resources,
        &defs,
        &mut functions,
    )?;
    policy_docs::add(&defs, &mut functions);
    for id in destructors {
        let destructor = functions::destructor(&interface_name, &defs, &resources, id);
        resources[id.0].destructor = Some(functions.len());
        functions.push(destructor);
    }
    Ok(Package {
        namespace: package.name.namespace.clone(),
        name: package.name.name.clone(),
        version: version.to_string(),
        interface: interface_name,
        docs: package_docs(&resolve, id, interface),
        layout: hash::layout_hash(
            functions
                .iter()
                .chain(host.iter().flat_map(|host| &host.functions)),
        ),
        host,
        limits,
        closed,
        types: defs,
        resources,
        functions,
    })
}

/// The documentation of the package, its world and its interface, in this order.
fn package_docs(resolve: &Resolve, id: PackageId, interface: &wit_parser::Interface) -> String {
    let package = &resolve.packages[id];
    let worlds = package.worlds.values().map(|id| &resolve.worlds[*id].docs);
    let all = [&package.docs].into_iter().chain(worlds);
    let docs = all
        .chain([&interface.docs])
        .filter_map(|docs| docs.contents.as_deref());
    docs.collect::<Vec<_>>().join("\n\n")
}

/// The name and id of the interface that the world exports.
fn exported_interface(
    sources: &Sources,
    resolve: &Resolve,
    package: PackageId,
) -> Result<(String, InterfaceId), SourceError> {
    let mut worlds = resolve.packages[package]
        .worlds
        .values()
        .map(|id| &resolve.worlds[*id]);
    let Some(world) = worlds.next() else {
        let construct = format!("package `{}`", resolve.packages[package].name);
        return Err(sources.package_refused(
            construct,
            "it has no world: write `world library { export NAME; }`",
        ));
    };
    if let Some(other) = worlds.next() {
        let construct = format!("world `{}`", other.name);
        return Err(sources.refused(
            other.span,
            construct,
            "a package has one world, and this is another",
        ));
    }

    let mut exported = None;
    for (key, item) in &world.exports {
        let name = resolve.name_world_key(key);
        let WorldItem::Interface { id, span, .. } = item else {
            let reason = "a world exports one interface: move functions and types into it";
            return Err(sources.refused(item.span(), format!("export of `{name}`"), reason));
        };
        if exported.is_some() {
            let reason = "a world exports one interface, and this is another";
            return Err(sources.refused(*span, format!("export of `{name}`"), reason));
        }
        let interface = &resolve.interfaces[*id];
        if interface.package != Some(package) {
            let reason =
                "it belongs to another package: a service exports an interface of its own package";
            return Err(sources.refused(*span, format!("export of `{name}`"), reason));
        }
        if interface.functions.is_empty() {
            return Err(sources.refused(
                *span,
                format!("export of `{name}`"),
                "it has no function",
            ));
        }
        let name = match key {
            WorldKey::Name(name) => name.clone(),
            WorldKey::Interface(_) => interface.name.clone().unwrap_or(name),
        };
        exported = Some((name, *id));
    }
    exported.ok_or_else(|| {
        let construct = format!("world `{}`", world.name);
        sources.refused(
            world.span,
            construct,
            "it exports no interface: write `export NAME;`",
        )
    })
}
