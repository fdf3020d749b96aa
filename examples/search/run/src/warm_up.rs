//! One search before the clock runs: all files are in the page cache then, for every host alike.
//!
//! It is also the one that shows how far it is: its query's own progress stream moves the bar.

use std::thread;

use indicatif::{ProgressBar, ProgressStyle};
use thalweg::{CallError, StreamReader};
use thalweg_search::SearchService;
use thalweg_search::search::{Options, Progress, SearchClient, SearchError};
use walkdir::WalkDir;

use crate::table::counted;

/// Searches once and shows it on `bar`. Returns how far it came: to the end.
///
/// # Errors
/// A sentence for the user: why the search could not begin, or did not end.
pub fn search(pattern: &str, directory: &str, bar: &ProgressBar) -> Result<Progress, String> {
    if !bar.is_hidden() {
        bar.set_style(
            ProgressStyle::with_template("  {wide_bar} {binary_bytes}/{binary_total_bytes}, {msg}")
                .expect("a constant template"),
        );
        bar.set_length(size(directory));
    }
    let client = SearchClient::start(|| SearchService).map_err(|failure| failure.to_string())?;
    let options = Options {
        fixed: true,
        ignore_case: false,
        hidden: true,
        ignore_files: false,
        globs: Vec::new(),
    };
    let query = client
        .query(pattern, directory, &options)
        .wait()
        .map_err(said)?;
    let progress = query.progress().wait().map_err(|error| error.to_string())?;
    let watcher = thread::spawn({
        let bar = bar.clone();
        move || watch(progress, &bar)
    });
    for found in client.matches(&query).wait().map_err(said)? {
        found.map_err(|failure| failure.to_string())?;
    }
    // The progress ends with the query, after the newest state.
    drop(query);
    watcher.join().expect("watching does not panic")
}

fn said(error: CallError<SearchError>) -> String {
    match error {
        CallError::Service(error) => error.to_string(),
        CallError::Ended(failure) => failure.to_string(),
    }
}

/// Moves the bar until the query is gone, and returns its last state.
fn watch(states: StreamReader<Progress>, bar: &ProgressBar) -> Result<Progress, String> {
    let mut last = Progress {
        files: 0,
        bytes: 0,
        matches: 0,
        unreadable: 0,
        problem: None,
    };
    for state in states {
        last = state.map_err(|failure| failure.to_string())?;
        bar.set_position(last.bytes);
        let found = [counted(last.files, "file"), counted(last.matches, "line")];
        bar.set_message(found.join(", "));
    }
    Ok(last)
}

/// Bytes in all files below `directory`: what the bar runs to.
fn size(directory: &str) -> u64 {
    let entries = WalkDir::new(directory).into_iter().filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_file());
    files
        .filter_map(|file| Some(file.metadata().ok()?.len()))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_ends_where_the_search_did() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::write(tree.path().join("a"), "needle\nhay\n").unwrap();
        std::fs::write(tree.path().join(".b"), "needle\n").unwrap();
        let directory = tree.path().to_str().unwrap();
        let bar = ProgressBar::hidden();
        let progress = search("needle", directory, &bar).unwrap();
        assert_eq!(
            (progress.files, progress.matches, progress.bytes),
            (2, 2, 18)
        );
        assert_eq!(bar.position(), 18);
        assert_eq!(size(directory), 18);
    }

    #[test]
    fn a_directory_that_is_none_is_said_in_words() {
        let error = search("x", "/no/such", &ProgressBar::hidden()).unwrap_err();
        assert!(error.contains("/no/such"), "{error}");
    }
}
