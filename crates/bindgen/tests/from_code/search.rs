//! The interface of `examples/search`, written as Rust.

use thalweg::runtime::sync::Mutex;

/// What a query looks for and where it looks.
#[thalweg::value]
pub struct Options {
    /// The pattern is plain text, not a regular expression.
    pub fixed: bool,
    /// Upper and lower case are the same.
    pub ignore_case: bool,
    /// Also look at files and directories whose name begins with a dot.
    pub hidden: bool,
    /// Obey `.gitignore` and `.ignore` files found in the tree.
    pub ignore_files: bool,
    /// Only paths that match one of these globs; one that begins with `!` excludes.
    pub globs: Vec<String>,
}

/// One line that matched.
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

/// How far the searches of a query have come.
#[thalweg::value]
pub struct Progress {
    pub files: u64,
    pub bytes: u64,
    pub matches: u64,
    pub unreadable: u64,
    pub problem: Option<String>,
}

/// Why a search could not begin.
#[thalweg::value]
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The pattern is not a regular expression: what is wrong with it.
    #[error("{0}")]
    Pattern(String),
    #[error("{0}")]
    Glob(String),
    #[error("{0}")]
    Directory(String),
}

/// A type of the service's own.
pub struct Query {
    plan: Mutex<Vec<String>>,
}

/// A pattern compiled once and used often, with the directory it is used on.
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
    /// How many lines below `dir` match the regular expression, hidden files included, ignore files not obeyed.
    async fn count(&self, pattern: String, dir: &str) -> Result<u64, SearchError>;

    /// The lines that match, each file's in order. The stream ends with the search.
    #[thalweg::method(overflow = "block", capacity = 8192)]
    async fn matches(
        &self,
        call: &Call,
        query: &Query,
    ) -> Result<Box<dyn Iterator<Item = Match> + Send>, SearchError>;

    fn escape(&self, text: &str) -> String;
}
