//! Generates typed code and schemas from WIT.
//!
//! `parse` builds a [`model::Package`], and one module per language emits it. [`LANGUAGES`] lists
//! the emitters, and [`build`] generates Rust code from a build script.

pub mod build;
pub mod c;
pub mod cddl;
mod compatible;
pub mod cpp;
mod from_code;
pub mod go;
mod growth;
mod guest;
pub mod hash;
pub mod json_schema;
pub mod lua;
pub mod model;
pub mod nim;
pub mod node;
mod parse;
pub mod plan;
pub mod python;
pub mod rust;
mod schema;

pub use compatible::{CompatibilityReport, Difference, check_compatibility};
pub use from_code::{FromCode, from_code, source_of, wit_name};
pub use growth::types_without_unknown;
pub use parse::{parse, parse_text};

use std::fmt;
use std::path::PathBuf;

/// A target language.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    /// The name for `--lang`, which is also the name of the output folder.
    pub name: &'static str,
    /// Emits the files of a package. The error names the first construct that has no equivalent in
    /// the language.
    pub emit: fn(&model::Package) -> Result<Vec<Output>, SourceError>,
}

/// All target languages.
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
        name: "cpp",
        emit: cpp::emit,
    },
    Language {
        name: "lua",
        emit: lua::emit,
    },
    Language {
        name: "nim",
        emit: nim::emit,
    },
    Language {
        name: "node",
        emit: node::emit,
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

/// The languages of guests: services that implement a package in another language than Rust. The output
/// folder is `guest-` and the name.
pub const GUESTS: &[Language] = &[
    Language {
        name: "c",
        emit: c::emit_guest,
    },
    Language {
        name: "cpp",
        emit: cpp::emit_guest,
    },
    Language {
        name: "go",
        emit: go::emit_guest,
    },
    Language {
        name: "nim",
        emit: nim::emit_guest,
    },
];

/// One generated file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The path, relative to the output folder of the language.
    pub path: PathBuf,
    /// The contents, which end in a newline.
    pub contents: String,
}

/// An error in a source file: a construct that is wrong, or that a generator does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError {
    /// The position of the construct.
    pub position: model::Position,
    /// The construct as in WIT: "type `future<u32>`".
    pub construct: String,
    /// The reason, and what to write instead.
    pub reason: String,
}

/// ``search.wit:12:5: type `future<u32>`: the reason, and what to write instead``
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

/// Displays text from a source file. Characters that would control the terminal are escaped, as in
/// `\u{1b}`.
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
