//! Temporary trees.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

pub struct Tree(TempDir);

impl Tree {
    pub fn new() -> Tree {
        Tree(tempfile::tempdir().unwrap())
    }

    pub fn with(files: &[(&str, &[u8])]) -> Tree {
        let tree = Tree::new();
        for (path, bytes) in files {
            tree.file(path, bytes);
        }
        tree
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root().join(below)
    }

    pub fn file(&self, below: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}
