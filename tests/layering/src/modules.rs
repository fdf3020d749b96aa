//! The imports among the modules of one crate, and their cycles.
//!
//! The modules are the top-level ones: `call/streams.rs` belongs to `call`. A module imports another
//! if one of its files names it in a path that starts at the crate: in a `use`, in an expression or
//! in a type. Names that the crate's root re-exports count for the module that they come from.
//! Comments, strings and items for tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

/// The modules of a crate and their imports.
#[derive(Debug, Default)]
pub struct Modules(BTreeMap<String, BTreeSet<String>>);

impl Modules {
    /// Reads the sources of a crate in `folder`.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        read_files(folder, &mut Vec::new(), &mut files)?;
        Ok(Self::parse(&files))
    }

    /// Parses files: the path of each, relative to the crate's sources, and its text.
    #[must_use]
    pub fn parse(files: &[(String, String)]) -> Self {
        let files: Vec<SourceFile> = files.iter().map(SourceFile::parse).collect();
        let tests: BTreeSet<&Vec<String>> =
            files.iter().flat_map(|file| &file.test_modules).collect();
        let is_test = |file: &SourceFile| {
            (1..=file.module.len()).any(|end| tests.contains(&file.module[..end].to_vec()))
        };
        let names: BTreeSet<&String> = files
            .iter()
            .filter(|file| !is_test(file))
            .filter_map(|file| file.module.first())
            .collect();
        let exports: BTreeMap<&String, &String> = files
            .iter()
            .filter(|file| file.module.is_empty())
            .flat_map(|root| &root.paths)
            .filter_map(|path| Some((path.last()?, path.first()?)))
            .filter(|(_, from)| names.contains(from))
            .collect();
        let mut modules: BTreeMap<String, BTreeSet<String>> = names
            .iter()
            .map(|name| ((*name).clone(), BTreeSet::new()))
            .collect();
        for file in files.iter().filter(|file| !is_test(file)) {
            let Some(imports) = file.module.first().and_then(|name| modules.get_mut(name)) else {
                continue;
            };
            for path in &file.paths {
                let first = path.first().expect("a path has a first segment");
                let to = names.get(first).or_else(|| exports.get(first));
                imports.extend(
                    to.filter(|to| Some(**to) != file.module.first())
                        .map(|to| (*to).clone()),
                );
            }
        }
        Self(modules)
    }

    /// Number of modules.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The modules of the largest cycle; empty if there is none.
    #[must_use]
    pub fn largest_cycle(&self) -> Vec<&str> {
        let reached: BTreeMap<&str, BTreeSet<&str>> = self
            .0
            .keys()
            .map(|name| (name.as_str(), self.reached(name)))
            .collect();
        let cycle_of = |name: &str| -> Vec<&str> {
            let both = |other: &&&str| reached[**other].contains(name);
            reached[name].iter().filter(both).copied().collect()
        };
        reached
            .keys()
            .map(|name| cycle_of(name))
            .max_by_key(Vec::len)
            .unwrap_or_default()
    }

    /// The modules that `name` imports, directly or through others.
    fn reached<'a>(&'a self, name: &str) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&str> = self.0[name].iter().map(String::as_str).collect();
        while let Some(name) = next.pop() {
            if reached.insert(name) {
                next.extend(self.0[name].iter().map(String::as_str));
            }
        }
        reached
    }
}

fn read_files(
    folder: &Path,
    module: &mut Vec<String>,
    files: &mut Vec<(String, String)>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        module.push(name);
        if path.is_dir() {
            read_files(&path, module, files)?;
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push((module.join("/"), fs::read_to_string(&path)?));
        }
        module.pop();
    }
    Ok(())
}

/// A file of a crate.
struct SourceFile {
    /// Its module; empty for the crate's root.
    module: Vec<String>,
    /// The paths in it that start at the crate's root, without `crate`.
    paths: Vec<Vec<String>>,
    /// The modules that it declares for tests only.
    test_modules: Vec<Vec<String>>,
}

impl SourceFile {
    fn parse((path, text): &(String, String)) -> Self {
        let mut module: Vec<String> = path
            .trim_end_matches(".rs")
            .split('/')
            .map(str::to_owned)
            .collect();
        // The root of a program is no module of the library.
        let is_root = matches!(path.as_str(), "lib.rs" | "main.rs");
        if is_root || module.last().is_some_and(|last| last == "mod") {
            module.pop();
        }
        let mut parser = Parser {
            tokens: tokens(text),
            at: 0,
            file: Self {
                module,
                paths: Vec::new(),
                test_modules: Vec::new(),
            },
            is_root,
        };
        parser.items();
        parser.file
    }
}

/// Names, and all other characters except spaces, each as a token. Comments, strings and characters
/// are left out.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = if let Some(comment) = rest.strip_prefix("//") {
            2 + comment.find('\n').unwrap_or(comment.len())
        } else if let Some(comment) = rest.strip_prefix("/*") {
            2 + comment.find("*/").map_or(comment.len(), |end| end + 2)
        } else if let Some(raw) = raw_string(rest) {
            raw
        } else if first == '"' {
            quoted(rest, '"')
        } else if first == '\'' && is_character(rest) {
            quoted(rest, '\'')
        } else {
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            let name = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            let len = name.max(if name == 0 { first.len_utf8() } else { 0 });
            if !first.is_whitespace() {
                tokens.push(rest[..len].to_owned());
            }
            len
        };
        rest = &rest[len..];
    }
    tokens
}

/// The length of the raw string at the beginning of `text`.
fn raw_string(text: &str) -> Option<usize> {
    let after = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let inside = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - inside.len();
    Some(
        inside
            .find(&end)
            .map_or(text.len(), |at| start + at + end.len()),
    )
}

/// The length of a string or of a character with its quotes.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    text.len()
}

/// Whether the quote begins a character and not a lifetime.
fn is_character(text: &str) -> bool {
    let mut inside = text.chars().skip(1);
    inside.next() == Some('\\') || inside.next() == Some('\'')
}

struct Parser {
    tokens: Vec<String>,
    at: usize,
    file: SourceFile,
    is_root: bool,
}

impl Parser {
    fn peek(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", String::as_str)
    }

    fn starts_with(&self, expected: &[&str]) -> bool {
        (0..)
            .zip(expected)
            .all(|(ahead, token)| self.peek(ahead) == *token)
    }

    fn items(&mut self) {
        while self.at < self.tokens.len() {
            if self.starts_with(&["#", "[", "cfg", "("]) {
                self.conditional_item();
            } else if self.is_root && self.starts_with(&["use"]) {
                // `use module::..` of the root is a path from the crate.
                self.at += 1;
                self.tree(&mut Vec::new());
            } else if self.starts_with(&["crate", ":", ":"]) {
                self.at += 3;
                self.tree(&mut Vec::new());
            } else if self.starts_with(&["super", ":", ":"]) {
                let mut up = 0;
                while self.starts_with(&["super", ":", ":"]) {
                    self.at += 3;
                    up += 1;
                }
                // A path that leaves the module of a file more often is in an inline module.
                let left = self.file.module.len().saturating_sub(up);
                let mut prefix = self.file.module[..left].to_vec();
                self.tree(&mut prefix);
            } else {
                self.at += 1;
            }
        }
    }

    /// Skips an item that exists only for tests.
    fn conditional_item(&mut self) {
        let condition = self.skip_group(1);
        if !is_for_tests(&condition) {
            return;
        }
        while self.starts_with(&["#", "["]) {
            self.skip_group(1);
        }
        if self.starts_with(&["mod"]) && self.peek(2) == ";" {
            let mut module = self.file.module.clone();
            module.push(self.peek(1).to_owned());
            self.file.test_modules.push(module);
        }
        loop {
            match self.peek(0) {
                "" => return,
                ";" | "," => {
                    self.at += 1;
                    return;
                }
                "{" => {
                    self.skip_group(0);
                    return;
                }
                "(" | "[" => drop(self.skip_group(0)),
                // The end of the item around it.
                "}" => return,
                _ => self.at += 1,
            }
        }
    }

    /// Skips `skipped` tokens and the group in brackets after them. Returns the group.
    fn skip_group(&mut self, skipped: usize) -> Vec<String> {
        let start = self.at + skipped;
        self.at = start;
        let mut depth = 0;
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            match token.as_str() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        self.tokens[start..self.at].to_vec()
    }

    /// Reads the rest of a path, which may be a tree of a `use`.
    fn tree(&mut self, prefix: &mut Vec<String>) {
        if self.peek(0) == "{" {
            self.at += 1;
            while !matches!(self.peek(0), "}" | "") {
                self.tree(&mut prefix.clone());
                while !matches!(self.peek(0), "," | "}" | "") {
                    self.at += 1;
                }
                if self.peek(0) == "," {
                    self.at += 1;
                }
            }
            self.at += 1;
            return;
        }
        prefix.push(self.peek(0).to_owned());
        self.at += 1;
        if self.starts_with(&[":", ":"]) && self.peek(2) != "<" {
            self.at += 2;
            self.tree(prefix);
        } else {
            self.file.paths.push(prefix.clone());
        }
    }
}

/// Whether a condition holds only in tests, like `test` and `all(test, not(loom))`.
fn is_for_tests(condition: &[String]) -> bool {
    let has = |name: &str| condition.iter().any(|token| token == name);
    let excludes_tests = condition
        .windows(3)
        .any(|tokens| tokens == ["not", "(", "test"]);
    has("test") && !has("any") && !excludes_tests
}
