//! The conformance service in other languages than Rust: `guests/guests.toml`.

use super::files::{Groups, Pending, Runner, file_name, text, texts};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table};

/// The guests, and the scenarios that they do not support.
pub(super) struct Guests {
    /// `conformance/guests`.
    folder: PathBuf,
    guests: Vec<Guest>,
    unsupported: Vec<Unsupported>,
}

/// A service in another language.
pub(super) struct Guest {
    pub(super) language: String,
    /// Its folder in `conformance/guests`, which also names its library.
    folder: String,
}

/// Scenarios that guests cannot pass.
struct Unsupported {
    reason: String,
    /// The languages of the guests. `None`: all.
    guests: Option<Vec<String>>,
    scenarios: Vec<String>,
}

impl Guest {
    /// The folder with the reports of the runners that use this guest.
    pub(super) fn reports(&self) -> String {
        format!("guest-{}", self.folder)
    }
}

impl Unsupported {
    fn concerns(&self, guest: &Guest) -> bool {
        let guests = self.guests.as_ref();
        guests.is_none_or(|guests| guests.contains(&guest.language))
    }
}

impl Guests {
    /// Reads `guests.toml` in this folder. Without the file, there are no guests.
    ///
    /// # Errors
    /// The file has an error, or names a scenario that does not exist.
    pub(super) fn read(folder: &Path, groups: &Groups) -> Result<Self, String> {
        let path = folder.join("guests.toml");
        let mut guests = Self {
            folder: folder.to_owned(),
            guests: Vec::new(),
            unsupported: Vec::new(),
        };
        if !path.is_file() {
            return Ok(guests);
        }
        let wrong = |what: String| format!("{}: {what}", path.display());
        let file: DocumentMut = text(&path)?
            .parse()
            .map_err(|error: toml_edit::TomlError| wrong(error.to_string()))?;
        let tables = |key: &str| file.get(key).and_then(Item::as_array_of_tables);
        for table in tables("guest").into_iter().flat_map(ArrayOfTables::iter) {
            guests.guests.push(Guest {
                language: word(table, "language").map_err(&wrong)?,
                folder: word(table, "folder").map_err(&wrong)?,
            });
        }
        for table in tables("unsupported")
            .into_iter()
            .flat_map(ArrayOfTables::iter)
        {
            guests.unsupported.push(Unsupported {
                reason: word(table, "reason").map_err(&wrong)?,
                guests: words(table, "guests").map_err(&wrong)?,
                scenarios: words(table, "scenarios")
                    .map_err(&wrong)?
                    .unwrap_or_default(),
            });
        }
        guests.check(groups).map_err(wrong)?;
        Ok(guests)
    }

    fn check(&self, groups: &Groups) -> Result<(), String> {
        for Unsupported {
            guests,
            scenarios,
            reason,
        } in &self.unsupported
        {
            let is_known = |name: &&String| groups.iter().any(|(_, known)| known.contains(name));
            if let Some(name) = scenarios.iter().find(|name| !is_known(name)) {
                return Err(format!("{reason}: there is no scenario `{name}`"));
            }
            let is_guest =
                |language: &&String| self.guests.iter().any(|it| it.language == **language);
            if let Some(language) = guests.iter().flatten().find(|it| !is_guest(it)) {
                return Err(format!("{reason}: there is no guest in {language}"));
            }
        }
        for guest in &self.guests {
            let mut seen = BTreeSet::new();
            if let Some(name) = self.unsupported_by(guest).find(|name| !seen.insert(*name)) {
                return Err(format!(
                    "`{name}` is unsupported twice for the guest in {}",
                    guest.language
                ));
            }
        }
        Ok(())
    }

    pub(super) fn all(&self) -> &[Guest] {
        &self.guests
    }

    fn unsupported_by<'a>(&'a self, guest: &'a Guest) -> impl Iterator<Item = &'a String> {
        let concerning = self.unsupported.iter().filter(|it| it.concerns(guest));
        concerning.flat_map(|it| &it.scenarios)
    }

    /// Where a scenario is listed that does not pass with this guest.
    pub(super) fn excuse(
        &self,
        guest: &Guest,
        pending: &Pending,
        language: &str,
        scenario: &str,
    ) -> Option<&'static str> {
        if self.unsupported_by(guest).any(|name| name == scenario) {
            return Some("`unsupported` in guests.toml");
        }
        let is_pending = pending.get(language)?.contains(scenario);
        is_pending.then_some("`pending` in languages.toml")
    }

    /// Builds a guest and starts runners with it. They write their reports into `reports`, and their
    /// output into a file next to them: many scenarios fail there as expected.
    ///
    /// # Errors
    /// A command cannot be started, or a file cannot be written.
    pub(super) fn start(
        &self,
        guest: &Guest,
        runners: &[&Runner],
        (target, reports): (&Path, &Path),
        failures: &mut Vec<String>,
    ) -> Result<(), String> {
        let mut build = Command::new(self.folder.join("build.sh"));
        build.arg(&guest.folder);
        if !status(&mut build)? {
            failures.push(format!("the guest in {} cannot be built", guest.language));
            return Ok(());
        }
        let with_path = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(reports).map_err(|error| with_path(reports, error))?;
        let absolute = |path: &Path| path.canonicalize().map_err(|error| with_path(path, error));
        let (target, reports) = (absolute(target)?, absolute(reports)?);
        let library = target
            .join("conformance-guests")
            .join(format!("{}.so", guest.folder));
        for runner in runners {
            for language in &runner.languages {
                let _ = fs::remove_file(reports.join(file_name(language)));
            }
            let log = reports
                .join(file_name(&runner.languages[0]))
                .with_extension("log");
            let file = fs::File::create(&log).map_err(|error| with_path(&log, error))?;
            let errors = file.try_clone().map_err(|error| with_path(&log, error))?;
            let mut command = Command::new(&runner.command[0]);
            command
                .args(&runner.command[1..])
                .env(
                    "CONFORMANCE_SERVICE",
                    format!("thread:{}", library.display()),
                )
                .env("CONFORMANCE_REPORTS", &reports)
                .env("THALWEG_LIBRARY", target.join("debug/libthalweg.so"))
                .stdout(Stdio::from(file))
                .stderr(Stdio::from(errors));
            // The reports are judged, not the status: unsupported scenarios fail.
            status(&mut command)?;
        }
        Ok(())
    }

    /// The section of the page about guests. Empty if there are none.
    pub(super) fn section(&self, groups: &Groups, languages: &[&str], pending: &Pending) -> String {
        if self.guests.is_empty() {
            return String::new();
        }
        let count: usize = groups.iter().map(|(_, names)| names.len()).sum();
        let pending_in = |language: &str, unsupported: &BTreeSet<&String>| {
            let pending = pending.get(language).into_iter().flatten();
            pending.filter(|name| !unsupported.contains(name)).count()
        };
        let row = |name: &str, unsupported: &BTreeSet<&String>| {
            let cells = languages.iter().map(|language| {
                let passed = count - unsupported.len() - pending_in(language, unsupported);
                format!(" {passed} |")
            });
            format!("| {name} |{}\n", cells.collect::<String>())
        };
        let mut rows = row("Rust", &BTreeSet::new());
        for guest in &self.guests {
            rows += &row(&guest.language, &self.unsupported_by(guest).collect());
        }
        let mut section = format!(
            "\n## Services in other languages\n\n\
             The conformance service in each language, used by each host: how many of the {count} scenarios pass. A\n\
             service in another language than Rust is a [guest](guests.md). `make test` runs every guest with one host, and\n\
             `make prove` with all hosts.\n\n\
             | service | {} |\n| --- |{}\n{rows}\n\
             Guests do not support the other scenarios. Each of them runs, too, and an unexpected pass is an error:\n\n\
             | reason | services | scenarios |\n| --- | --- | --- |\n",
            languages.join(" | "),
            " --- |".repeat(languages.len()),
        );
        for Unsupported {
            reason,
            guests,
            scenarios,
        } in &self.unsupported
        {
            let guests = guests
                .as_ref()
                .map_or("all".to_owned(), |guests| guests.join(", "));
            writeln!(
                section,
                "| {reason} | {guests} | {} |",
                scenarios.join("; ")
            )
            .expect("writing to a string succeeds");
        }
        section
    }
}

/// Whether a command has ended well.
fn status(command: &mut Command) -> Result<bool, String> {
    let status = command.status();
    let status = status.map_err(|error| format!("cannot start {command:?}: {error}"))?;
    Ok(status.success())
}

fn word(table: &Table, key: &str) -> Result<String, String> {
    let word = table.get(key).and_then(Item::as_str);
    let word = word.ok_or_else(|| format!("each entry needs the text `{key}`"))?;
    Ok(word.to_owned())
}

fn words(table: &Table, key: &str) -> Result<Option<Vec<String>>, String> {
    match table.get(key) {
        None => Ok(None),
        Some(item) => match texts(item) {
            Some(words) => Ok(Some(words)),
            None => Err(format!("`{key}` must be a list of strings")),
        },
    }
}
