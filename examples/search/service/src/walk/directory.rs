//! One directory: its entries, and which of them are searched.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ignores::Ignores;
use super::plan::Plan;

/// A directory that will be listed, or whose files are being searched.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
    /// The rules of the directory above; from [`Directory::enter`] on, of this one.
    ignores: Option<Arc<Ignores>>,
}

/// A piece of work on the shared stack.
#[derive(Debug)]
pub(super) enum Item {
    /// To be listed.
    Directory(Directory),
    /// Some of one directory's files, to be searched.
    Files(Arc<Directory>, Vec<OsString>),
}

impl Directory {
    /// The one that the search begins at.
    pub(super) fn root(plan: &Plan) -> Directory {
        Directory {
            path: plan.root.clone(),
            ignores: None,
        }
    }

    /// The directory `name` in this one.
    pub(super) fn child(&self, name: &OsStr) -> Directory {
        Directory {
            path: self.path.join(name),
            ignores: self.ignores.clone(),
        }
    }

    /// Reads the directory's own ignore files, if the plan obeys them.
    pub(super) fn enter(&mut self, plan: &Plan, unreadable: impl FnMut(&Path, &std::io::Error)) {
        if plan.ignore_files {
            let below = below(plan, &self.path);
            self.ignores = Ignores::of(&self.path, below, self.ignores.as_ref(), unreadable);
        }
    }

    /// Whether `name` in this directory is to be looked at, by the rules of the plan. Each rule can
    /// only exclude.
    pub(super) fn wants(&self, plan: &Plan, name: &OsStr, is_directory: bool) -> bool {
        if !plan.hidden && name.as_bytes().first() == Some(&b'.') {
            return false;
        }
        if plan.globs.is_empty() && self.ignores.is_none() {
            return true;
        }
        let path = self.path.join(name);
        let path = below(plan, &path);
        !plan.globs.matched(path, is_directory).is_ignore()
            && !self
                .ignores
                .as_ref()
                .is_some_and(|rules| rules.ignore(path, is_directory))
    }
}

/// The part of `path` below the root of the search; of the root itself, nothing.
fn below<'a>(plan: &Plan, path: &'a Path) -> &'a Path {
    let bytes = path.as_os_str().as_bytes();
    Path::new(OsStr::from_bytes(
        bytes.get(plan.prefix..).unwrap_or_default(),
    ))
}
