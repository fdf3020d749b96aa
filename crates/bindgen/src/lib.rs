//! From WIT to typed code and schemas: `parse` fills [`model::Package`], one module per language writes it out.

pub mod build;
pub mod c;
pub mod cddl;
mod compatible;
mod from_code;
mod growth;
pub mod hash;
pub mod json_schema;
pub mod model;
mod parse;
pub mod python;
pub mod rust;
mod schema;

pub use compatible::{CompatibilityReport, Difference, compatible};
pub use from_code::{FromCode, from_code, source_of};
pub use growth::types_without_unknown;
pub use parse::{parse, parse_text};

use std::fmt;
use std::path::PathBuf;

/// A language that code is written in.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    /// What `--lang` calls it, and its output's folder.
    pub name: &'static str,
    /// Writes a package's files, or says what has no form in the language, by name and place.
    pub emit: fn(&model::Package) -> Result<Vec<Output>, SourceError>,
}

/// All of them.
pub const LANGUAGES: &[Language] = &[
    Language {
        name: "rust",
        emit: rust::emit,
    },
    Language {
        name: "c",
        emit: c::emit,
    },
    Language {
        name: "python",
        emit: python::emit,
    },
    Language {
        name: "cddl",
        emit: cddl::emit,
    },
    Language {
        name: "json-schema",
        emit: json_schema::emit,
    },
];

/// One generated file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Below the language's output folder.
    pub path: PathBuf,
    /// The whole text, ending in a newline.
    pub contents: String,
}

/// A construct that a generator cannot write, or that is wrong: file, line, construct, reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError {
    /// Where it stands.
    pub position: model::Position,
    /// What it is, as WIT writes it: "type `future<u32>`".
    pub construct: String,
    /// Why, and what to do instead.
    pub reason: String,
}

/// ``search.wit:12:5: type `future<u32>`: why, and what to do instead``
impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let model::Position { file, line, column } = &self.position;
        write!(
            f,
            "{}:{line}:{column}: {}: {}",
            file.display(),
            Printable(&self.construct),
            Printable(&self.reason)
        )
    }
}

/// Text of a source file as an error shows it: a character that would act on the terminal is written as `\u{1b}`.
struct Printable<'a>(&'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reorders = |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        self.0.chars().try_for_each(|c| {
            if c.is_control() || reorders(c) {
                write!(f, "{}", c.escape_unicode())
            } else {
                fmt::Write::write_char(f, c)
            }
        })
    }
}

impl std::error::Error for SourceError {}
