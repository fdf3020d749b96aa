//! The files of guests, and the names by which the dynamic loader opens them.
//!
//! The dynamic loader returns the library that is loaded if it has the same name or is the same file. A
//! library that is loaded beside an earlier one therefore gets a name of its own, and if the file is
//! the same one, it is a copy in memory.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

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
    use super::{copy, other_name};
    use std::collections::HashSet;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    /// The number of a file in its file system.
    fn number(path: &Path) -> Option<u64> {
        std::fs::metadata(path).ok().map(|file| file.ino())
    }

    #[test]
    fn other_names_differ_and_are_of_the_same_file() {
        let program = std::env::current_exe().expect("a test has a path");
        let of_program = number(&program);
        let names: HashSet<_> = (0..100)
            .map(|_| other_name(&program).into_os_string())
            .collect();
        assert_eq!(names.len(), 100);
        assert!(
            names
                .iter()
                .all(|name| number(Path::new(name)) == of_program)
        );
        assert!(!names.contains(program.as_os_str()));
    }

    #[test]
    fn copy_has_the_content_and_is_another_file() {
        let program = std::env::current_exe().expect("a test has a path");
        let (name, file) = copy(&program).expect("it is readable");
        assert!(std::fs::read(&name).unwrap() == std::fs::read(&program).unwrap());
        assert!(number(&name) != number(&program));
        drop(file);
        assert!(copy(Path::new("/no/such/file")).is_err());
    }
}
