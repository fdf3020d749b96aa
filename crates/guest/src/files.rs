//! The files of guests, and the names by which the dynamic loader opens them.
//!
//! The dynamic loader returns the library that is loaded if it has the same name or is the same file. A
//! library that is loaded beside an earlier one therefore gets a name of its own, and if the file is
//! the same one, it is a copy in memory.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The device and the inode of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId(u64, u64);

impl FileId {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let file = fs::metadata(path)?;
        Ok(Self(file.dev(), file.ino()))
    }
}

/// Another name of the file at `path`, an absolute path, that this function has not returned before. It
/// is in the same folder, for libraries that search for others with `$ORIGIN`.
pub(crate) fn other_name(path: &Path) -> PathBuf {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    let mut number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let mut folder = path.parent().unwrap_or(path).as_os_str().to_owned();
    while number > 0 {
        folder.push(if number % 2 == 1 { "/." } else { "/" });
        number /= 2;
    }
    folder.push("/");
    folder.push(path.file_name().unwrap_or_default());
    PathBuf::from(folder)
}

/// Copies a file into memory. The copy has the returned name, which no other one has, as long as the
/// returned file is open.
pub(crate) fn copy(path: &Path) -> io::Result<(PathBuf, File)> {
    // SAFETY: the name is NUL-terminated.
    let descriptor = unsafe { libc::memfd_create(c"guest".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: nothing else owns it.
    let mut copy = unsafe { File::from_raw_fd(descriptor) };
    io::copy(&mut File::open(path)?, &mut copy)?;
    let name = format!("/proc/self/fd/{}", copy.as_raw_fd());
    Ok((PathBuf::from(name), copy))
}

#[cfg(test)]
mod tests {
    use super::{FileId, copy, other_name};
    use std::collections::HashSet;
    use std::path::Path;

    #[test]
    fn other_names_differ_and_are_of_the_same_file() {
        let program = std::env::current_exe().expect("a test has a path");
        let id = FileId::of(&program).ok();
        let names: HashSet<_> = (0..100)
            .map(|_| other_name(&program).into_os_string())
            .collect();
        assert_eq!(names.len(), 100);
        assert!(
            names
                .iter()
                .all(|name| FileId::of(Path::new(name)).ok() == id)
        );
        assert!(!names.contains(program.as_os_str()));
    }

    #[test]
    fn copy_has_the_content_and_is_another_file() {
        let program = std::env::current_exe().expect("a test has a path");
        let (name, file) = copy(&program).expect("it is readable");
        assert!(std::fs::read(&name).unwrap() == std::fs::read(&program).unwrap());
        assert!(FileId::of(&name).ok() != FileId::of(&program).ok());
        drop(file);
        assert!(copy(Path::new("/no/such/file")).is_err());
    }
}
