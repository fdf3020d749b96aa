//! `baseline`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::command::print;
use crate::problem::Problem;
use crate::report::Report;
use crate::table::aligned;
use crate::{baseline, machine, result_file, table};

#[derive(Args, Debug)]
pub struct Baselines {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the baselines of every host
    List,
    /// Print the figures
    Show {
        /// The workloads; default: all
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// The host; default: this one
        #[arg(long, value_name = "HOST")]
        host: Option<String>,
    },
    /// Save the workloads of result files; each replaces its earlier baseline
    Save {
        /// The result files
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
}

/// Runs the command.
///
/// # Errors
/// The baseline does not exist, or a file cannot be read or written.
pub fn execute(baselines: &Baselines) -> Result<(), Problem> {
    match &baselines.action {
        None | Some(Action::List) => list(),
        Some(Action::Show { names, host }) => show(names, host.as_deref()),
        Some(Action::Save { files }) => save(files),
    }
}

/// The name of this machine.
fn here() -> String {
    baseline::name_of(&machine::describe())
}

fn list() -> Result<(), Problem> {
    let folder = baseline::folder();
    let here = here();
    let mut lines = vec![["host", "workload", "rows", "started", "commit"].map(str::to_owned)];
    for host in baseline::known_hosts(&folder)? {
        for (file, report) in baseline::load(&folder, &host)? {
            let mark = if host == here { " (this one)" } else { "" };
            lines.push([
                format!("{host}{mark}"),
                file.file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
                report.results.len().to_string(),
                report.started.clone(),
                short(&report.commit),
            ]);
        }
    }
    if lines.len() == 1 {
        return print(&format!(
            "There is no baseline. This host is {here}: `thalweg bench run --save-baseline`.\n"
        ));
    }
    print(&aligned(&lines))
}

/// The first digits of a commit, and whether the checkout was modified.
fn short(commit: &str) -> String {
    let (hash, changed) = match commit.split_once('-') {
        Some((hash, changed)) => (hash, format!("-{changed}")),
        None => (commit, String::new()),
    };
    let hash: String = hash.chars().take(12).collect();
    hash + &changed
}

fn show(names: &[String], host: Option<&str>) -> Result<(), Problem> {
    let host = host.map_or_else(here, str::to_owned);
    let wanted = |report: &Report| {
        let of_report = report.results.first().map(|row| &row.workload);
        names.is_empty() || of_report.is_some_and(|workload| names.contains(workload))
    };
    let mut found: Vec<Report> = baseline::load(&baseline::folder(), &host)?
        .into_iter()
        .map(|(_, report)| report)
        .filter(wanted)
        .collect();
    if let Some(missing) = names.iter().find(|name| {
        let has = |report: &Report| report.results.iter().any(|row| row.workload == **name);
        !found.iter().any(has)
    }) {
        return Err(Problem::Usage(format!(
            "{host} has no baseline of {missing}: `thalweg bench baseline` lists those that exist"
        )));
    }
    let Some(mut all) = found.pop() else {
        return Err(Problem::Usage(format!(
            "{host} has no baseline: `thalweg bench run --save-baseline` makes one"
        )));
    };
    for report in found.into_iter().rev() {
        all.results.splice(0..0, report.results);
    }
    print(&table::markdown(&all))
}

fn save(files: &[PathBuf]) -> Result<(), Problem> {
    for file in files {
        let report = result_file::read(file)?;
        for written in baseline::save(&baseline::folder(), &report)? {
            print(&format!("saved {}\n", written.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_shortened_and_keeps_what_it_says() {
        assert_eq!(short("0123456789abcdef0123"), "0123456789ab");
        assert_eq!(short("0123456789abcdef-dirty"), "0123456789ab-dirty");
        assert_eq!(short("unknown"), "unknown");
    }
}
