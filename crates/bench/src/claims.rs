//! The claims: statements in the documents of five predecessors, compared with this lab's figures,
//! as `docs/claims.md`.
//!
//! A claim is a constant ([`claim::Claim`]): the project, the statement, how its figure was made,
//! the rows that test it, and a function from those rows to a verdict. The page is generated from
//! result files only. If a row is missing, the page names the command that measures it.
//!
//! | module | contents |
//! | --- | --- |
//! | [`claim`] | what a claim is, and the possible verdicts |
//! | [`evidence`] | the rows of one machine, and how to find a row |
//! | [`channels`], [`endurance`], [`submission`], [`runtime`] | the claims |
//! | [`later`] | claims that no workload tests yet |
//! | [`page`] | the Markdown page |

pub mod boundary;
pub mod channels;
pub mod claim;
pub mod endurance;
pub mod evidence;
pub mod later;
pub mod page;
pub mod runtime;
pub mod submission;

use std::fs;
use std::path::{Path, PathBuf};

use crate::hosts;
use crate::problem::Problem;
use crate::result_file;

use claim::Claim;

/// All claims, in the page's order.
pub fn all() -> impl Iterator<Item = &'static Claim> {
    channels::CLAIMS
        .iter()
        .chain(endurance::CLAIMS)
        .chain(submission::CLAIMS)
        .chain(boundary::CLAIMS)
        .chain(runtime::CLAIMS)
}

/// Writes `docs/claims.md` from these result files, or from the committed ones if none is named,
/// and returns its path.
///
/// # Errors
/// A file cannot be read or written, or is not a result file.
pub fn write(from: &[PathBuf]) -> Result<PathBuf, Problem> {
    let files = if from.is_empty() {
        let mut found = Vec::new();
        committed(&hosts::root().join("benchmarks/results"), &mut found)?;
        found
    } else {
        from.to_vec()
    };
    let reports: Result<Vec<_>, _> = files.iter().map(|file| result_file::read(file)).collect();
    let page = hosts::root().join("docs/claims.md");
    result_file::write(&page, &page::markdown(&reports?))?;
    Ok(page)
}

/// The result files below `folder`.
fn committed(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Problem> {
    let problem = || Problem::io(folder.display().to_string());
    for entry in fs::read_dir(folder).map_err(problem())? {
        let path = entry.map_err(problem())?.path();
        if path.is_dir() {
            committed(&path, found)?;
        } else if result_file::is_named(&path) {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
