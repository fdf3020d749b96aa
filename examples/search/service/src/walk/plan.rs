//! What is compiled once and used by many searches.

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use ignore::overrides::{Override, OverrideBuilder};

use super::progress::Progress;

/// The largest program a pattern may compile to, in bytes. The regex crate's own default;
/// grep-regex would allow a hundred times as much, and a pattern may come from anybody.
const PROGRAM_LIMIT: usize = 10 << 20;

/// The largest cache of the lazy DFA, in bytes and per searcher. Eight times the regex crate's
/// default; grep-regex would allow a gigabyte.
const DFA_LIMIT: usize = 16 << 20;

/// How to read the pattern and which files to look at. The default is what `grep -ra` does without
/// hidden files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The pattern is plain text, not a regular expression.
    pub fixed: bool,
    /// Upper and lower case are the same, by Unicode's simple case folding.
    pub ignore_case: bool,
    /// Also look at files and directories whose name begins with a dot.
    pub hidden: bool,
    /// Obey the `.gitignore` and `.ignore` files in the tree.
    pub ignore_files: bool,
    /// Only files that match one of these globs; one that begins with `!` excludes. A file must
    /// pass the globs *and* the two rules above.
    pub globs: Vec<String>,
}

/// Why a search cannot begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The pattern is not a regular expression, is too big, or contains a line's end.
    Pattern(String),
    /// A glob is not one.
    Glob(String),
    /// The directory is not there, is not a directory, or may not be read.
    Directory(String),
}

/// A pattern with the directory to look in.
#[derive(Debug)]
pub struct Plan {
    pub(super) root: PathBuf,
    /// The number of bytes of a path before its part below the root.
    pub(super) prefix: usize,
    pub(super) matcher: RegexMatcher,
    pub(super) hidden: bool,
    pub(super) ignore_files: bool,
    pub(super) globs: Override,
    /// How far the searches of this plan have come.
    pub progress: Progress,
}

impl Plan {
    /// Compiles `pattern` for searches below `root`. `root` itself may be a link; a relative one is
    /// looked up from the process's directory at the start of each search.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn new(pattern: &str, root: &Path, settings: &Settings) -> Result<Plan, Refused> {
        let matcher = compile(pattern, settings)?;
        let mut globs = OverrideBuilder::new("");
        for glob in &settings.globs {
            globs
                .add(glob)
                .map_err(|error| Refused::Glob(error.to_string()))?;
        }
        let globs = globs
            .build()
            .map_err(|error| Refused::Glob(error.to_string()))?;
        // As grep has it, a path below `dir//` begins with `dir/`.
        let mut bytes = root.as_os_str().as_bytes();
        while bytes.ends_with(b"//") {
            bytes = &bytes[..bytes.len() - 1];
        }
        let plan = Plan {
            root: PathBuf::from(OsStr::from_bytes(bytes)),
            prefix: bytes.len() + usize::from(!bytes.ends_with(b"/")),
            matcher,
            hidden: settings.hidden,
            ignore_files: settings.ignore_files,
            globs,
            progress: Progress::default(),
        };
        plan.check_root()?;
        Ok(plan)
    }

    /// Looks whether the directory can still be read; called before each search, because a plan may
    /// be old.
    ///
    /// # Errors
    /// [`Refused::Directory`] with the path and the reason.
    pub fn check_root(&self) -> Result<(), Refused> {
        let refuse = |why: &dyn Display| {
            Err(Refused::Directory(format!(
                "{}: {why}",
                self.root.display()
            )))
        };
        match fs::metadata(&self.root) {
            Err(error) => refuse(&error),
            Ok(about) if !about.is_dir() => refuse(&"not a directory"),
            Ok(_) => match fs::read_dir(&self.root) {
                Err(error) => refuse(&error),
                Ok(_) => Ok(()),
            },
        }
    }
}

fn compile(pattern: &str, settings: &Settings) -> Result<RegexMatcher, Refused> {
    // grep-regex refuses a newline too, but in words that speak of its own settings.
    if pattern.contains('\n') {
        return Err(Refused::Pattern(
            "a pattern cannot contain a line's end".to_owned(),
        ));
    }
    RegexMatcherBuilder::new()
        .fixed_strings(settings.fixed)
        .case_insensitive(settings.ignore_case)
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .size_limit(PROGRAM_LIMIT)
        .dfa_size_limit(DFA_LIMIT)
        .build(pattern)
        .map_err(|error| Refused::Pattern(error.to_string()))
}
