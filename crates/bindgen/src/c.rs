//! The emitter for C: one C99 header per package, over `thalweg_client.h`.
//!
//! `collect` finds the types that need a name in C, `plan` gives all names and uses, and one module writes each
//! part of the header: `library` (constants, opening, clients, resources, streams), `types`, `access`, `write`
//! and `check` (a type's four sides), `call`.

mod access;
mod call;
mod check;
mod collect;
mod held;
mod host;
mod json;
mod library;
mod names;
mod plan;
mod shape;
mod source;
#[cfg(test)]
mod tests;
mod types;
mod upstream;
mod write;

use crate::model::Package;
use crate::{Output, SourceError};

/// Writes the package's header. SourceError: what has no form in C, by name and place.
pub fn emit(package: &Package) -> Result<Vec<Output>, SourceError> {
    let plan = plan::Plan::new(package)?;
    let mut out = source::Source::new();
    library::head(&plan, &mut out);
    types::emit(&plan, &mut out);
    access::emit(&plan, &mut out);
    library::clients(&plan, &mut out);
    library::handles(&plan, &mut out);
    let mut machinery = source::Source::new();
    held::emit(&plan, &mut machinery);
    write::emit(&plan, &mut machinery);
    check::emit(&plan, &mut machinery);
    let machinery = machinery.finish();
    if machinery.len() > 1 {
        out.banner("Writing and checking messages: what the calls below are made of");
        for line in machinery.lines() {
            out.line(line);
        }
        out.blank();
    }
    upstream::emit(&plan, &mut out);
    call::emit(&plan, &mut out);
    host::emit(&plan, &mut out);
    library::tail(&mut out);
    Ok(vec![Output {
        path: format!("{}.h", plan.names.prefix()).into(),
        contents: out.finish(),
    }])
}

/// Tables for the runner of the conformance scenarios, `conformance/c/runner.c`: every type from JSON and against JSON.
/// They are part of that test and not of what `thalweg gen` writes.
pub fn conformance_tables(package: &Package) -> Result<Output, SourceError> {
    let plan = plan::Plan::new(package)?;
    let mut out = source::Source::new();
    json::emit(&plan, &mut out);
    Ok(Output {
        path: format!("{}_json.h", plan.names.prefix()).into(),
        contents: out.finish(),
    })
}
