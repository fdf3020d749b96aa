//! The emitter for Python: one package of pure, typed Python over the generic package `thalweg`.
//!
//! | file | content |
//! | --- | --- |
//! | `types.py` | records, variants, enums, flags, aliases, exceptions |
//! | `views.py` | a view class for each record that a stream carries |
//! | `client.py`, `aio.py` | the client and the resources, for sync code and for asyncio |
//! | `_layout.py`, `_methods.py` | the descriptions for the native codec, which are evaluated when the package is imported |
//!
//! The output is formatted like that of `ruff format` with its default width.

mod annotation;
mod client;
mod host;
mod layout;
mod methods;
mod names;
mod plan;
mod source;
#[cfg(test)]
mod tests;
mod types;
mod views;

use std::path::Path;

use crate::model::Package;
use crate::{Output, SourceError};
use client::Face;
use plan::Plan;
use source::{Doc, Source};

/// Emits the files of a package: the folder `thalweg_search` for `thalweg:search`.
///
/// # Errors
/// A construct that is not supported in Python: a borrowed resource inside a value.
pub fn emit(package: &Package) -> Result<Vec<Output>, SourceError> {
    let plan = Plan::new(package)?;
    let folder = Path::new(&plan.folder);
    let mut outputs = vec![output(folder, "__init__.py", init(&plan))];
    outputs.push(output(folder, "_layout.py", layout::emit(&plan)));
    outputs.push(output(folder, "_methods.py", methods::emit(&plan)));
    outputs.push(output(folder, "aio.py", client::emit(&plan, Face::Async)));
    outputs.push(output(folder, "client.py", client::emit(&plan, Face::Sync)));
    outputs.push(Output {
        path: folder.join("py.typed"),
        contents: String::from("\n"),
    });
    if plan.has_types() {
        outputs.push(output(folder, "types.py", types::emit(&plan)));
    }
    if plan.has_views() {
        outputs.push(output(folder, "views.py", views::emit(&plan)));
    }
    Ok(outputs)
}

fn output(folder: &Path, name: &str, source: Source) -> Output {
    Output {
        path: folder.join(name),
        contents: source.finish(),
    }
}

/// `__init__.py`: the documentation of the interface, and all public names.
fn init(plan: &Plan<'_>) -> Source {
    let mut out = source::file(plan);
    let docs = if plan.package.docs.is_empty() {
        plan.id()
    } else {
        plan.package.docs.clone()
    };
    out.docstring(0, &docs);
    out.blank();
    let modules = [
        ("aio", plan.class_names(Face::Async)),
        ("client", plan.class_names(Face::Sync)),
        ("types", plan.type_names()),
        ("views", plan.view_names()),
    ];
    for (module, names) in &modules {
        out.import(&format!(".{module}"), names);
    }
    out.blank();
    let mut all: Vec<&String> = modules.iter().flat_map(|(_, names)| names).collect();
    all.sort_unstable();
    let quoted = all.iter().map(|name| Doc::from(format!("\"{name}\"")));
    out.statement(0, "__all__ = ", &Doc::group("[", quoted, "]"), "");
    out
}
