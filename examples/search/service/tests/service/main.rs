//! The service through its typed client, on real trees.

mod answers;
mod stopping;
#[path = "../walk/tree.rs"]
mod tree;
mod watching;

use std::path::Path;

use thalweg::{CallError, Code, Failure};
use thalweg_search::SearchService;
use thalweg_search::search::{Options, QueryClient, SearchClient, SearchError};

fn client() -> SearchClient {
    SearchClient::start(|| SearchService).unwrap()
}

/// What `grep -raF` looks at.
fn everything() -> Options {
    Options {
        fixed: true,
        ignore_case: false,
        hidden: true,
        ignore_files: false,
        globs: Vec::new(),
    }
}

fn query(client: &SearchClient, pattern: &str, root: &Path) -> QueryClient {
    client
        .query(pattern, root.to_str().unwrap(), &everything())
        .wait()
        .unwrap()
}

/// How a call ended that the service did not answer.
fn ending<T: std::fmt::Debug>(result: Result<T, CallError<SearchError>>) -> Failure {
    match result {
        Err(CallError::Ended(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

fn code<T: std::fmt::Debug>(result: Result<T, CallError<SearchError>>) -> Code {
    ending(result).code
}
