//! One file: it is opened so that it cannot block, read in steps, and its lines go to the sink.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder, SinkError, SinkMatch};

use super::crew::{Sink, Stop};
use super::hit::{Hit, Text};
use super::progress::{Counts, Progress};

/// How much of a file is read between two looks at [`Crew::check`](super::Crew::check): some two
/// thousand lines of source text, a few tens of microseconds of searching.
pub const CHECK_BYTES: usize = 64 << 10;

/// How much of a file is read between two additions to the shared counters.
const COUNT_BYTES: u64 = 1 << 20;

/// The longest line that is searched, and so the most memory that one searcher uses for a file. A
/// file with a longer one is searched up to that line and counted as unreadable from there. A limit
/// there must be: a sparse file of a gigabyte is one line of a gigabyte.
pub const LINE_LIMIT: usize = 32 << 20;

/// The state that one searcher reuses from file to file: its buffer, its copy of the matcher (with
/// the cache of its automaton), and its sink.
pub(super) struct Kit<S> {
    pub(super) sink: S,
    matcher: RegexMatcher,
    searcher: Searcher,
}

impl<S: Sink> Kit<S> {
    pub(super) fn new(sink: S, matcher: &RegexMatcher) -> Kit<S> {
        Kit {
            sink,
            matcher: matcher.clone(),
            searcher: searcher::<S>(),
        }
    }
}

/// Lines as `grep -a` sees them: `\n` ends one and is all that does; no byte-order mark, no other
/// encoding, no binary file. No memory map: a file that shrinks under one kills the process.
fn searcher<S: Sink>() -> Searcher {
    SearcherBuilder::new()
        .line_number(S::LINES)
        .bom_sniffing(false)
        .encoding(None)
        .binary_detection(BinaryDetection::none())
        .memory_map(MmapChoice::never())
        .heap_limit(Some(LINE_LIMIT))
        .build()
}

/// Opens a regular file for reading. A link is not followed. What is no regular file is refused,
/// and opening it does not block: a directory's entry may become a pipe after it was listed.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("not a regular file"))
    }
}

/// Why a file's search ended before the file.
pub(super) enum Broken {
    /// The whole search is to end.
    Stop,
    /// The rest of this file cannot be read.
    Read(io::Error),
}

impl SinkError for Broken {
    fn error_message<T: std::fmt::Display>(message: T) -> Broken {
        Broken::Read(io::Error::other(message.to_string()))
    }

    fn error_io(error: io::Error) -> Broken {
        if error.get_ref().is_some_and(|inner| inner.is::<Stop>()) {
            return Broken::Stop;
        }
        // Every error of `Source` has an error number of the system. An error without one is from
        // the line buffer.
        if error.raw_os_error().is_none() {
            return Broken::Read(io::Error::other(format!(
                "a line longer than {} MiB",
                LINE_LIMIT >> 20
            )));
        }
        Broken::Read(error)
    }
}

/// Searches one file and adds the result to `counts` and to `progress`.
pub(super) fn search<S: Sink>(
    path: &Path,
    kit: &mut Kit<S>,
    counts: &mut Counts,
    progress: &Progress,
    check: &dyn Fn() -> Result<(), Stop>,
) -> Result<(), Broken> {
    let file = open(path).map_err(Broken::Read)?;
    let mut source = Source {
        file,
        check,
        progress,
        bytes: 0,
        reported: 0,
        unchecked: 0,
        grown: false,
    };
    let (text, path_bytes) = match path.to_str() {
        Some(text) => (Cow::Borrowed(text), None),
        None => (
            path.to_string_lossy(),
            Some(path.as_os_str().as_encoded_bytes()),
        ),
    };
    let mut lines = Lines {
        sink: &mut kit.sink,
        matcher: &kit.matcher,
        path: &text,
        path_bytes,
        matches: 0,
    };
    let result = kit
        .searcher
        .search_reader(&kit.matcher, &mut source, &mut lines);
    let matches = lines.matches;
    if source.grown {
        // A long line is rare; its buffer is not kept for all that comes after.
        kit.searcher = searcher::<S>();
    }
    counts.add(&Counts {
        files: 1,
        bytes: source.bytes,
        matches,
        unreadable: 0,
    });
    progress.add(&Counts {
        files: 1,
        bytes: source.bytes - source.reported,
        matches,
        unreadable: 0,
    });
    result
}

/// A file as the searcher reads it: in steps, with a look around between them.
struct Source<'a> {
    file: File,
    check: &'a dyn Fn() -> Result<(), Stop>,
    progress: &'a Progress,
    /// Read so far.
    bytes: u64,
    /// Of those, added to `progress`.
    reported: u64,
    /// Read since the last check.
    unchecked: usize,
    /// The searcher's buffer had to grow.
    grown: bool,
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.unchecked >= CHECK_BYTES {
            self.unchecked = 0;
            (self.check)().map_err(io::Error::other)?;
        }
        self.grown |= buffer.len() > CHECK_BYTES;
        let step = buffer.len().min(CHECK_BYTES);
        let count = loop {
            match self.file.read(&mut buffer[..step]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.unchecked += count;
        self.bytes += count as u64;
        if self.bytes - self.reported >= COUNT_BYTES {
            self.progress.add(&Counts {
                bytes: self.bytes - self.reported,
                ..Counts::default()
            });
            self.reported = self.bytes;
        }
        Ok(count)
    }
}

/// Turns the searcher's matches into hits.
struct Lines<'a, S> {
    sink: &'a mut S,
    matcher: &'a RegexMatcher,
    path: &'a str,
    path_bytes: Option<&'a [u8]>,
    matches: u64,
}

impl<S: Sink> grep_searcher::Sink for Lines<'_, S> {
    type Error = Broken;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Broken> {
        self.matches += 1;
        if S::LINES {
            let line = found.bytes();
            let text = Text::of(line);
            let whole = line.strip_suffix(b"\n").unwrap_or(line);
            let first = self
                .matcher
                .find(whole)
                .ok()
                .flatten()
                .map_or(0, |first| first.start());
            let hit = Hit {
                path: self.path,
                path_bytes: self.path_bytes,
                line: found.line_number().unwrap_or(0),
                column: first as u64 + 1,
                text: &text.text,
                text_bytes: text.bytes,
                cut: text.cut,
            };
            self.sink.hit(&hit).map_err(|Stop| Broken::Stop)?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::CountOnly;

    fn search_of(path: &str) -> (Result<(), Broken>, Counts) {
        let matcher = RegexMatcher::new("x").unwrap();
        let mut counts = Counts::default();
        let progress = Progress::default();
        let mut kit = Kit::new(CountOnly, &matcher);
        let result = search(
            Path::new(path),
            &mut kit,
            &mut counts,
            &progress,
            &|| Ok(()),
        );
        (result, counts)
    }

    #[test]
    fn an_error_while_reading_keeps_the_systems_reason() {
        // A regular file that opens, and whose first page cannot be read.
        match search_of("/proc/self/mem") {
            (Err(Broken::Read(error)), counts) => {
                assert_eq!(error.raw_os_error(), Some(libc::EIO));
                assert_eq!((counts.files, counts.bytes), (1, 0));
            }
            _ => panic!("it was read"),
        }
    }

    #[test]
    fn a_device_is_refused_before_it_is_read() {
        assert!(
            matches!(search_of("/dev/zero"), (Err(Broken::Read(_)), counts) if counts.files == 0)
        );
    }
}
