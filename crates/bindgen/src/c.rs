//! The emitter for C: one C99 header per package, over `thalweg_client.h`.
//!
//! [`shape`] has the types of [`crate::plan`] as C sees them. [`plan`] contains all names. One module
//! writes each part of the header: `library` (constants, opening, clients, resources, streams),
//! `types`, `access`, `write` and `check` (structs, accessors, writers and checks of each type),
//! `stream_writer`, `call` and `host`; `guest` writes the header of a guest.

mod access;
mod call;
mod check;
mod guest;
mod guest_input;
mod handles;
mod host;
mod library;
mod names;
mod naming;
pub mod plan;
pub mod shape;
mod shapes;
mod stream_writer;
#[cfg(test)]
mod tests;
mod types;
mod write;

use crate::model::Package;
use crate::plan::source::{Comment, Format, Source};
use crate::{Output, SourceError};

/// The format of a header.
static FORMAT: Format = Format {
    width: 100,
    indent: "  ",
    comment: Comment {
        first: "/* ",
        next: " * ",
        last: " */",
        block: None,
        // Compilers warn about the beginning of a comment in a comment, and about trigraphs.
        replaced: &[("*/", "* /"), ("/*", "/ *"), ("??/", "? ?/")],
    },
};

/// Writes the package's header.
///
/// # Errors
/// A type that C cannot express, with its position.
pub fn emit(package: &Package) -> Result<Vec<Output>, SourceError> {
    let plan = plan::Plan::new(package)?;
    let mut out = Source::new(&FORMAT);
    library::head(&plan, &mut out);
    types::emit(&plan, "arguments", &mut out);
    access::emit(&plan, "the batch or of the reply", &mut out);
    library::clients(&plan, &mut out);
    library::handles(&plan, &mut out);
    let mut conversions = Source::new(&FORMAT);
    handles::emit(&plan, &mut conversions);
    write::emit(&plan, &mut conversions);
    check::emit(&plan, &mut conversions);
    let conversions = conversions.finish();
    if conversions.len() > 1 {
        out.banner("Writing and checking messages");
        for line in conversions.lines() {
            out.line(line);
        }
        out.blank();
    }
    stream_writer::emit(&plan, &mut out);
    call::emit(&plan, &mut out);
    host::emit(&plan, &mut out);
    library::tail(&mut out);
    Ok(vec![Output {
        path: format!("{}.h", plan.prefix()).into(),
        contents: out.finish(),
    }])
}

/// Writes the package's header for a guest: the functions that it implements.
///
/// # Errors
/// A type that C cannot express, or a function that a guest in C cannot have, with its position.
pub fn emit_guest(package: &Package) -> Result<Vec<Output>, SourceError> {
    let package = package.for_guest();
    let plan = plan::Plan::for_guest(&package)?;
    let mut out = Source::new(&FORMAT);
    guest::emit(&plan, &mut out);
    Ok(vec![Output {
        path: format!("{}_guest.h", plan.prefix()).into(),
        contents: out.finish(),
    }])
}
