//! The files of the conformance scenarios: languages.toml, scenarios.json and the reports.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use toml_edit::{DocumentMut, Item, Table};

/// The contents of languages.toml.
pub(super) struct Languages {
    pub(super) runners: Vec<Runner>,
    pub(super) pending: Pending,
}

/// The scenarios that do not pass yet, by language.
pub(super) type Pending = BTreeMap<String, BTreeSet<String>>;

/// A runner: its command, and the languages that it tests.
pub(super) struct Runner {
    pub(super) command: Vec<String>,
    pub(super) languages: Vec<String>,
}

/// The scenarios in the order of the file, grouped by the part of their names before the colon.
pub(super) type Groups = Vec<(String, Vec<String>)>;

/// The report of one language: the verdict of each scenario.
pub(super) type Report = BTreeMap<String, String>;

/// The report of a language: `python-asyncio.json` for `Python asyncio`.
pub(super) fn file_name(language: &str) -> String {
    language.to_lowercase().replace(' ', "-") + ".json"
}

pub(super) fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

pub(super) fn languages(path: &Path) -> Result<Languages, String> {
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
pub(super) fn texts(item: &Item) -> Option<Vec<String>> {
    let items = item.as_array()?.iter();
    items.map(|item| item.as_str().map(str::to_owned)).collect()
}

/// The table `[pending]`: a list of scenarios for each language.
pub(super) fn pending(item: &Item) -> Result<Pending, String> {
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
pub(super) fn check_pending(
    runners: &[Runner],
    groups: &Groups,
    pending: &Pending,
) -> Result<(), String> {
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

pub(super) fn json(path: &Path) -> Result<Value, String> {
    serde_json::from_str(&text(path)?).map_err(|error| format!("{}: {error}", path.display()))
}

pub(super) fn scenarios(path: &Path) -> Result<Groups, String> {
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

/// A report: `{"language": .., "scenarios": [{"name": .., "verdict": "ok"}]}`.
pub(super) fn read(
    path: &Path,
    language: &str,
    failures: &mut Vec<String>,
) -> Result<Report, String> {
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
