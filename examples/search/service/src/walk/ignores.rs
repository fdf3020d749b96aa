//! The rules of `.gitignore` and `.ignore` files, chained from a directory up to the root of the
//! search.
//!
//! Within the tree the rules are git's: the deepest file decides, in a file the last line that
//! matches, `!` takes back, and below an ignored directory nothing is looked at. What differs from
//! git is deliberate: only files inside the searched tree count (no parents, no
//! `core.excludesFile`, no `info/exclude`), they count whether or not there is a repository, and
//! any `.ignore` beats any `.gitignore`, as ripgrep has it.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::file::open;

/// An ignore file larger than this is reported as unreadable and has no effect: its rules would
/// be compiled into one automaton, and the tree may come from anybody.
const FILE_LIMIT: u64 = 1 << 20;

/// The rules that apply in one directory.
#[derive(Debug)]
pub(super) struct Ignores {
    git: Gitignore,
    plain: Gitignore,
    parent: Option<Arc<Ignores>>,
}

impl Ignores {
    /// The rules for the entries of `directory`: those of its own ignore files and of `parent`.
    /// `below` is the directory's path below the root, empty for the root itself. Files that cannot
    /// be read are passed to `unreadable`.
    pub(super) fn of(
        directory: &Path,
        below: &Path,
        parent: Option<&Arc<Ignores>>,
        mut unreadable: impl FnMut(&Path, &io::Error),
    ) -> Option<Arc<Ignores>> {
        let mut load = |name: &str| {
            let path = directory.join(name);
            load(&path, below).unwrap_or_else(|error| {
                unreadable(&path, &error);
                Gitignore::empty()
            })
        };
        let (git, plain) = (load(".gitignore"), load(".ignore"));
        if git.is_empty() && plain.is_empty() {
            return parent.cloned();
        }
        Some(Arc::new(Ignores {
            git,
            plain,
            parent: parent.cloned(),
        }))
    }

    /// Whether to skip the entry at `below`, a path below the root.
    pub(super) fn ignore(&self, below: &Path, is_directory: bool) -> bool {
        let mut git = Match::None;
        let mut rules = Some(self);
        while let Some(here) = rules {
            let plain = here.plain.matched(below, is_directory);
            if !plain.is_none() {
                return plain.is_ignore();
            }
            if git.is_none() {
                git = here.git.matched(below, is_directory);
            }
            rules = here.parent.as_deref();
        }
        git.is_ignore()
    }
}

/// Reads one ignore file; one that is not there is empty. A line that is no glob is passed over, as
/// git does.
fn load(path: &Path, below: &Path) -> io::Result<Gitignore> {
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Gitignore::empty()),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(FILE_LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_LIMIT {
        return Err(io::Error::other(format!(
            "an ignore file larger than {FILE_LIMIT} bytes"
        )));
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = GitignoreBuilder::new(below);
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        // The error is the line's own; the others still count.
        let _ = builder.add_line(None, line);
    }
    builder.build().map_err(io::Error::other)
}
