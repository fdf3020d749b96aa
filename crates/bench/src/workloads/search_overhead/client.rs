//! The search through Thalweg's Rust client.

use std::path::Path;

use thalweg_search::SearchService;
use thalweg_search::search::{Options, QueryClient, SearchClient};

use super::Found;
use crate::problem::Problem;

/// Records in a batch, as in the other hosts.
const BATCH: u32 = 256;

/// A client with its own query.
#[derive(Debug)]
pub struct Client {
    search: SearchClient,
    query: QueryClient,
}

impl Client {
    /// Starts an instance and compiles `pattern` for `dir`, including hidden files.
    ///
    /// # Errors
    /// The runtime does not start, or the service refuses the pattern or the directory.
    pub fn open(pattern: &str, dir: &Path) -> Result<Self, Problem> {
        let dir = dir
            .to_str()
            .ok_or_else(|| Problem::NotReady("the directory's name is not UTF-8".to_owned()))?;
        let options = Options {
            fixed: false,
            ignore_case: false,
            hidden: true,
            ignore_files: false,
            globs: Vec::new(),
        };
        let refused = |why: String| Problem::NotReady(why);
        let search = SearchClient::start(|| SearchService).map_err(|e| refused(e.to_string()))?;
        let query = search
            .query(pattern, dir, &options)
            .wait()
            .map_err(|error| refused(format!("{error:?}")))?;
        Ok(Self { search, query })
    }

    /// Runs one search to its end.
    ///
    /// # Errors
    /// The call or the stream failed.
    pub fn search(&self) -> Result<Found, Problem> {
        let failed = |why: String| Problem::Check(why);
        let mut stream = self
            .search
            .matches(&self.query)
            .wait()
            .map_err(|error| failed(format!("{error:?}")))?;
        let mut found = Found {
            matches: 0,
            lines: 0,
        };
        loop {
            let batch = stream
                .next_batch(BATCH, u64::MAX)
                .map_err(|e| failed(e.to_string()))?;
            let Some(batch) = batch else {
                return Ok(found);
            };
            found.matches += u64::from(batch.len());
            found.lines += batch.iter().map(|one| one.line).sum::<u64>();
        }
    }
}
