//! The source files of a package, and positions in them.

use crate::SourceError;
use crate::model::Position;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use wit_parser::{PackageId, ParseErrorKind, Resolve, SourceMap, Span, UnresolvedPackageGroup};

/// All files of a package. Errors use the paths as they were given.
pub struct Sources {
    /// The `.wit` files of the package itself, sorted.
    main: Vec<PathBuf>,
    /// The packages in `deps`, each with its files.
    deps: Vec<Vec<PathBuf>>,
    /// The folder of the `.thalweg.toml`.
    folder: PathBuf,
    /// The package is a single file; the folder may contain other packages.
    single: bool,
    texts: HashMap<PathBuf, String>,
    /// The text of the policy file, if it is not read from disk.
    policy: Option<String>,
    /// Maps spans to files; complete after `resolve`.
    spans: SourceMap,
}

impl Sources {
    /// Reads a file, or all files of a directory.
    pub fn read(path: &Path) -> Result<Self, SourceError> {
        let mut sources = Sources {
            main: Vec::new(),
            deps: Vec::new(),
            folder: path.parent().unwrap_or(Path::new("")).to_owned(),
            single: !path.is_dir(),
            texts: HashMap::new(),
            policy: None,
            spans: SourceMap::new(),
        };
        if !sources.single {
            sources.folder = path.to_owned();
            sources.main = wit_files(path)?;
            if sources.main.is_empty() {
                return Err(unreadable(path, "directory", "it contains no .wit file"));
            }
            let deps = path.join("deps");
            if deps.is_dir() {
                for entry in entries(&deps)? {
                    let files = if entry.is_dir() {
                        wit_files(&entry)?
                    } else {
                        wit_only(entry)
                    };
                    if !files.is_empty() {
                        sources.deps.push(files);
                    }
                }
            }
        } else {
            sources.main = vec![path.to_owned()];
        }
        for file in sources.main.iter().chain(sources.deps.iter().flatten()) {
            let text = fs::read_to_string(file).map_err(|error| {
                unreadable(file, "file", &format!("it cannot be read: {error}"))
            })?;
            sources.texts.insert(file.clone(), text);
        }
        Ok(sources)
    }

    /// A WIT file and its policy file from text. The files need not exist on disk.
    pub fn of_text(path: &Path, wit: &str, policy: &str) -> Self {
        Sources {
            main: vec![path.to_owned()],
            deps: Vec::new(),
            folder: path.parent().unwrap_or(Path::new("")).to_owned(),
            single: true,
            texts: HashMap::from([(path.to_owned(), wit.to_owned())]),
            policy: Some(policy.to_owned()),
            spans: SourceMap::new(),
        }
    }

    /// Parses and resolves all files.
    pub fn resolve(&mut self) -> Result<(Resolve, PackageId), SourceError> {
        let main = self.group(&self.main)?;
        let deps = self
            .deps
            .iter()
            .map(|files| self.group(files))
            .collect::<Result<Vec<_>, _>>()?;
        let mut resolve = Resolve {
            all_features: true,
            ..Resolve::default()
        };
        let result = resolve.push_groups(main, deps);
        self.spans = resolve.source_map.clone();
        match result {
            Ok(id) => Ok((resolve, id)),
            Err(error) => {
                let kind = error.kind();
                Err(self.refused(
                    kind.span(),
                    "package".to_owned(),
                    &one_line(&kind.to_string()),
                ))
            }
        }
    }

    fn group(&self, files: &[PathBuf]) -> Result<UnresolvedPackageGroup, SourceError> {
        let mut map = SourceMap::new();
        for file in files {
            map.push(file, self.texts[file].as_str());
        }
        map.parse().map_err(|(map, error)| {
            let kind = error.kind();
            let mut reason = one_line(&kind.to_string());
            let construct = match map.resolve_span(kind.span()) {
                Some(at) if !at.range.is_empty() => {
                    let text = self.texts[Path::new(at.path)].as_str();
                    // A span may begin or end inside a character.
                    let start = text.floor_char_boundary(at.range.start);
                    let end = text.ceil_char_boundary(at.range.end);
                    if let Some(keyword) = keyword_for_a_name(&reason, &text[end..]) {
                        reason += &format!("; to use the keyword as a name, write `%{keyword}`");
                    }
                    let text = match kind {
                        // A lexer error has only the byte at which a character or a word begins.
                        ParseErrorKind::Lex(_) => word(&text[start..]),
                        _ => &text[start..end],
                    };
                    // `wit-parser` displays the character in Rust's debug format.
                    if reason.contains("odepoint EscapeUnicode") {
                        reason = "WIT does not allow this character".to_owned();
                    }
                    let line = text.lines().next().unwrap_or_default();
                    format!("`{}`", line.trim_matches([' ', '\t']))
                }
                _ => "end of file".to_owned(),
            };
            self.refused_in(&map, kind.span(), construct, &reason)
        })
    }

    /// An error about the construct at `span`.
    pub fn refused(&self, span: Span, construct: String, reason: &str) -> SourceError {
        self.refused_in(&self.spans, span, construct, reason)
    }

    /// An error about the package as a whole, at its declaration.
    pub fn package_refused(&self, construct: String, reason: &str) -> SourceError {
        let declared = |file: &&PathBuf| {
            let text = &self.texts[file.as_path()];
            text.lines()
                .position(|line| line.starts_with("package "))
                .map(|line| ((*file).clone(), line as u32 + 1))
        };
        let (file, line) = self
            .main
            .iter()
            .find_map(|file| declared(&file))
            .unwrap_or_else(|| (self.main[0].clone(), 1));
        SourceError {
            position: Position {
                file,
                line,
                column: 1,
            },
            construct,
            reason: reason.to_owned(),
        }
    }

    fn refused_in(
        &self,
        map: &SourceMap,
        span: Span,
        construct: String,
        reason: &str,
    ) -> SourceError {
        SourceError {
            position: self.position_in(map, span),
            construct,
            reason: reason.to_owned(),
        }
    }

    /// The position at which `span` begins.
    pub fn position(&self, span: Span) -> Position {
        self.position_in(&self.spans, span)
    }

    fn position_in(&self, map: &SourceMap, span: Span) -> Position {
        match map.resolve_span(span) {
            Some(at) => {
                let file = PathBuf::from(at.path);
                let text = self.texts.get(&file).map_or("", String::as_str);
                position_of(file, text, at.range.start)
            }
            None => Position {
                file: self.main[0].clone(),
                line: 1,
                column: 1,
            },
        }
    }

    /// The path and text of the policy file of the package `name`, if there is one.
    pub fn policy(&self, name: &str) -> Result<Option<(PathBuf, String)>, SourceError> {
        let own = format!("{name}.thalweg.toml");
        if let Some(text) = &self.policy {
            return Ok(Some((self.folder.join(own), text.clone())));
        }
        for entry in entries(&self.folder)? {
            let file_name = entry
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default()
                .to_owned();
            let Some(stem) = file_name.strip_suffix(".thalweg.toml") else {
                continue;
            };
            let of_another = self.single && self.folder.join(format!("{stem}.wit")).is_file();
            if file_name != own && !of_another {
                let reason = format!(
                    "no package here has this policy file; the policy file of this package is {own}"
                );
                return Err(unreadable(&entry, "file", &reason));
            }
        }
        let path = self.folder.join(own);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some((path, text))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(
                &path,
                "file",
                &format!("it cannot be read: {error}"),
            )),
        }
    }
}

/// The position of the byte at `offset` in a file's text.
pub fn position_of(file: PathBuf, text: &str, offset: usize) -> Position {
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Position {
        file,
        line: before.matches('\n').count() as u32 + 1,
        column: before[line_start..].chars().count() as u32 + 1,
    }
}

/// An error about a file as a whole.
fn unreadable(path: &Path, construct: &str, reason: &str) -> SourceError {
    SourceError {
        position: Position {
            file: path.to_owned(),
            line: 1,
            column: 1,
        },
        construct: construct.to_owned(),
        reason: reason.to_owned(),
    }
}

/// The entries of a directory, sorted. `""` is the current directory.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let read = if folder.as_os_str().is_empty() {
        fs::read_dir(".")
    } else {
        fs::read_dir(folder)
    };
    let list = |read: fs::ReadDir| {
        read.map(|entry| entry.map(|entry| folder.join(entry.file_name())))
            .collect::<Result<Vec<_>, _>>()
    };
    let mut paths = read
        .and_then(list)
        .map_err(|error| unreadable(folder, "directory", &format!("it cannot be read: {error}")))?;
    paths.sort();
    Ok(paths)
}

fn wit_files(folder: &Path) -> Result<Vec<PathBuf>, SourceError> {
    Ok(entries(folder)?.into_iter().flat_map(wit_only).collect())
}

fn wit_only(path: PathBuf) -> Vec<PathBuf> {
    let is_wit = path.extension().is_some_and(|extension| extension == "wit") && path.is_file();
    if is_wit { vec![path] } else { Vec::new() }
}

/// The word at the start of `text`, or the first character if it does not begin with a word.
fn word(text: &str) -> &str {
    let in_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '%');
    let end = text.find(|c| !in_word(c)).unwrap_or(text.len());
    let first = text.chars().next().map_or(0, char::len_utf8);
    &text[..end.max(first)]
}

/// The keyword that `wit-parser` found in place of a name. `reason` is its message, and `rest` is
/// the text after the keyword.
fn keyword_for_a_name<'r>(reason: &'r str, rest: &str) -> Option<&'r str> {
    let (expected, found) = reason
        .strip_prefix("expected ")?
        .split_once(", found keyword `")?;
    // The name of a function in an interface is followed by a colon.
    let is_function = expected.ends_with("`func`") && rest.trim_start().starts_with(':');
    let is_name = expected.contains("identifier") || expected == "a type" || is_function;
    found.strip_suffix('`').filter(|_| is_name)
}

/// Joins the lines of a message. `wit-parser` and `toml_edit` break some messages into lines.
pub fn one_line(message: &str) -> String {
    message
        .lines()
        .map(str::trim)
        .collect::<Vec<_>>()
        .join("; ")
}
