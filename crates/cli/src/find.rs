//! Finds WIT packages, and the output folder of each.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders with build output or downloads, which are not searched.
const NOT_SOURCES: &[&str] = &["target", "node_modules", "build", "deps"];

/// All folders below `folder` that are called `wit` and contain a `.wit` file, sorted.
pub fn packages(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    walk(folder, &mut found)?;
    found.sort();
    Ok(found)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // Links are not followed: their targets are found at their own place.
        if !entry.file_type()?.is_dir()
            || name.starts_with('.')
            || NOT_SOURCES.contains(&name.as_ref())
        {
            continue;
        }
        let path = if folder == Path::new(".") {
            PathBuf::from(entry.file_name())
        } else {
            entry.path()
        };
        if name == "wit" && has_wit(&path)? {
            found.push(path);
        } else {
            walk(&path, found)?;
        }
    }
    Ok(())
}

fn has_wit(folder: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        if entry?
            .path()
            .extension()
            .is_some_and(|extension| extension == "wit")
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The output folder: `generated` next to a folder called `wit`, or inside a folder with another
/// name.
pub fn output(wit: &Path) -> PathBuf {
    let folder = if wit.is_dir() {
        wit
    } else {
        wit.parent().unwrap_or(Path::new(""))
    };
    match (folder.file_name(), folder.parent()) {
        (Some(name), Some(above)) if name == "wit" => above.join("generated"),
        _ => folder.join("generated"),
    }
}

#[cfg(test)]
mod tests {
    use super::output;
    use std::path::Path;

    #[test]
    fn output_folder_is_next_to_the_wit_folder() {
        assert_eq!(output(Path::new("a/wit/b.wit")), Path::new("a/generated"));
        assert_eq!(output(Path::new("wit/b.wit")), Path::new("generated"));
        assert_eq!(output(Path::new("a/b.wit")), Path::new("a/generated"));
        assert_eq!(output(Path::new("b.wit")), Path::new("generated"));
    }
}
