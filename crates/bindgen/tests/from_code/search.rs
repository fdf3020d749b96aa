//! The interface of `examples/search`, written as Rust.

use thalweg::runtime::sync::Mutex;

/// Options of a query.
#[thalweg::value]
pub struct Options {
    /// The pattern is plain text, not a regular expression.
    pub fixed: bool,
    /// The search ignores case.
    pub ignore_case: bool,
    /// Also search files and directories whose names begin with a dot.
    pub hidden: bool,
    /// Obey `.gitignore` and `.ignore` files found in the tree.
    pub ignore_files: bool,
    /// Search only paths that match one of these globs. A glob that begins with `!` excludes paths.
    pub globs: Vec<String>,
}

/// A matching line.
#[thalweg::value]
#[derive(Clone, Debug)]
pub struct Match {
    pub path: String,
    pub line: u64,
    pub column: u64,
    pub text: Box<str>,
    pub path_bytes: Option<Vec<u8>>,
    pub text_bytes: Option<Box<[u8]>>,
    pub cut: bool,
}

/// The progress of the searches of a query.
#[thalweg::value]
pub struct Progress {
    pub files: u64,
    pub bytes: u64,
    pub matches: u64,
    pub unreadable: u64,
    pub problem: Option<String>,
}

/// Why a search cannot begin.
#[thalweg::value]
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The pattern is not a valid regular expression: the reason.
    #[error("{0}")]
    Pattern(String),
    #[error("{0}")]
    Glob(String),
    #[error("{0}")]
    Directory(String),
}

/// A type of the service.
pub struct Query {
    plan: Mutex<Vec<String>>,
}

/// A compiled pattern with the directory to search. It can be used for several searches.
#[thalweg::resource]
impl Query {
    pub fn new(pattern: String, dir: &str, options: Options) -> Result<Self, SearchError> {
        todo!()
    }

    #[thalweg::method(overflow = "latest")]
    pub fn progress(&self) -> impl Iterator<Item = Progress> + Send + 'static {
        std::iter::empty()
    }

    fn nobody_calls_this<T>(&self, _: T) {}
}

/// Search a directory tree with ripgrep's own libraries.
#[thalweg::service(package = "thalweg:search@0.1.0")]
pub trait Search {
    /// The number of lines below `dir` that match a regular expression. Hidden files are searched, and
    /// ignore files are not obeyed.
    async fn count(&self, pattern: String, dir: &str) -> Result<u64, SearchError>;

    /// The matching lines. The lines of one file are in order. The stream ends with the search.
    #[thalweg::method(overflow = "block", capacity = 8192)]
    async fn matches(
        &self,
        call: &Call,
        query: &Query,
    ) -> Result<Box<dyn Iterator<Item = Match> + Send>, SearchError>;

    fn escape(&self, text: &str) -> String;
}
