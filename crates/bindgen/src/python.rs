//! The emitter for Python: one package of pure, typed Python over the generic package `thalweg`.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `types.py` | records, variants, enums, flags, aliases, exceptions |
//! | `views.py` | a view class for each record that a stream carries |
//! | `client.py`, `aio.py` | the client and the resources: for sync code, for asyncio |
//! | `_layout.py`, `_methods.py` | what the native codec is told once, when the package is imported |
//!
//! The text is as `ruff format` leaves it at its default width.

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

/// Writes the package's files: the folder `thalweg_search` of `thalweg:search`.
///
/// # Errors
/// A construct that has no place in Python or in the table: a future or a stream inside a value, a borrowed resource
/// there.
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

/// `__init__.py`: the interface's documentation, and everything that has a public name.
fn init(plan: &Plan<'_>) -> Source {
    let mut out = Source::new(plan);
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
    let quoted = all
        .iter()
        .map(|name| Doc::from(format!("\"{name}\"")))
        .collect();
    out.statement(
        0,
        &Doc::Group {
            open: "__all__ = [".into(),
            items: quoted,
            close: "]",
        },
    );
    out
}
