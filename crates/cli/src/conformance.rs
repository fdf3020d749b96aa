//! `thalweg conformance`: every language runs every scenario, and a page says so.
//!
//! `conformance/languages.toml` names the runners. Each leaves a report for every language that it speaks for; what is in no report did
//! not run, and that is as bad as a failure.

use crate::files::{self, State};
use crate::output::Output;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use toml_edit::{DocumentMut, Item, Table};

/// What is to be run and where the answers are.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Run nothing: judge the reports that are there.
    #[arg(long)]
    no_run: bool,
    /// Write nothing: fail where the page is not what it should be.
    #[arg(long)]
    check: bool,
    /// The folder with languages.toml and scenarios.json.
    #[arg(long, default_value = "conformance", value_name = "FOLDER")]
    folder: PathBuf,
    /// Where the runners leave their reports.
    #[arg(long, value_name = "FOLDER")]
    reports: Option<PathBuf>,
    /// The page with the matrix.
    #[arg(long, default_value = "docs/conformance.md", value_name = "FILE")]
    page: PathBuf,
}

/// A runner: how it is started, and the languages it speaks for.
struct Runner {
    command: Vec<String>,
    languages: Vec<String>,
}

/// Scenarios in the order of the file, by the part of their names before the colon.
type Groups = Vec<(String, Vec<String>)>;

/// What one language reports: the verdict of each scenario.
type Report = BTreeMap<String, String>;

/// Runs, judges, writes. Status 1: something is not as it should be.
///
/// # Errors
/// A file cannot be read or written, or says what nobody understands; a runner does not start.
pub fn run(arguments: &Arguments) -> Result<Output, String> {
    let runners = runners(&arguments.folder.join("languages.toml"))?;
    let groups = scenarios(&arguments.folder.join("scenarios.json"))?;
    let reports = arguments.reports.clone().unwrap_or_else(|| {
        let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        PathBuf::from(target).join("conformance")
    });
    let mut wrong = Vec::new();
    if !arguments.no_run {
        for runner in &runners {
            start(runner, &reports, &mut wrong)?;
        }
    }
    let mut languages = Vec::new();
    for language in runners.iter().flat_map(|runner| &runner.languages) {
        let path = reports.join(file_name(language));
        if path.is_file() {
            let report = read(&path, language, &mut wrong)?;
            judge(language, &groups, &report, &mut wrong);
        } else {
            wrong.push(format!("{language}: no report at {}", path.display()));
        }
        languages.push(language.as_str());
    }
    if !wrong.is_empty() {
        return Ok(outdated(&wrong));
    }
    keep(arguments, &page(&groups, &languages))
}

/// The report of a language: `python-asyncio.json` for `Python asyncio`.
fn file_name(language: &str) -> String {
    language.to_lowercase().replace(' ', "-") + ".json"
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn runners(path: &Path) -> Result<Vec<Runner>, String> {
    let wrong = |what: &str| format!("{}: {what}", path.display());
    let file: DocumentMut = text(path)?
        .parse()
        .map_err(|error: toml_edit::TomlError| wrong(&error.to_string()))?;
    let tables = file.get("runner").and_then(Item::as_array_of_tables);
    let tables = tables.ok_or_else(|| wrong("there is no [[runner]]"))?;
    let texts = |table: &Table, key: &str| -> Result<Vec<String>, String> {
        let array = table.get(key).and_then(Item::as_array);
        let texts: Option<Vec<_>> = array
            .into_iter()
            .flatten()
            .map(|item| item.as_str().map(str::to_owned))
            .collect();
        match texts {
            Some(texts) if !texts.is_empty() => Ok(texts),
            _ => Err(wrong(&format!(
                "each [[runner]] has a list of texts `{key}`"
            ))),
        }
    };
    tables
        .iter()
        .map(|table| {
            Ok(Runner {
                command: texts(table, "command")?,
                languages: texts(table, "languages")?,
            })
        })
        .collect()
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

/// Starts a runner, whose old reports are gone by then.
fn start(runner: &Runner, reports: &Path, wrong: &mut Vec<String>) -> Result<(), String> {
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
        .map_err(|error| format!("`{shown}` does not start: {error}"))?;
    if !status.success() {
        wrong.push(format!("`{shown}` failed: {status}"));
    }
    Ok(())
}

/// A report: `{"language": .., "scenarios": [{"name": .., "verdict": "ok"}]}`.
fn read(path: &Path, language: &str, wrong: &mut Vec<String>) -> Result<Report, String> {
    let file = json(path)?;
    if file["language"] != language {
        return Err(format!("{}: it is not {language}'s", path.display()));
    }
    let mut report = Report::new();
    for scenario in file["scenarios"].as_array().into_iter().flatten() {
        let name = scenario["name"].as_str().unwrap_or_default().to_owned();
        let verdict = scenario["verdict"].as_str().unwrap_or("no verdict");
        if report.insert(name.clone(), verdict.to_owned()).is_some() {
            wrong.push(format!("{language}: `{name}` is there twice"));
        }
    }
    Ok(report)
}

/// Whether every scenario ran and came out well, and none that there is not.
fn judge(language: &str, groups: &Groups, report: &Report, wrong: &mut Vec<String>) {
    let names: Vec<_> = groups.iter().flat_map(|(_, names)| names).collect();
    for name in &names {
        match report.get(*name).map(String::as_str) {
            Some("ok") => {}
            Some(verdict) => wrong.push(format!("{language}: `{name}`: {verdict}")),
            None => wrong.push(format!("{language}: `{name}` did not run")),
        }
    }
    for name in report.keys().filter(|name| !names.contains(name)) {
        wrong.push(format!("{language}: there is no scenario `{name}`"));
    }
}

/// The page. All cells are full by now: a number in one is how many scenarios passed.
fn page(groups: &Groups, languages: &[&str]) -> String {
    let count: usize = groups.iter().map(|(_, names)| names.len()).sum();
    let mut page = format!(
        "# What every language does alike\n\n\
         Written by `thalweg conformance`. Do not edit.\n\n\
         {count} scenarios ([scenarios.json](../conformance/scenarios.json)), run in each language through the code that is generated \
         for it; a number says how many\nof a kind passed. The page is written only where all of them did; `make test` compares it.\n\n\
         | what | {} |\n| --- |{}\n",
        languages.join(" | "),
        " --- |".repeat(languages.len()),
    );
    for (group, names) in groups {
        let cells = format!(" {} |", names.len()).repeat(languages.len());
        writeln!(page, "| {group} |{cells}").expect("a string takes it");
    }
    page
}

fn outdated(wrong: &[String]) -> Output {
    Output {
        stderr: wrong.join("\n") + "\n",
        status: 1,
        ..Output::default()
    }
}

fn keep(arguments: &Arguments, page: &str) -> Result<Output, String> {
    let path = &arguments.page;
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    match files::compare(path, page).map_err(failed)? {
        State::Same => Ok(Output::default()),
        _ if arguments.check => Ok(outdated(&[format!(
            "{} is not up to date: run `thalweg conformance`",
            path.display()
        )])),
        _ => {
            let failed =
                |(path, error): (PathBuf, std::io::Error)| format!("{}: {error}", path.display());
            files::write(&[(path, page)]).map_err(failed)?;
            Ok(Output::done(format!("wrote {}\n", path.display())))
        }
    }
}
