//! The name of a new service: `greeter`, or `acme:greeter` with a namespace.

use std::fmt;
use std::str::FromStr;

/// The namespace of a name without one.
const DEFAULT_NAMESPACE: &str = "example";

/// The longest name of a crate that crates.io accepts.
const LONGEST: usize = 64;

/// WIT's keywords, which a package or an interface would have to escape. From wit-parser 0.263.
const WIT: &[&str] = &[
    "as",
    "async",
    "bool",
    "borrow",
    "char",
    "constructor",
    "enum",
    "error-context",
    "export",
    "f32",
    "f64",
    "flags",
    "float32",
    "float64",
    "from",
    "func",
    "future",
    "import",
    "include",
    "interface",
    "list",
    "map",
    "option",
    "own",
    "package",
    "record",
    "resource",
    "result",
    "s16",
    "s32",
    "s64",
    "s8",
    "static",
    "stream",
    "string",
    "tuple",
    "type",
    "u16",
    "u32",
    "u64",
    "u8",
    "use",
    "variant",
    "with",
    "world",
];

/// Keywords of Rust 2024: the name is also a crate and a module.
const RUST: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Crates that are part of every build, and names that cargo refuses.
const CARGO: &[&str] = &[
    "alloc",
    "build",
    "core",
    "deps",
    "examples",
    "incremental",
    "proc-macro",
    "std",
    "test",
];

/// Headers of C and of POSIX that the generated header would hide.
const C_HEADERS: &[&str] = &[
    "aio",
    "assert",
    "complex",
    "ctype",
    "dirent",
    "dlfcn",
    "errno",
    "fcntl",
    "fenv",
    "float",
    "fmtmsg",
    "fnmatch",
    "ftw",
    "glob",
    "grp",
    "iconv",
    "inttypes",
    "iso646",
    "langinfo",
    "libgen",
    "limits",
    "locale",
    "math",
    "monetary",
    "mqueue",
    "ndbm",
    "netdb",
    "poll",
    "pthread",
    "pwd",
    "regex",
    "sched",
    "search",
    "semaphore",
    "setjmp",
    "signal",
    "spawn",
    "stdalign",
    "stdarg",
    "stdatomic",
    "stdbool",
    "stddef",
    "stdint",
    "stdio",
    "stdlib",
    "stdnoreturn",
    "string",
    "strings",
    "stropts",
    "syslog",
    "tar",
    "termios",
    "tgmath",
    "threads",
    "time",
    "trace",
    "uchar",
    "ulimit",
    "unistd",
    "utime",
    "utmpx",
    "wchar",
    "wctype",
    "wordexp",
];

/// Names that the files of a new service use for something else, as a module or as a type.
const TEMPLATE: &[&str] = &[
    "api", "call", "default", "err", "error", "greeting", "library", "none", "ok", "package",
    "service", "some", "thalweg", "vec",
];

/// A valid name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The namespace of the WIT package.
    pub namespace: String,
    /// The WIT package, the interface, the cargo package and the folder.
    pub name: String,
}

/// Why a name is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    /// The name or the namespace is empty.
    Empty,
    /// It has more characters than the limit.
    TooLong(usize),
    /// It has a `/`, a `\` or is `.` or `..`: it is a name, not a path.
    Path,
    /// It has a character that a WIT name cannot have.
    Character(char),
    /// A word between hyphens is empty or does not begin with a letter.
    Word(String),
    /// It has a second `:`.
    Colons,
    /// The word has a meaning elsewhere.
    Reserved {
        /// The name.
        name: String,
        /// Where it has a meaning.
        by: &'static str,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameError::Empty => f.write_str("the name is empty")?,
            NameError::TooLong(limit) => {
                return write!(f, "the name has more than {limit} characters");
            }
            NameError::Path => {
                return f.write_str(
                    "this is a path; run the command in the folder that will contain the new one, with a name",
                );
            }
            NameError::Character(character) => {
                write!(f, "the character {character:?} is not allowed")?;
            }
            NameError::Word(word) if word.is_empty() => {
                f.write_str("a hyphen needs a word on both sides")?
            }
            NameError::Word(word) => write!(f, "the word `{word}` does not begin with a letter")?,
            NameError::Colons => f.write_str("there is more than one colon")?,
            NameError::Reserved { name, by } => {
                return write!(f, "`{name}` is {by}; choose another name");
            }
        }
        f.write_str(
            "; a name has lower-case letters, digits and single hyphens, such as `image-store`, or with a namespace `acme:image-store`",
        )
    }
}

impl std::error::Error for NameError {}

/// Checks a kebab-case word of WIT, in lower case.
fn check(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if let Some(character) = name
        .chars()
        .find(|c| !(c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-'))
    {
        return Err(NameError::Character(character));
    }
    if name.len() > LONGEST {
        return Err(NameError::TooLong(LONGEST));
    }
    for word in name.split('-') {
        if !word.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Err(NameError::Word(word.to_owned()));
        }
    }
    if WIT.contains(&name) {
        return Err(reserved(name, "a keyword of WIT"));
    }
    Ok(())
}

fn reserved(name: &str, by: &'static str) -> NameError {
    NameError::Reserved {
        name: name.to_owned(),
        by,
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.contains(['/', '\\']) || text == "." || text == ".." {
            return Err(NameError::Path);
        }
        let (namespace, name) = text.split_once(':').unwrap_or((DEFAULT_NAMESPACE, text));
        if name.contains(':') {
            return Err(NameError::Colons);
        }
        check(namespace)?;
        check(name)?;
        let tables = [
            (RUST, "a keyword of Rust"),
            (CARGO, "a name that cargo uses"),
            (C_HEADERS, "the name of a system header of C"),
            (TEMPLATE, "a name that the files of a new service use"),
        ];
        for (names, by) in tables {
            if names.contains(&name) {
                return Err(reserved(name, by));
            }
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}

impl Name {
    /// `image-store` as `image_store`.
    pub fn snake(name: &str) -> String {
        name.replace('-', "_")
    }

    /// `image-store` as `ImageStore`.
    pub fn camel(name: &str) -> String {
        let mut camel = String::new();
        for word in name.split('-') {
            let mut letters = word.chars();
            camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
            camel.push_str(letters.as_str());
        }
        camel
    }
}

#[cfg(test)]
mod tests {
    use super::{Name, NameError};

    fn parse(text: &str) -> Result<Name, NameError> {
        text.parse()
    }

    #[test]
    fn name_without_namespace_gets_the_default() {
        let name = parse("image-store2").unwrap();
        assert_eq!(
            (name.namespace.as_str(), name.name.as_str()),
            ("example", "image-store2")
        );
        assert_eq!(parse("acme:image-store").unwrap().namespace, "acme");
        assert_eq!(Name::camel("image-store2"), "ImageStore2");
        assert_eq!(Name::snake("image-store2"), "image_store2");
    }

    #[test]
    fn name_that_is_not_kebab_case_is_refused() {
        let word = |word: &str| NameError::Word(word.to_owned());
        for (text, error) in [
            ("", NameError::Empty),
            (":a", NameError::Empty),
            ("a:", NameError::Empty),
            ("a:b:c", NameError::Colons),
            ("a/b", NameError::Path),
            ("a\\b", NameError::Path),
            ("/a", NameError::Path),
            (".", NameError::Path),
            ("..", NameError::Path),
            ("a.b", NameError::Character('.')),
            ("Greeter", NameError::Character('G')),
            ("a_b", NameError::Character('_')),
            ("a b", NameError::Character(' ')),
            ("größe", NameError::Character('ö')),
            ("a\u{1b}", NameError::Character('\u{1b}')),
            ("-a", word("")),
            ("a-", word("")),
            ("a--b", word("")),
            ("2d", word("2d")),
            ("a-2", word("2")),
        ] {
            assert_eq!(parse(text), Err(error), "{text:?}");
        }
        assert_eq!(parse(&"a".repeat(65)), Err(NameError::TooLong(64)));
        assert!(parse(&"a".repeat(64)).is_ok());
    }

    #[test]
    fn name_that_means_something_elsewhere_is_refused() {
        for text in [
            "list", "list:a", "match", "std", "test", "time", "thalweg", "api",
        ] {
            let Err(NameError::Reserved { name, .. }) = parse(text) else {
                panic!("{text} is not refused");
            };
            assert!(text.starts_with(&name));
        }
    }

    #[test]
    fn error_does_not_send_control_characters_to_the_terminal() {
        assert!(
            !NameError::Character('\u{1b}')
                .to_string()
                .contains('\u{1b}')
        );
    }
}
