//! `thalweg conformance`: runs every scenario in every language, and writes a page with the
//! results.
//!
//! `conformance/languages.toml` lists the runners, and the scenarios that are pending in a language.
//! Each runner writes a report for each language that it tests. A scenario that is missing in a
//! report is a failure, unless it is pending.
//!
//! `conformance/guests/guests.toml` lists the services in other languages, which the same runners use
//! with `--guests`, and the scenarios that they do not support.

mod files;
mod guests;

use self::files::{
    Groups, Languages, Pending, Report, Runner, check_pending, file_name, languages, read,
    scenarios,
};
use self::guests::Guests;
use crate::files::FileState;
use crate::output::Output;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The arguments of `thalweg conformance`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Do not start the runners: check the existing reports.
    #[arg(long)]
    no_run: bool,
    /// Do not write the page: fail if it is out of date.
    #[arg(long)]
    check: bool,
    /// Run the services in other languages instead of the one in Rust.
    #[arg(long)]
    guests: bool,
    /// Use only this runner for --guests: one of its languages. May be repeated.
    #[arg(long, value_name = "LANGUAGE", requires = "guests")]
    host: Vec<String>,
    /// The folder with languages.toml, scenarios.json and guests.
    #[arg(long, default_value = "conformance", value_name = "FOLDER")]
    folder: PathBuf,
    /// The folder with the reports [default: `conformance` in the target folder of cargo].
    #[arg(long, value_name = "FOLDER")]
    reports: Option<PathBuf>,
    /// The page with the results.
    #[arg(long, default_value = "docs/conformance.md", value_name = "FILE")]
    page: PathBuf,
}

/// Starts the runners, checks the reports and writes the page. Exit status 1: a scenario failed or
/// did not run, a pending scenario passed, or the page is out of date.
///
/// # Errors
/// A file cannot be read, parsed or written, or a runner cannot be started.
pub fn run(arguments: &Arguments) -> Result<Output, String> {
    let path = arguments.folder.join("languages.toml");
    let Languages { runners, pending } = languages(&path)?;
    let groups = scenarios(&arguments.folder.join("scenarios.json"))?;
    check_pending(&runners, &groups, &pending)
        .map_err(|what| format!("{}: {what}", path.display()))?;
    let guests = Guests::read(&arguments.folder.join("guests"), &groups)?;
    let target = PathBuf::from(std::env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into()));
    let reports = arguments.reports.clone();
    let reports = reports.unwrap_or_else(|| target.join("conformance"));
    let mut failures = Vec::new();
    if arguments.guests {
        let is_chosen = |runner: &&Runner| {
            let hosts = &arguments.host;
            hosts.is_empty() || runner.languages.iter().any(|one| hosts.contains(one))
        };
        let chosen: Vec<_> = runners.iter().filter(is_chosen).collect();
        if chosen.is_empty() {
            return Err(format!(
                "{}: no runner tests {}",
                path.display(),
                arguments.host.join(", ")
            ));
        }
        for guest in guests.all() {
            let folder = reports.join(guest.reports());
            if !arguments.no_run {
                guests.start(guest, &chosen, (&target, &folder), &mut failures)?;
            }
            let label = |language: &str| format!("{language} with the guest in {}", guest.language);
            let excuse =
                |language: &str, name: &str| guests.excuse(guest, &pending, language, name);
            check_reports(&chosen, &folder, &groups, (&label, &excuse), &mut failures)?;
        }
    } else {
        if !arguments.no_run {
            for runner in &runners {
                start(runner, &reports, &mut failures)?;
            }
        }
        let excuse = |language: &str, name: &str| {
            is_pending(&pending, language, name).then_some("`pending` in languages.toml")
        };
        let all: Vec<_> = runners.iter().collect();
        check_reports(
            &all,
            &reports,
            &groups,
            (&str::to_owned, &excuse),
            &mut failures,
        )?;
    }
    if !failures.is_empty() {
        return Ok(failed(&failures));
    }
    let languages = runners.iter().flat_map(|runner| &runner.languages);
    let languages: Vec<_> = languages.map(String::as_str).collect();
    let matrix = guests.section(&groups, &languages, &pending);
    write_page(arguments, &(page(&groups, &languages, &pending) + &matrix))
}

/// How a report is judged: how its language is called in failures, and where a scenario is listed that
/// must not pass.
type Judged<'a> = (
    &'a dyn Fn(&str) -> String,
    &'a dyn Fn(&str, &str) -> Option<&'static str>,
);

/// Reads and checks the reports of these runners.
fn check_reports(
    runners: &[&Runner],
    reports: &Path,
    groups: &Groups,
    (label, excuse): Judged<'_>,
    failures: &mut Vec<String>,
) -> Result<(), String> {
    for language in runners.iter().flat_map(|runner| &runner.languages) {
        let path = reports.join(file_name(language));
        let label = label(language);
        if path.is_file() {
            let report = read(&path, language, failures)?;
            let excuse = |name: &str| excuse(language, name);
            check_report(&label, groups, excuse, &report, failures);
        } else {
            failures.push(format!("{label}: no report at {}", path.display()));
        }
    }
    Ok(())
}

/// Deletes the old reports of a runner, and starts it.
fn start(runner: &Runner, reports: &Path, failures: &mut Vec<String>) -> Result<(), String> {
    for language in &runner.languages {
        let path = reports.join(file_name(language));
        if path.exists() {
            fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    let shown = runner.command.join(" ");
    let status = Command::new(&runner.command[0])
        .args(&runner.command[1..])
        .status()
        .map_err(|error| format!("cannot start `{shown}`: {error}"))?;
    if !status.success() {
        failures.push(format!("`{shown}` failed: {status}"));
    }
    Ok(())
}

/// Checks that the report contains only known scenarios, and that exactly those passed that have no
/// excuse.
fn check_report(
    label: &str,
    groups: &Groups,
    excuse: impl Fn(&str) -> Option<&'static str>,
    report: &Report,
    failures: &mut Vec<String>,
) {
    let names: Vec<_> = groups.iter().flat_map(|(_, names)| names).collect();
    for name in &names {
        match (report.get(*name).map(String::as_str), excuse(name)) {
            (Some("ok"), Some(list)) => {
                failures.push(format!("{label}: `{name}` passes: remove it from {list}"));
            }
            (Some("ok"), None) | (Some(_), Some(_)) => {}
            (None, Some("`pending` in languages.toml")) => {}
            (Some(verdict), None) => failures.push(format!("{label}: `{name}`: {verdict}")),
            (None, _) => failures.push(format!("{label}: `{name}` did not run")),
        }
    }
    for name in report.keys().filter(|name| !names.contains(name)) {
        failures.push(format!("{label}: there is no scenario `{name}`"));
    }
}

fn is_pending(pending: &Pending, language: &str, scenario: &str) -> bool {
    let names = pending.get(language);
    names.is_some_and(|names| names.contains(scenario))
}

/// The page. All scenarios that are not pending have passed, so their number is that of the passed
/// ones.
fn page(groups: &Groups, languages: &[&str], pending: &Pending) -> String {
    let count: usize = groups.iter().map(|(_, names)| names.len()).sum();
    let numbers: Vec<_> = languages
        .iter()
        .filter_map(|language| {
            let number = pending.get(*language).map_or(0, BTreeSet::len);
            (number > 0).then(|| format!("{number} in {language}"))
        })
        .collect();
    let pending_text = match numbers.is_empty() {
        true => String::new(),
        false => format!(
            "A pending scenario does not pass yet. They are listed in\n\
             [languages.toml](../conformance/languages.toml), and do not prevent the page from being written:\n\
             {}.\n\n",
            numbers.join(", ")
        ),
    };
    let mut page = format!(
        "# Conformance\n\n\
         This page shows how many conformance scenarios pass in each language. Generated by `thalweg conformance`. Do not\n\
         edit.\n\n\
         Each language runs all {count} scenarios of [scenarios.json](../conformance/scenarios.json) with its generated code. The\n\
         page is written only if all of them pass, and `make test` checks that it is up to date.\n\n\
         {pending_text}| scenarios | {} |\n| --- |{}\n",
        languages.join(" | "),
        " --- |".repeat(languages.len()),
    );
    for (group, names) in groups {
        let cells = languages.iter().map(|language| {
            let pending = names
                .iter()
                .filter(|name| is_pending(pending, language, name))
                .count();
            match (names.len() - pending, pending) {
                (passed, 0) => format!(" {passed} |"),
                (passed, pending) => format!(" {passed} ({pending} pending) |"),
            }
        });
        let cells = cells.collect::<String>();
        writeln!(page, "| {group} |{cells}").expect("writing to a string succeeds");
    }
    page
}

fn failed(failures: &[String]) -> Output {
    Output {
        stderr: failures.join("\n") + "\n",
        status: 1,
        ..Output::default()
    }
}

fn write_page(arguments: &Arguments, page: &str) -> Result<Output, String> {
    let path = &arguments.page;
    let with_path = |error: std::io::Error| format!("{}: {error}", path.display());
    match crate::files::compare(path, page).map_err(with_path)? {
        FileState::Same => Ok(Output::default()),
        _ if arguments.check => Ok(failed(&[format!(
            "{} is out of date: run `thalweg conformance`",
            path.display()
        )])),
        _ => {
            let with_path =
                |(path, error): (PathBuf, std::io::Error)| format!("{}: {error}", path.display());
            crate::files::write(&[(path, page)]).map_err(with_path)?;
            Ok(Output::done(format!("wrote {}\n", path.display())))
        }
    }
}
