//! The figures in README and docs: written from the committed results, and checked.
//!
//! A page contains marked regions. `thalweg bench report --docs` fills them, and `--check` reports
//! the regions that differ. `crates/bench/docs.toml` describes every table and figure by the rows of
//! the results that it shows. A figure outside a region is an error ([`loose`]).
//!
//! ```text
//! <!-- bench:begin NAME -->        a table, or one of the lists below
//! <!-- bench:end -->
//! <!-- bench:NAME -->222 ns<!-- /bench -->        a figure in a sentence
//! ```
//!
//! The names `workloads`, `withdrawn` and `runs` are lists that need no description.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::catalogue::GROUPS;
use crate::evidence::{At, Evidence, Run, Withdrawn, files_below, is_ours};
use crate::figure::{judged_ratio, metric, quantity, ratio, target, verdict};
use crate::problem::Problem;
use crate::report::{Row, Winner};
use crate::statistics::Ratio;
use crate::workloads::{WORKLOADS, Workload};

const TAKES: &str = "a String takes any text";

/// The contents of `docs.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Docs {
    /// The machines: a short name for selectors, the folder and the words.
    pub machines: BTreeMap<String, Machine>,
    /// Peers that do less than the subject: lower bounds, which no implementation can reach.
    pub bounds: BTreeSet<String>,
    /// The present names of workloads that older files name differently.
    #[serde(default)]
    pub renamed: BTreeMap<String, String>,
    /// Commits that results name, and the commit of the history that they were merged as.
    #[serde(default)]
    pub squashed: BTreeMap<String, String>,
    /// Figures that are not quoted any more.
    pub withdrawn: Vec<Withdrawn>,
    /// Figures in sentences.
    #[serde(default)]
    figures: BTreeMap<String, Figure>,
    tables: BTreeMap<String, Table>,
    /// Figures outside regions that are no results.
    allowed: Vec<Allowed>,
}

/// A machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Its folder below `benchmarks/results`.
    pub folder: String,
    /// Its name in sentences.
    pub title: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    at: String,
    show: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// The table with the same columns and lines, of other rows.
    #[serde(default)]
    like: String,
    /// The heads of the label columns.
    #[serde(default)]
    label: Vec<String>,
    /// The part of the selector that all cells share.
    #[serde(default)]
    at: String,
    #[serde(default)]
    show: String,
    #[serde(default)]
    columns: Vec<Column>,
    #[serde(default)]
    rows: Vec<Line>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    head: String,
    #[serde(default)]
    at: String,
    show: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    label: Vec<String>,
    at: String,
    show: Option<String>,
    /// The heads of the columns in which the lab has no result for this line.
    #[serde(default)]
    without: Vec<String>,
}

/// Text that looks like a result and is none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowed {
    file: String,
    text: Vec<String>,
    why: String,
}

impl Docs {
    /// The descriptions in the repository at `root`.
    ///
    /// # Errors
    /// The file cannot be read or is not valid; the message names the place.
    pub fn load(root: &Path) -> Result<Self, Problem> {
        descriptions(root, "crates/bench/docs.toml")
    }

    /// The committed results, or these files if any are named.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn evidence(&self, root: &Path, from: &[PathBuf]) -> Result<Evidence, Problem> {
        let mut files = from.to_vec();
        if files.is_empty() {
            files_below(&root.join("benchmarks/results"), &mut files)?;
        }
        Evidence::of_files(root, &files, &self.renamed, &self.withdrawn)
    }

    /// Replaces the short name of a machine by its folder.
    fn at(&self, text: &str) -> At {
        let mut at = At::parse(text);
        if let Some(machine) = at.machine.as_ref().and_then(|name| self.machines.get(name)) {
            at.machine = Some(machine.folder.clone());
        }
        at
    }

    /// The name of the machine of this folder in sentences.
    #[must_use]
    pub fn title<'a>(&'a self, folder: &'a str) -> &'a str {
        let known = self.machines.values().find(|it| it.folder == folder);
        known.map_or(folder, |machine| &machine.title)
    }
}

/// The content of a TOML file in the repository at `root`.
///
/// # Errors
/// The file cannot be read or is not valid; the message names the place.
pub fn descriptions<T: DeserializeOwned>(root: &Path, file: &str) -> Result<T, Problem> {
    let text = read(&root.join(file))?;
    toml_edit::de::from_str(&text).map_err(|error| Problem::NotReady(format!("{file}: {error}")))
}

/// The pages: README.md, and every page below docs.
///
/// # Errors
/// A folder cannot be read.
pub fn pages(root: &Path) -> Result<Vec<PathBuf>, Problem> {
    let mut pages = vec![root.join("README.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        let problem = || Problem::io(folder.display().to_string());
        for entry in fs::read_dir(&folder).map_err(problem())? {
            let path = entry.map_err(problem())?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

/// Fills the regions of all pages below `root`, and returns the pages that change, with their new
/// text.
///
/// # Errors
/// A page cannot be read, a region has no end or no description, or its row does not exist.
pub fn fill(
    root: &Path,
    docs: &Docs,
    evidence: &Evidence,
) -> Result<Vec<(PathBuf, String)>, Problem> {
    let mut changed = Vec::new();
    for page in pages(root)? {
        let text = read(&page)?;
        let name = page.strip_prefix(root).unwrap_or(&page);
        let up = "../".repeat(name.components().count() - 1);
        let problem = |why| Problem::NotReady(format!("{}: {why}", name.display()));
        let filled = filled(&text, docs, evidence, &up).map_err(problem)?;
        if filled != text {
            changed.push((page, filled));
        }
    }
    Ok(changed)
}

fn read(page: &Path) -> Result<String, Problem> {
    fs::read_to_string(page).map_err(Problem::io(page.display().to_string()))
}

const BEGIN: &str = "<!-- bench:";
const END: &str = "<!-- bench:end -->";
const SPAN_END: &str = "<!-- /bench -->";

/// The parts of a page: text outside regions, and regions with their name and content.
enum Part<'a> {
    Outside(&'a str),
    /// The region's opening mark, name, content and closing mark.
    Region(&'a str, &'a str, &'a str, &'a str),
}

fn parts(text: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(BEGIN) {
        parts.push(Part::Outside(&rest[..start]));
        rest = &rest[start..];
        let length = rest.find(" -->").ok_or("a mark without an end")? + " -->".len();
        let (mark, after) = rest.split_at(length);
        let name = mark[BEGIN.len()..length - " -->".len()].trim();
        let (name, end) = match name.strip_prefix("begin ") {
            Some(name) => (name, END),
            None => (name, SPAN_END),
        };
        let until = after
            .find(end)
            .ok_or_else(|| format!("the region `{name}` has no `{end}`"))?;
        parts.push(Part::Region(mark, name, &after[..until], end));
        rest = &after[until + end.len()..];
    }
    parts.push(Part::Outside(rest));
    Ok(parts)
}

/// `text` with its regions filled. `up` leads from the page to the root.
fn filled(text: &str, docs: &Docs, evidence: &Evidence, up: &str) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    for part in parts(text)? {
        match part {
            Part::Outside(text) => filled += text,
            Part::Region(mark, name, _, end) => {
                let content = match end {
                    SPAN_END => span(name, docs, evidence),
                    _ => region(name, docs, evidence, up).map(|text| format!("\n{text}")),
                };
                let content = content.map_err(|why| format!("the region `{name}`: {why}"))?;
                write!(filled, "{mark}{content}{end}").expect(TAKES);
            }
        }
    }
    Ok(filled)
}

fn span(name: &str, docs: &Docs, evidence: &Evidence) -> Result<String, String> {
    let figure = docs
        .figures
        .get(name)
        .ok_or("docs.toml has no such figure")?;
    let at = docs.at(&figure.at);
    let found = evidence
        .rows(&at)
        .ok_or_else(|| format!("no result has {at}"))?;
    shown(&figure.show, found.best()?)
}

fn region(name: &str, docs: &Docs, evidence: &Evidence, up: &str) -> Result<String, String> {
    match name {
        "workloads" => Ok(workloads(docs, evidence)),
        "withdrawn" => Ok(withdrawn(docs)),
        "runs" => Ok(runs(docs, evidence, up)),
        _ => match docs.tables.get(name) {
            Some(table) => match docs.tables.get(&table.like) {
                Some(other) => other.text(&table.at, docs, evidence, up),
                None => table.text(&table.at, docs, evidence, up),
            },
            None => Err("docs.toml has no such table".to_owned()),
        },
    }
}

impl Table {
    fn text(&self, at: &str, docs: &Docs, evidence: &Evidence, up: &str) -> Result<String, String> {
        let heads = self.columns.iter().map(|column| column.head.as_str());
        let heads: Vec<&str> = self.label.iter().map(String::as_str).chain(heads).collect();
        let mut text = String::new();
        line(&mut text, &heads);
        line(&mut text, &vec!["---"; heads.len()]);
        let mut sources = BTreeSet::new();
        for row in &self.rows {
            let mut cells = row.label.clone();
            cells.resize(self.label.len(), String::new());
            for column in &self.columns {
                if row.without.contains(&column.head) {
                    cells.push(String::new());
                    continue;
                }
                let at = docs.at(&format!("{at}, {}, {}", row.at, column.at));
                let found = evidence
                    .rows(&at)
                    .ok_or_else(|| format!("no result has {at} on {:?}", at.machine))?;
                let show = column
                    .show
                    .as_ref()
                    .or(row.show.as_ref())
                    .unwrap_or(&self.show);
                let best = found.best().map_err(|why| format!("{at}: {why}"))?;
                cells.push(shown(show, best)?);
                sources.insert(source(docs, found.run, up));
            }
            let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
            line(&mut text, &cells);
        }
        let sources: Vec<String> = sources.into_iter().collect();
        writeln!(text, "\nFrom {}.", sources.join("; ")).expect(TAKES);
        Ok(text)
    }
}

/// `[Xeon, 2026-11-22, 4d7e908](file)`.
fn source(docs: &Docs, run: &Run, up: &str) -> String {
    let (title, day, commit) = (docs.title(&run.machine), run.day(), run.commit());
    format!("[{title}, {day}, {commit}]({up}{})", run.path.display())
}

fn line(text: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    writeln!(text, "| {} |", cells.join(" | ")).expect(TAKES);
}

/// `show` with its placeholders replaced by the figures of `row`: `{ratio}` (with the target if it
/// is not met), `{of}` (the ratio and the peer's name), `{time}`, `{peer}`, `{peer_time}`,
/// `{target}`, `{verdict}`, and any metric by its name.
fn shown(show: &str, row: &Row) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = show;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or("a { without a }")?;
        text += before;
        text += &placeholder(name, row)?;
        rest = after;
    }
    Ok(text + rest)
}

fn placeholder(name: &str, row: &Row) -> Result<String, String> {
    let peer = || {
        row.peer
            .clone()
            .ok_or_else(|| "there is no peer".to_owned())
    };
    Ok(match name {
        "ratio" | "of" if row.ratio.is_none() => return Err("there is no ratio".to_owned()),
        "ratio" => judged_ratio(row, None),
        "of" => judged_ratio(row, Some(&peer()?)),
        "time" => quantity(row.subject_median, &row.unit),
        "peer" => peer()?,
        "peer_time" => {
            let median = row.peer_median.ok_or("there is no peer")?;
            quantity(median, &row.unit)
        }
        "target" => target(row).unwrap_or_default(),
        "verdict" => verdict(row).unwrap_or_default().to_owned(),
        name => match row.metrics.get(name) {
            Some(value) => metric(name, *value),
            None => return Err(format!("the row has no metric `{name}`")),
        },
    })
}

fn withdrawn(docs: &Docs) -> String {
    let mut text = "| figure | reason |\n| --- | --- |\n".to_owned();
    for entry in &docs.withdrawn {
        line(&mut text, &[&entry.what, &entry.why]);
    }
    text
}

fn runs(docs: &Docs, evidence: &Evidence, up: &str) -> String {
    let mut text =
        "| machine | processor | started | commit | load before | file |\n| --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
    for run in &evidence.runs {
        let merged_as = docs.squashed.get(&run.report.commit);
        let merged_as = merged_as.map_or_else(String::new, |commit| {
            format!(", merged as {}", &commit[..7])
        });
        let host = &run.report.host;
        let file = run.path.file_name().unwrap_or_default().to_string_lossy();
        let cells = [
            docs.title(&run.machine).to_owned(),
            format!(
                "{}, {} processors, {}",
                host.cpu, host.processors, host.uname
            ),
            run.report.started.replace('T', " ").replace('Z', ""),
            run.commit() + &merged_as,
            host.load.clone(),
            format!("[{file}]({up}{})", run.path.display()),
        ];
        line(&mut text, &cells.each_ref().map(String::as_str));
    }
    text
}

/// A section for each workload: its purpose, its peers, and the result on each machine.
fn workloads(docs: &Docs, evidence: &Evidence) -> String {
    let mut text = String::new();
    for group in GROUPS {
        let of_group = WORKLOADS.iter().filter(|it| it.group == group.name);
        for (number, workload) in of_group.enumerate() {
            if number == 0 {
                write!(text, "\n### Group `{}`: {}\n", group.name, group.what).expect(TAKES);
            }
            text += &section(workload, docs, evidence);
        }
    }
    text.trim_start().to_owned()
}

fn section(workload: &Workload, docs: &Docs, evidence: &Evidence) -> String {
    let peers: Vec<String> = workload
        .peers
        .iter()
        .map(|peer| format!("`{peer}`"))
        .collect();
    let against = match peers.as_slice() {
        [] => "It has no peer.".to_owned(),
        peers => format!("Peers: {}.", peers.join(", ")),
    };
    let mut text = format!(
        "\n#### `{}`\n\n{} {against}\n\n",
        workload.name, workload.what
    );
    let mut measured = false;
    for folder in evidence.machines() {
        let sentences = result(workload.name, folder, docs, evidence);
        if !sentences.is_empty() {
            measured = true;
            writeln!(text, "- {}: {sentences}", docs.title(folder)).expect(TAKES);
        }
    }
    if !measured {
        text += "Not measured yet.\n";
    }
    text
}

/// The result of a workload on one machine. Each point counts once, by its best peer.
fn result(workload: &str, folder: &str, docs: &Docs, evidence: &Evidence) -> String {
    let at = At::parse(&format!("{workload}, on={folder}"));
    // The newest row of each point and peer.
    let mut newest: BTreeMap<_, &Row> = BTreeMap::new();
    let found = evidence.every(&at);
    for row in found.iter().flat_map(|found| &found.rows) {
        newest
            .entry((&row.params, &row.subject, &row.peer))
            .or_insert(row);
    }
    let mut points: BTreeMap<_, &Row> = BTreeMap::new();
    let mut verdicts = Vec::new();
    let mut alone = Vec::new();
    let mut bounds: BTreeMap<&String, &Row> = BTreeMap::new();
    for ((params, subject, peer), row) in newest {
        verdicts.extend(verdict(row));
        let larger =
            |ratio: Ratio, than: &Row| than.ratio.is_none_or(|it| it.median < ratio.median);
        match (row.ratio, peer) {
            (Some(ratio), Some(peer)) if docs.bounds.contains(peer) => {
                let worst = bounds.entry(peer).or_insert(row);
                if larger(ratio, worst) {
                    *worst = row;
                }
            }
            (Some(_), Some(peer)) if is_ours(peer) => {}
            (Some(ratio), _) => {
                let best = points.entry((params, subject)).or_insert(row);
                if larger(ratio, best) {
                    *best = row;
                }
            }
            (None, _) => alone.push(row),
        }
    }
    let all: Vec<&Row> = points.values().copied().collect();
    let mut sentences = Vec::new();
    if !all.is_empty() {
        sentences.push(compared(&all));
    } else if let [row] = alone.as_slice() {
        sentences.push(format!("{}.", quantity(row.subject_median, &row.unit)));
    }
    if !bounds.is_empty() {
        let of =
            |(name, row): (&&String, &&Row)| format!("`{name}` {}", ratio(row).replace(" =", ""));
        let worst: Vec<String> = bounds.iter().map(of).collect();
        sentences.push(format!(
            "At most, of the lower bounds: {}.",
            worst.join(", ")
        ));
    }
    if !verdicts.is_empty() {
        let words = ["met", "missed", "undecided", "not judged"];
        let counts = words.map(|word| (verdicts.iter().filter(|it| **it == word).count(), word));
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        sentences.push(format!("Targets: {}.", counts.join(", ")));
    }
    if sentences.is_empty() && !alone.is_empty() {
        sentences.push(format!(
            "{} rows without a peer and without a target.",
            alone.len()
        ));
    }
    sentences.join(" ")
}

/// The winner and the margin, and the points at which Thalweg loses.
fn compared(points: &[&Row]) -> String {
    let median = |row: &&&Row| row.ratio.map_or(1.0, |ratio| ratio.median);
    let by = |a: &&&Row, b: &&&Row| median(a).total_cmp(&median(b));
    let (Some(best), Some(worst)) = (points.iter().min_by(by), points.iter().max_by(by)) else {
        return String::new();
    };
    let point = |row: &Row| {
        let differs = |name: &String, value: &String| {
            points
                .iter()
                .any(|other| other.params.get(name) != Some(value))
        };
        let params = row
            .params
            .iter()
            .filter(|(name, value)| differs(name, value));
        let params: Vec<String> = params
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let params = if params.is_empty() {
            String::new()
        } else {
            format!(" at `{}`", params.join(" "))
        };
        let peer = row.peer.as_deref().unwrap_or_default();
        format!("{} of `{peer}`{params}", ratio(row).replace(" =", ""))
    };
    if let [only] = points {
        let won = match only.winner {
            Some(Winner::Subject) => "faster",
            Some(Winner::Peer) => "slower",
            _ => "even",
        };
        return format!("{won}, {}.", point(only));
    }
    let count = |winner| {
        points
            .iter()
            .filter(|row| row.winner == Some(winner))
            .count()
    };
    format!(
        "faster than the best peer at {} of {} points, even at {}, slower at {}; best {}, worst {}.",
        count(Winner::Subject),
        points.len(),
        count(Winner::Even),
        count(Winner::Peer),
        point(best),
        point(worst)
    )
}

/// What a page of internals with figures of experiments must say about them.
const EXPERIMENTS: &str = "no committed results; quote [benchmarks.md]";

/// Figures outside regions that look like results and are not allowed: `file:line: the figure`. The
/// pages of internals may have figures of experiments if they say so (`EXPERIMENTS`).
///
/// # Errors
/// A page cannot be read, or an entry of the allow list has no use.
pub fn loose(root: &Path, docs: &Docs) -> Result<Vec<String>, Problem> {
    let mut found = Vec::new();
    let mut used = BTreeSet::new();
    for page in pages(root)? {
        let name = page
            .strip_prefix(root)
            .unwrap_or(&page)
            .to_string_lossy()
            .into_owned();
        if name == "docs/claims.md" {
            continue;
        }
        let text = read(&page)?;
        let parts = parts(&text).map_err(|why| Problem::NotReady(format!("{name}: {why}")))?;
        if name.starts_with("docs/internals/") && text.contains(EXPERIMENTS) {
            continue;
        }
        let mut number = 1;
        for part in parts {
            match part {
                Part::Region(mark, _, content, _) => {
                    number += mark.matches('\n').count() + content.matches('\n').count();
                }
                Part::Outside(text) => {
                    for (place, line) in text.split('\n').enumerate() {
                        let figures = figures(line);
                        let allowed = docs.allowed.iter().filter(|entry| entry.file == name);
                        let allowed = allowed.flat_map(|entry| &entry.text);
                        let allowed: Vec<&String> = allowed
                            .filter(|text| line.contains(text.as_str()))
                            .collect();
                        used.extend(allowed.iter().map(|text| (name.clone(), (*text).clone())));
                        if !figures.is_empty() && allowed.is_empty() {
                            found.push(format!(
                                "{name}:{}: {}",
                                number + place,
                                figures.join(", ")
                            ));
                        }
                    }
                    number += text.matches('\n').count();
                }
            }
        }
    }
    for entry in &docs.allowed {
        for text in &entry.text {
            if !used.contains(&(entry.file.clone(), text.clone())) {
                found.push(format!(
                    "docs.toml allows `{text}` in {}, which has no such line ({})",
                    entry.file, entry.why
                ));
            }
        }
    }
    Ok(found)
}

/// The parts of `line` that look like results: a number with a unit of time, a rate, a multiple, or
/// a ratio with an interval.
fn figures(line: &str) -> Vec<String> {
    const UNITS: [&str; 14] = [
        "ns",
        "us",
        "ms",
        "x",
        "M/s",
        "k/s",
        "op/s",
        "calls/s",
        "MiB/s",
        "GiB/s",
        "M calls/s",
        "M op/s",
        "M messages/s",
        "times as long",
    ];
    let mut found = Vec::new();
    let bytes = line.as_bytes();
    let mut start = 0;
    while start < bytes.len() {
        let before = start.checked_sub(1).map(|place| bytes[place]);
        let is_word = before.is_some_and(|b| b.is_ascii_alphanumeric() || b"_.=-/\"'".contains(&b));
        if !bytes[start].is_ascii_digit() || is_word {
            start += 1;
            continue;
        }
        let number = bytes[start..].iter();
        let length = number
            .take_while(|b| b.is_ascii_digit() || b".,".contains(b))
            .count();
        let rest = &line[start + length..];
        let unit = rest.strip_prefix(' ').unwrap_or(rest);
        let ends = |unit_length: usize| {
            let after = unit.as_bytes().get(unit_length);
            after.is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'_')
        };
        let with_unit = UNITS
            .iter()
            .filter(|it| unit.starts_with(**it) && ends(it.len()))
            .max_by_key(|it| it.len());
        let interval = rest
            .strip_prefix(" (")
            .and_then(|inside| inside.split_once(')'))
            .map(|(inside, _)| inside);
        let is_interval = interval.is_some_and(|inside| {
            inside
                .split_once(" to ")
                .or_else(|| inside.split_once('-'))
                .is_some_and(|(low, high)| {
                    low.parse::<f64>().is_ok() && high.parse::<f64>().is_ok()
                })
        });
        if let Some(unit) = with_unit {
            found.push(format!("{} {unit}", &line[start..start + length]));
        } else if is_interval {
            found.push(format!(
                "{} ({})",
                &line[start..start + length],
                interval.unwrap_or_default()
            ));
        }
        start += length;
    }
    found
}

/// Unused tables and figures of `docs.toml`: descriptions that no page shows.
///
/// # Errors
/// A page cannot be read.
pub fn unused(root: &Path, docs: &Docs) -> Result<Vec<String>, Problem> {
    let mut names: BTreeSet<&str> = docs
        .tables
        .keys()
        .chain(docs.figures.keys())
        .map(String::as_str)
        .collect();
    for page in pages(root)? {
        let text = read(&page)?;
        for part in parts(&text).map_err(Problem::NotReady)? {
            if let Part::Region(_, name, ..) = part {
                names.remove(name);
            }
        }
    }
    let unused = |name: &str| format!("docs.toml describes `{name}`, which no page shows");
    Ok(names.into_iter().map(unused).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    fn row(peer: &str, params: &[(&str, &str)], (low, median, high): (f64, f64, f64)) -> Row {
        let sides = (("thalweg", vec![222.0; 5]), Some((peer, vec![100.0; 5])));
        let mut row = Row::new(("mpsc", "queue"), params, "ns", sides.0, sides.1);
        row.ratio = Some(Ratio { low, median, high });
        row.winner = Some(match (low > 1.0, high < 1.0) {
            (true, _) => Winner::Peer,
            (_, true) => Winner::Subject,
            _ => Winner::Even,
        });
        row
    }

    fn evidence(results: Vec<Row>) -> Evidence {
        let report = crate::report::Report {
            results,
            ..sample()
        };
        let path = PathBuf::from("benchmarks/results/m/d/x.json");
        Evidence::new(
            vec![Run {
                machine: "m".to_owned(),
                path,
                report,
            }],
            &[],
        )
    }

    fn docs(tables: &str) -> Docs {
        let text = format!(
            "bounds = [\"raw\"]\nwithdrawn = []\nallowed = []\n[machines.a]\nfolder = \"m\"\ntitle = \"A\"\n{tables}"
        );
        toml_edit::de::from_str(&text).unwrap()
    }

    #[test]
    fn region_and_figure_are_filled_and_the_rest_stays() {
        let docs = docs(
            r#"
            [figures.spawn]
            at = "mpsc, producers=4"
            show = "{time}"
            [tables.t]
            label = ["x"]
            at = "on=a, mpsc"
            columns = [{ head = "ratio", show = "{of}" }]
            rows = [{ label = ["four"], at = "producers=4" }]
            "#,
        );
        let params = [("producers", "4")];
        let rows = vec![
            row("std", &params, (0.2, 0.3, 0.4)),
            row("vyukov", &params, (1.1, 1.15, 1.2)),
        ];
        let page = "a <!-- bench:spawn -->9<!-- /bench --> b\n<!-- bench:begin t -->\nold\n<!-- bench:end -->\nc\n";
        let filled = filled(page, &docs, &evidence(rows.clone()), "../").unwrap();
        assert_eq!(
            filled,
            "a <!-- bench:spawn -->222 ns<!-- /bench --> b\n<!-- bench:begin t -->\n| x | ratio |\n| --- | --- |\n\
             | four | 1.15 (1.10 to 1.20) of vyukov |\n\nFrom [A, 2026-01-02, 0123abc](../benchmarks/results/m/d/x.json).\n\
             <!-- bench:end -->\nc\n"
        );
        for wrong in [
            "<!-- bench:begin t -->",
            "<!-- bench:begin no -->\n<!-- bench:end -->",
            "<!-- bench:no --><!-- /bench -->",
        ] {
            assert!(
                super::filled(wrong, &docs, &evidence(rows.clone()), "").is_err(),
                "{wrong}"
            );
        }
        assert!(super::filled(page, &docs, &evidence(Vec::new()), "").is_err());
    }

    #[test]
    fn result_of_a_workload_counts_each_point_by_its_best_peer_and_names_the_loss() {
        let rows = vec![
            row("std", &[("producers", "4")], (0.2, 0.3, 0.4)),
            row("vyukov", &[("producers", "4")], (1.1, 1.15, 1.2)),
            row("std", &[("producers", "8")], (0.4, 0.5, 0.6)),
            row("raw", &[("producers", "8")], (8.0, 9.0, 10.0)),
        ];
        let text = result("mpsc", "m", &docs("[tables]"), &evidence(rows));
        assert_eq!(
            text,
            "faster than the best peer at 1 of 2 points, even at 0, slower at 1; \
             best **0.50 (0.40 to 0.60)** of `std` at `producers=8`, \
             worst 1.15 (1.10 to 1.20) of `vyukov` at `producers=4`. \
             At most, of the lower bounds: `raw` 9.00 (8.00 to 10.0)."
        );
        assert_eq!(
            result("mpmc", "m", &docs("[tables]"), &evidence(Vec::new())),
            ""
        );
    }

    #[test]
    fn figures_are_found_in_a_line() {
        for (line, found) in [
            ("takes 222 ns and 1.5us", vec!["222 ns", "1.5 us"]),
            (
                "0.31 (0.29 to 0.33) of it, 0.756 (0.740-0.844)",
                vec!["0.31 (0.29 to 0.33)", "0.756 (0.740-0.844)"],
            ),
            (
                "is 4.7 times as long, 5 M calls/s, 3x",
                vec!["4.7 times as long", "5 M calls/s", "3 x"],
            ),
            (
                "version 0.4.1 (2026 to now), `p50`, 10,000 events, 64 bytes, x86, THALWEG=100us",
                vec![],
            ),
        ] {
            assert_eq!(figures(line), found, "{line}");
        }
    }
}
