//! `thalweg conformance`: runs every scenario in every language, and writes a page with the
//! results.
//!
//! `conformance/languages.toml` lists the runners, and the scenarios that are pending in a language.
//! Each runner writes a report for each language that it tests. A scenario that is missing in a
//! report is a failure, unless it is pending.

use crate::files::{self, FileState};
use crate::output::Output;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use toml_edit::{DocumentMut, Item, Table};

/// The arguments of `thalweg conformance`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Do not start the runners: check the existing reports.
    #[arg(long)]
    no_run: bool,
    /// Do not write the page: fail if it is out of date.
    #[arg(long)]
    check: bool,
    /// The folder with languages.toml and scenarios.json.
    #[arg(long, default_value = "conformance", value_name = "FOLDER")]
    folder: PathBuf,
    /// The folder with the reports [default: `conformance` in the target folder of cargo].
    #[arg(long, value_name = "FOLDER")]
    reports: Option<PathBuf>,
    /// The page with the results.
    #[arg(long, default_value = "docs/conformance.md", value_name = "FILE")]
    page: PathBuf,
}

/// The contents of languages.toml.
struct Languages {
    runners: Vec<Runner>,
    pending: Pending,
}

/// The scenarios that do not pass yet, by language.
type Pending = BTreeMap<String, BTreeSet<String>>;

/// A runner: its command, and the languages that it tests.
struct Runner {
    command: Vec<String>,
    languages: Vec<String>,
}

/// The scenarios in the order of the file, grouped by the part of their names before the colon.
type Groups = Vec<(String, Vec<String>)>;

/// The report of one language: the verdict of each scenario.
type Report = BTreeMap<String, String>;

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
    let reports = arguments.reports.clone().unwrap_or_else(|| {
        let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        PathBuf::from(target).join("conformance")
    });
    let mut failures = Vec::new();
    if !arguments.no_run {
        for runner in &runners {
            start(runner, &reports, &mut failures)?;
        }
    }
    let mut languages = Vec::new();
    for language in runners.iter().flat_map(|runner| &runner.languages) {
        let path = reports.join(file_name(language));
        if path.is_file() {
            let report = read(&path, language, &mut failures)?;
            check_report(language, &groups, &pending, &report, &mut failures);
        } else {
            failures.push(format!("{language}: no report at {}", path.display()));
        }
        languages.push(language.as_str());
    }
    if !failures.is_empty() {
        return Ok(failed(&failures));
    }
    write_page(arguments, &page(&groups, &languages, &pending))
}

/// The report of a language: `python-asyncio.json` for `Python asyncio`.
fn file_name(language: &str) -> String {
    language.to_lowercase().replace(' ', "-") + ".json"
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn languages(path: &Path) -> Result<Languages, String> {
    let wrong = |what: &str| format!("{}: {what}", path.display());
    let file: DocumentMut = text(path)?
        .parse()
        .map_err(|error: toml_edit::TomlError| wrong(&error.to_string()))?;
    let tables = file.get("runner").and_then(Item::as_array_of_tables);
    let tables = tables.ok_or_else(|| wrong("there is no [[runner]]"))?;
    let several = |table: &Table, key: &str| match table.get(key).and_then(texts) {
        Some(texts) if !texts.is_empty() => Ok(texts),
        _ => Err(wrong(&format!(
            "each [[runner]] needs a list of strings `{key}`"
        ))),
    };
    let runners = tables.iter().map(|table| {
        Ok(Runner {
            command: several(table, "command")?,
            languages: several(table, "languages")?,
        })
    });
    Ok(Languages {
        runners: runners.collect::<Result<_, String>>()?,
        pending: match file.get("pending") {
            None => Pending::new(),
            Some(item) => pending(item).map_err(|what| wrong(&what))?,
        },
    })
}

/// A list of strings. `None`: the item is something else.
fn texts(item: &Item) -> Option<Vec<String>> {
    let items = item.as_array()?.iter();
    items.map(|item| item.as_str().map(str::to_owned)).collect()
}

/// The table `[pending]`: a list of scenarios for each language.
fn pending(item: &Item) -> Result<Pending, String> {
    let table = item.as_table_like().ok_or("`pending` must be a table")?;
    let mut pending = Pending::new();
    for (language, item) in table.iter() {
        let texts = texts(item)
            .ok_or_else(|| format!("pending of {language} must be a list of strings"))?;
        let names = pending.entry(language.to_owned()).or_default();
        for name in texts {
            if !names.insert(name.clone()) {
                return Err(format!("pending of {language}: `{name}` occurs twice"));
            }
        }
    }
    Ok(pending)
}

/// Checks that each pending scenario exists, and that a runner tests each language that has one.
fn check_pending(runners: &[Runner], groups: &Groups, pending: &Pending) -> Result<(), String> {
    for (language, names) in pending {
        if !runners
            .iter()
            .any(|runner| runner.languages.contains(language))
        {
            return Err(format!("pending: no runner tests the language {language}"));
        }
        let is_known = |name: &String| groups.iter().any(|(_, known)| known.contains(name));
        if let Some(name) = names.iter().find(|name| !is_known(name)) {
            return Err(format!(
                "pending of {language}: there is no scenario `{name}`"
            ));
        }
    }
    Ok(())
}

fn json(path: &Path) -> Result<Value, String> {
    serde_json::from_str(&text(path)?).map_err(|error| format!("{}: {error}", path.display()))
}

fn scenarios(path: &Path) -> Result<Groups, String> {
    let file = json(path)?;
    let mut groups = Groups::new();
    for scenario in file.as_array().into_iter().flatten() {
        let name = scenario["name"].as_str();
        let name = name.ok_or_else(|| format!("{}: a scenario has no name", path.display()))?;
        let group = name.split_once(": ").map_or(name, |(group, _)| group);
        match groups.iter_mut().find(|(known, _)| known == group) {
            Some((_, names)) => names.push(name.to_owned()),
            None => groups.push((group.to_owned(), vec![name.to_owned()])),
        }
    }
    if groups.is_empty() {
        return Err(format!("{}: there are no scenarios", path.display()));
    }
    Ok(groups)
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

/// A report: `{"language": .., "scenarios": [{"name": .., "verdict": "ok"}]}`.
fn read(path: &Path, language: &str, failures: &mut Vec<String>) -> Result<Report, String> {
    let file = json(path)?;
    if file["language"] != language {
        return Err(format!(
            "{}: it is not the report of {language}",
            path.display()
        ));
    }
    let mut report = Report::new();
    for scenario in file["scenarios"].as_array().into_iter().flatten() {
        let name = scenario["name"].as_str().unwrap_or_default().to_owned();
        let verdict = scenario["verdict"].as_str().unwrap_or("no verdict");
        if report.insert(name.clone(), verdict.to_owned()).is_some() {
            failures.push(format!("{language}: `{name}` occurs twice"));
        }
    }
    Ok(report)
}

/// Checks that the report contains only known scenarios, and that exactly those passed that are not
/// pending.
fn check_report(
    language: &str,
    groups: &Groups,
    pending: &Pending,
    report: &Report,
    failures: &mut Vec<String>,
) {
    let names: Vec<_> = groups.iter().flat_map(|(_, names)| names).collect();
    for name in &names {
        let is_pending = is_pending(pending, language, name);
        match report.get(*name).map(String::as_str) {
            Some("ok") if is_pending => failures.push(format!(
                "{language}: `{name}` passes: remove it from `pending` in languages.toml"
            )),
            Some("ok") => {}
            _ if is_pending => {}
            Some(verdict) => failures.push(format!("{language}: `{name}`: {verdict}")),
            None => failures.push(format!("{language}: `{name}` did not run")),
        }
    }
    for name in report.keys().filter(|name| !names.contains(name)) {
        failures.push(format!("{language}: there is no scenario `{name}`"));
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
    match files::compare(path, page).map_err(with_path)? {
        FileState::Same => Ok(Output::default()),
        _ if arguments.check => Ok(failed(&[format!(
            "{} is out of date: run `thalweg conformance`",
            path.display()
        )])),
        _ => {
            let with_path =
                |(path, error): (PathBuf, std::io::Error)| format!("{}: {error}", path.display());
            files::write(&[(path, page)]).map_err(with_path)?;
            Ok(Output::done(format!("wrote {}\n", path.display())))
        }
    }
}
