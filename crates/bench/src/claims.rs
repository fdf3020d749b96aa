//! The claims: statements in the documents of five predecessors, compared with the committed
//! results, as `docs/claims.md`.
//!
//! `crates/bench/claims.toml` has one entry per claim (`Claim`): what the project says, how its
//! figure was made, the figures that the same method gives here, and the figures of a realistic
//! counterpart. A figure is a row of the results and a limit (`Figure`). The verdict follows from
//! the limits: a claim holds if both sides meet theirs, and is confounded if only the method does.
//! Each machine is judged by its own results; figures of different processors are never merged.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::baseline;
use crate::docs::{self, Docs};
use crate::evidence::{At, Evidence, Found, Run};
use crate::figure::{digits, number, quantity};
use crate::problem::Problem;
use crate::report::Row;
use crate::result_file;

const TAKES: &str = "a String takes any text";

/// The contents of `claims.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    claim: Vec<Claim>,
}

/// A statement in another project's documents, and how it is tested here.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    id: String,
    /// The project and its document.
    whose: String,
    /// The claim, in our words.
    says: String,
    /// How the original figure was made.
    made: String,
    /// An assumption of ours about a point that the document leaves open.
    #[serde(default)]
    inferred: String,
    /// The arguments of `thalweg bench` that measure the rows.
    #[serde(default)]
    run: String,
    /// The meaning of the verdicts.
    rule: String,
    /// The figures by the original's method.
    #[serde(default)]
    theirs: Vec<Figure>,
    /// The figures of the realistic counterpart.
    #[serde(default)]
    twin: Vec<Figure>,
    /// If these all meet their limits, the claim is confounded whatever the others show.
    #[serde(default)]
    confounded: Vec<Figure>,
    /// The verdict if only the original's method meets its limits, instead of "confounded".
    #[serde(default)]
    only_theirs: String,
    /// The number of processors below which the claim cannot be judged.
    #[serde(default)]
    processors: usize,
    /// The reason why the claim has no figures yet.
    #[serde(default)]
    pending: String,
}

/// A figure of a row, and its limit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    /// The selector of the row; empty for a statement without a measurement.
    #[serde(default)]
    at: String,
    /// Whose median: `ours`, `best` (of all sides), or the fastest of these sides: `rtrb|disruptor`.
    #[serde(default = "ours")]
    who: String,
    /// `time`, `per_s`, `median` (in the row's unit), `ratio`, `spread` (the slowest of all rows over
    /// the fastest), `mean` (of all rows), or a metric. Without a row: `none`, which meets any limit,
    /// or `open`, which leaves the claim undecided.
    take: String,
    /// A factor: 2 if a message counts as two operations.
    #[serde(default = "one")]
    times: f64,
    /// Divides by the same figure of this row.
    #[serde(default)]
    over: String,
    /// Divides by the median of this side.
    #[serde(default)]
    over_who: String,
    most: Option<f64>,
    least: Option<f64>,
    /// The shortest run that can confirm the claim, in seconds.
    #[serde(default)]
    seconds: f64,
    /// The text, with `{value}`, `{change}` (in percent), `{who}`, `{all}` (every side) or `{runs}`
    /// (the value of every run).
    say: String,
}

fn ours() -> String {
    "ours".to_owned()
}

fn one() -> f64 {
    1.0
}

/// Why a claim has no finding on a machine.
#[derive(Clone, Debug, PartialEq)]
enum Gap {
    /// A row is missing.
    Missing(String),
    /// The longest run is too short to confirm the claim.
    TooShort(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    Yes,
    Open,
    No,
}

/// What a claim's figures say on one machine.
struct Judged {
    machine: String,
    finding: Result<Finding, Gap>,
}

/// The result of a claim on one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    theirs: String,
    twin: String,
    verdict: String,
}

/// The path of the page and its text, from these result files, or from the committed ones if none is
/// named.
///
/// # Errors
/// A file cannot be read, or is not a result file.
pub fn page(root: &Path, from: &[PathBuf]) -> Result<(PathBuf, String), Problem> {
    let docs = Docs::load(root)?;
    let evidence = docs.evidence(root, from)?;
    let claims = docs::descriptions(root, "crates/bench/claims.toml")?;
    let text = markdown(&claims, &docs, evidence);
    Ok((root.join("docs/claims.md"), text))
}

/// Writes the page.
///
/// # Errors
/// As [`page`], or the page cannot be written.
pub fn write(root: &Path, from: &[PathBuf]) -> Result<PathBuf, Problem> {
    let (file, text) = page(root, from)?;
    result_file::write(&file, &text)?;
    Ok(file)
}

fn markdown(claims: &Claims, docs: &Docs, mut evidence: Evidence) -> String {
    let refused = |run: &Run| baseline::refusal(&run.report).is_some();
    let left_out = evidence.runs.iter().filter(|run| refused(run)).count();
    evidence.runs.retain(|run| !refused(run));
    let mut text = HEAD.to_owned();
    if left_out > 0 {
        write!(
            text,
            "\n{left_out} runs are left out: quick runs and debug builds.\n"
        )
        .expect(TAKES);
    }
    let judged: Vec<(&Claim, Vec<Judged>)> = claims
        .claim
        .iter()
        .map(|claim| (claim, findings(claim, docs, &evidence)))
        .collect();
    text += "\n## Summary\n\n| claim | project | verdict |\n| --- | --- | --- |\n";
    for (claim, findings) in &judged {
        let project = claim.whose.split(',').next().unwrap_or_default();
        let id = format!("[{0}](#{1})", claim.id, claim.id.replace('.', ""));
        line(&mut text, &[&id, project, &summary(claim, findings)]);
    }
    text += "\n## Each claim\n";
    for (claim, findings) in &judged {
        text += &section(claim, findings);
    }
    text
}

const HEAD: &str = "# Claims of the predecessors

This page compares what the documents of five predecessors claim with what this lab measured.
`thalweg bench report --claims` writes it from `crates/bench/claims.toml` and the committed results.

The predecessors' programs do not run here. What runs is the method that their figures were made
with: the same loop and the same counting, with Thalweg and its peers in it. A verdict is therefore
about the *figure and its method*, not about the predecessor's code: can the figure be reached this
way, and does it show what it is quoted for? A realistic counterpart measures what the claim says.
Each machine is judged by its own results. Where a document does not say something that we needed,
the claim has a line \"inferred\".

| verdict | meaning |
| --- | --- |
| holds | the method reaches the figure, and the counterpart confirms what it is quoted for |
| confounded | the method reaches the figure, but for another reason than the one it is quoted for |
| does not hold | not even the method reaches the figure |
| undecided | the interval contains the limit |
| not testable here | the measurements of this machine cannot decide it |
| not measured yet | no committed result has the rows |
";

fn line(text: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    writeln!(text, "| {} |", cells.join(" | ")).expect(TAKES);
}

fn findings(claim: &Claim, docs: &Docs, evidence: &Evidence) -> Vec<Judged> {
    let mut found = Vec::new();
    let mut missing = Gap::Missing(claim.pending.clone());
    for machine in evidence.machines() {
        if !claim.pending.is_empty() {
            break;
        }
        match claim.judge(evidence, machine) {
            Err(Gap::Missing(what)) => missing = Gap::Missing(what),
            finding => found.push(Judged {
                machine: docs.title(machine).to_owned(),
                finding,
            }),
        }
    }
    if found.is_empty() {
        found.push(Judged {
            machine: String::new(),
            finding: Err(missing),
        });
    }
    found
}

fn verdict(finding: &Result<Finding, Gap>) -> String {
    match finding {
        Ok(finding) => finding.verdict.clone(),
        Err(Gap::Missing(_)) => "not measured yet".to_owned(),
        Err(Gap::TooShort(why)) => format!("not testable here: {why}"),
    }
}

fn summary(claim: &Claim, findings: &[Judged]) -> String {
    if !claim.pending.is_empty() {
        return "not measured yet".to_owned();
    }
    let of = |Judged { machine, finding }: &Judged| match finding {
        Ok(_) => format!("**{}** ({machine})", verdict(finding)),
        Err(_) => verdict(finding),
    };
    findings.iter().map(of).collect::<Vec<_>>().join("; ")
}

fn section(claim: &Claim, findings: &[Judged]) -> String {
    let mut text = format!("\n### {}\n\n{}\n\n", claim.id, claim.says);
    let command = match claim.run.as_str() {
        "" => String::new(),
        run => format!("`thalweg bench {run}`"),
    };
    for (what, value) in [
        ("source", claim.whose.as_str()),
        ("how the figure was made", &claim.made),
        ("inferred", &claim.inferred),
        ("rule", &claim.rule),
        ("measure it", &command),
    ] {
        if !value.is_empty() {
            writeln!(text, "- {what}: {value}").expect(TAKES);
        }
    }
    if let [
        Judged {
            finding: Err(Gap::Missing(what)),
            ..
        },
    ] = findings
    {
        write!(text, "\nNot measured yet: {what}\n").expect(TAKES);
        return text;
    }
    text += "\n| machine | by their method | realistic counterpart | verdict |\n| --- | --- | --- | --- |\n";
    for Judged { machine, finding } in findings {
        let (theirs, twin) = match finding {
            Ok(finding) => (finding.theirs.as_str(), finding.twin.as_str()),
            Err(_) => ("", ""),
        };
        line(&mut text, &[machine, theirs, twin, &verdict(finding)]);
    }
    text
}

impl Claim {
    fn judge(&self, evidence: &Evidence, machine: &str) -> Result<Finding, Gap> {
        let (theirs, by_theirs) = self.side(&self.theirs, evidence, machine)?;
        let (twin, by_twin) = self.side(&self.twin, evidence, machine)?;
        let too_few = (self.processors > 0)
            .then(|| processors(evidence, machine))
            .filter(|processors| *processors < self.processors);
        let is_confounded = !self.confounded.is_empty()
            && self.side(&self.confounded, evidence, machine)?.1 == Answer::Yes;
        let verdict = match (by_theirs, by_twin, too_few) {
            _ if is_confounded => "confounded".to_owned(),
            (_, _, Some(few)) => format!("not testable here: {few} processors"),
            (Answer::No, _, _) => "does not hold".to_owned(),
            (Answer::Yes, Answer::Yes, _) => "holds".to_owned(),
            (Answer::Yes, Answer::No, _) if !self.only_theirs.is_empty() => {
                self.only_theirs.clone()
            }
            (Answer::Yes, Answer::No, _) => "confounded".to_owned(),
            _ => "undecided".to_owned(),
        };
        Ok(Finding {
            theirs,
            twin,
            verdict,
        })
    }

    /// The texts of these figures, and whether all of them meet their limits.
    fn side(
        &self,
        figures: &[Figure],
        evidence: &Evidence,
        machine: &str,
    ) -> Result<(String, Answer), Gap> {
        let mut texts = Vec::new();
        let mut answer = Answer::Yes;
        for figure in figures {
            let (text, of_figure) = figure.judge(evidence, machine)?;
            texts.push(text);
            answer = answer.max(of_figure);
        }
        Ok((texts.join("; "), answer))
    }
}

/// The number of processors that every run on this machine was allowed to use.
fn processors(evidence: &Evidence, machine: &str) -> usize {
    let of_machine = evidence.runs.iter().filter(|run| run.machine == machine);
    let counts = of_machine.map(count);
    counts.min().unwrap_or(0)
}

/// The number of processors in an affinity such as `0-3,7`.
fn count(run: &Run) -> usize {
    let number = |text: &str| text.trim().parse::<usize>().ok();
    let of = |part: &str| match part.split_once('-') {
        Some((first, last)) => Some(number(last)?.checked_sub(number(first)?)? + 1),
        None => number(part).map(|_| 1),
    };
    run.report.host.affinity.split(',').filter_map(of).sum()
}

/// The value of a figure and the ends of its interval.
#[derive(Clone, Copy, Debug)]
struct Value {
    low: f64,
    median: f64,
    high: f64,
}

impl Value {
    fn exact(value: f64) -> Self {
        Self {
            low: value,
            median: value,
            high: value,
        }
    }

    fn over(self, other: Self) -> Self {
        Self {
            low: self.low / other.high,
            median: self.median / other.median,
            high: self.high / other.low,
        }
    }
}

impl Figure {
    fn judge(&self, evidence: &Evidence, machine: &str) -> Result<(String, Answer), Gap> {
        if self.at.is_empty() {
            let answer = if self.take == "open" {
                Answer::Open
            } else {
                Answer::Yes
            };
            return Ok((self.say.clone(), answer));
        }
        let at = At::parse(&self.at).on(machine);
        let found = evidence.every(&at);
        let newest = if self.seconds > 0.0 {
            let seconds = |found: &&Found<'_>| found.rows[0].metrics.get("seconds").copied();
            found
                .iter()
                .max_by(|a, b| seconds(a).partial_cmp(&seconds(b)).expect("no NaN"))
        } else {
            found.first()
        };
        let newest = newest.ok_or_else(|| Gap::Missing(format!("no result has {at}.")))?;
        let mut value = self.value(newest, evidence, machine)?;
        let all: Vec<Value> = found
            .iter()
            .filter_map(|found| self.value(found, evidence, machine).ok())
            .collect();
        if self.say.contains("{runs}") {
            // All runs must meet the limit.
            value.low = all.iter().map(|it| it.low).fold(value.low, f64::min);
            value.high = all.iter().map(|it| it.high).fold(value.high, f64::max);
        }
        let answer = self.answer(value);
        if self.seconds > 0.0 && answer == Answer::Yes {
            let seconds = newest.rows[0]
                .metrics
                .get("seconds")
                .copied()
                .unwrap_or(0.0);
            if seconds < self.seconds {
                let span = std::time::Duration::from_secs(seconds as u64);
                let span = humantime::format_duration(span);
                return Err(Gap::TooShort(format!("the longest run so far took {span}")));
            }
        }
        let mut text = self.say.replace("{value}", &self.text(value));
        text = text.replace(
            "{change}",
            &format!("{:+.1} %", 100.0 * (value.median - 1.0)),
        );
        let runs: Vec<String> = all.iter().map(|value| self.text(*value)).collect();
        text = text.replace("{runs}", &runs.join(", "));
        if text.contains("{all}") {
            text = text.replace("{all}", &self.all_sides(newest));
        }
        Ok((text.replace("{who}", &self.fastest(newest)?.0), answer))
    }

    fn answer(&self, value: Value) -> Answer {
        let most = self.most.map(|most| (value.high <= most, value.low > most));
        let least = self
            .least
            .map(|least| (value.low >= least, value.high < least));
        let answers = [most, least]
            .into_iter()
            .flatten()
            .map(|answer| match answer {
                (true, _) => Answer::Yes,
                (_, true) => Answer::No,
                _ => Answer::Open,
            });
        answers.max().unwrap_or(Answer::Yes)
    }

    fn value(&self, found: &Found<'_>, evidence: &Evidence, machine: &str) -> Result<Value, Gap> {
        let value = self.plain(found)?;
        if self.over.is_empty() && self.over_who.is_empty() {
            return Ok(value);
        }
        let elsewhere = if self.over.is_empty() {
            None
        } else {
            let at = At::parse(&self.over).on(machine);
            let mut every = evidence.every(&at).into_iter();
            let other = every.find(|it| it.run.path == found.run.path);
            Some(
                other
                    .ok_or_else(|| Gap::Missing(format!("no result has {at} in the same run.")))?,
            )
        };
        let found = elsewhere.as_ref().unwrap_or(found);
        let divisor = if self.over_who.is_empty() {
            self.plain(found)?
        } else {
            let other = Self {
                who: self.over_who.clone(),
                ..self.bare()
            };
            other.plain(found)?
        };
        Ok(value.over(divisor))
    }

    fn bare(&self) -> Self {
        Self {
            at: String::new(),
            who: String::new(),
            take: self.take.clone(),
            times: 1.0,
            over: String::new(),
            over_who: String::new(),
            most: None,
            least: None,
            seconds: 0.0,
            say: String::new(),
        }
    }

    /// The figure before any division.
    fn plain(&self, found: &Found<'_>) -> Result<Value, Gap> {
        let medians = || found.rows.iter().map(|row| row.subject_median);
        let missing = |what: &str| Gap::Missing(format!("no result has {what} of `{}`.", self.at));
        Ok(match self.take.as_str() {
            "time" => Value::exact(self.times * self.fastest(found)?.1),
            "median" => Value::exact(self.fastest(found)?.1),
            "per_s" => Value::exact(self.times * 1e9 / self.fastest(found)?.1),
            "spread" => {
                let (fastest, slowest) = (
                    medians().fold(f64::MAX, f64::min),
                    medians().fold(0.0, f64::max),
                );
                Value::exact(slowest / fastest)
            }
            "mean" => Value::exact(medians().sum::<f64>() / found.rows.len() as f64),
            "ratio" => {
                let row = found.best().map_err(Gap::Missing)?;
                let ratio = row.ratio.ok_or_else(|| missing("a ratio"))?;
                Value {
                    low: ratio.low,
                    median: ratio.median,
                    high: ratio.high,
                }
            }
            name => {
                let value = found.rows.iter().find_map(|row| row.metrics.get(name));
                Value::exact(*value.ok_or_else(|| missing(name))?)
            }
        })
    }

    /// The side of this figure with the smallest median.
    fn fastest(&self, found: &Found<'_>) -> Result<(String, f64), Gap> {
        let wanted = |name: &str| match self.who.as_str() {
            "best" => true,
            "ours" => false,
            names => names.split('|').any(|wanted| wanted == name),
        };
        let subject = found.rows[0];
        let mut sides = Vec::new();
        if matches!(self.who.as_str(), "ours" | "best") || wanted(&subject.subject) {
            sides.push((subject.subject.clone(), subject.subject_median));
        }
        sides.extend(peers(found).filter(|(name, _)| wanted(name)));
        let fastest = sides.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
        fastest.ok_or_else(|| Gap::Missing(format!("no result has {} at {}.", self.who, self.at)))
    }

    fn text(&self, value: Value) -> String {
        let is_quotient = !self.over.is_empty() || !self.over_who.is_empty();
        match self.take.as_str() {
            "ratio" if !is_quotient => format!(
                "{} ({} to {})",
                digits(value.median),
                digits(value.low),
                digits(value.high)
            ),
            _ if is_quotient => digits(value.median),
            "time" => quantity(value.median, "ns"),
            "spread" => format!("{:.1} %", 100.0 * (value.median - 1.0)),
            _ => number(value.median),
        }
    }

    fn all_sides(&self, found: &Found<'_>) -> String {
        let subject = found.rows[0];
        let ours = std::iter::once((subject.subject.clone(), subject.subject_median));
        let value = |ns: f64| match self.take.as_str() {
            "per_s" => number(self.times * 1e9 / ns),
            "time" => quantity(self.times * ns, "ns"),
            _ => number(ns),
        };
        let all = ours
            .chain(peers(found))
            .map(|(name, ns)| format!("{name} {}", value(ns)));
        all.collect::<Vec<_>>().join(", ")
    }
}

fn peers<'a>(found: &'a Found<'_>) -> impl Iterator<Item = (String, f64)> + 'a {
    let of = |row: &&Row| Some((row.peer.clone()?, row.peer_median?));
    found.rows.iter().filter_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;
    use crate::statistics::Ratio;
    use crate::workloads;

    /// A claim with these figures, one per line and side.
    fn claim(theirs: &str, twin: &str, more: &str) -> Claim {
        let text = format!(
            "claim = [{{ id = \"x\", whose = \"them\", says = \"\", made = \"\", run = \"run w\", rule = \"\", {more} \
             theirs = [{theirs}], twin = [{twin}] }}]"
        );
        let mut claims: Claims = toml_edit::de::from_str(&text).unwrap();
        claims.claim.remove(0)
    }

    fn row(params: &[(&str, &str)], ours: f64, peer: (&str, f64)) -> Row {
        let peer = (!peer.0.is_empty()).then(|| (peer.0, vec![peer.1; 5]));
        Row::new(
            ("w", "queue"),
            params,
            "ns",
            ("thalweg", vec![ours; 5]),
            peer,
        )
    }

    /// Evidence of one machine with two processors, a run for each list of rows, newest first.
    fn evidence(runs: Vec<Vec<Row>>) -> Evidence {
        let last = runs.len();
        let run = |(place, results): (usize, Vec<Row>)| {
            let mut report = sample();
            report.started = format!("2026-01-{:02}T00:00:00Z", last - place);
            report.results = results;
            let path = PathBuf::from(format!("{place}.json"));
            Run {
                machine: "m".to_owned(),
                path,
                report,
            }
        };
        Evidence::new(runs.into_iter().enumerate().map(run).collect(), &[])
    }

    fn verdict_of(claim: &Claim, runs: Vec<Vec<Row>>) -> String {
        verdict(&claim.judge(&evidence(runs), "m"))
    }

    const ONE: &str = r#"{ at = "w, threads=1", take = "time", most = 10, say = "{value}" }"#;
    const TWO: &str = r#"{ at = "w, threads=2", take = "time", most = 10, say = "{value}" }"#;

    #[test]
    fn claim_holds_only_if_method_and_counterpart_meet_their_limits() {
        let judged = |claim: &Claim, one: f64, two: f64| {
            let rows = [("1", one), ("2", two)];
            let rows = rows.map(|(threads, ns)| row(&[("threads", threads)], ns, ("", 0.0)));
            verdict_of(claim, vec![rows.into()])
        };
        let plain = claim(ONE, TWO, "");
        assert_eq!(judged(&plain, 10.0, 10.0), "holds");
        assert_eq!(judged(&plain, 10.0, 11.0), "confounded");
        assert_eq!(judged(&plain, 11.0, 10.0), "does not hold");
        let worded = claim(ONE, TWO, "only_theirs = \"holds for a ring\",");
        assert_eq!(judged(&worded, 10.0, 11.0), "holds for a ring");
        let many = claim(ONE, TWO, "processors = 8,");
        assert_eq!(judged(&many, 10.0, 10.0), "not testable here: 2 processors");
        let confounded = format!("confounded = [{TWO}], processors = 8,");
        assert_eq!(
            judged(&claim(ONE, TWO, &confounded), 11.0, 10.0),
            "confounded"
        );
        let elsewhere = ONE.replace("threads=1", "threads=3");
        assert_eq!(
            judged(&claim(&elsewhere, TWO, ""), 1.0, 1.0),
            "not measured yet"
        );
        let open = claim(ONE, "{ take = \"open\", say = \"\" }", "");
        assert_eq!(judged(&open, 1.0, 1.0), "undecided");
    }

    #[test]
    fn method_is_judged_by_the_fastest_side_if_the_figure_says_best() {
        let best = ONE.replace("at =", "who = \"best\", at =");
        let rows = || {
            let params = [("threads", "1")];
            vec![
                row(&params, 30.0, ("rtrb", 20.0)),
                row(&params, 30.0, ("inlined", 9.0)),
            ]
        };
        assert_eq!(verdict_of(&claim(&best, "", ""), vec![rows()]), "holds");
        assert_eq!(
            verdict_of(&claim(ONE, "", ""), vec![rows()]),
            "does not hold"
        );
    }

    #[test]
    fn interval_that_contains_the_limit_is_undecided() {
        let figure = r#"{ at = "w", take = "ratio", most = 1.05, say = "{value}" }"#;
        let judged = |low, high| {
            let mut row = row(&[], 1.0, ("std", 1.0));
            row.ratio = Some(Ratio {
                low,
                median: 1.0,
                high,
            });
            verdict_of(&claim(figure, "", ""), vec![vec![row]])
        };
        assert_eq!(judged(0.9, 1.05), "holds");
        assert_eq!(judged(0.9, 1.06), "undecided");
        assert_eq!(judged(1.06, 1.07), "does not hold");
    }

    #[test]
    fn runs_that_disagree_are_undecided_and_all_are_shown() {
        let figure = r#"{ at = "w", take = "time", who = "std", over_who = "direct", least = 6, say = "{value} ({runs})" }"#;
        let run = |std: f64| vec![row(&[], 1.0, ("std", std)), row(&[], 1.0, ("direct", 1.0))];
        let claim = claim(figure, "", "");
        assert_eq!(verdict_of(&claim, vec![run(7.0), run(6.0)]), "holds");
        assert_eq!(verdict_of(&claim, vec![run(7.0), run(5.0)]), "undecided");
        let finding = claim
            .judge(&evidence(vec![run(7.0), run(5.0)]), "m")
            .unwrap();
        assert_eq!(finding.theirs, "7.00 (7.00, 5.00)");
    }

    #[test]
    fn short_run_can_refute_and_cannot_confirm() {
        let figure = r#"{ at = "w", take = "slope", most = 64, seconds = 100, say = "{value}" }"#;
        let judged = |seconds: f64, slope: f64| {
            let mut row = row(&[], 1.0, ("", 0.0));
            row.metrics.insert("seconds".to_owned(), seconds);
            row.metrics.insert("slope".to_owned(), slope);
            verdict_of(&claim("", figure, ""), vec![vec![row]])
        };
        assert_eq!(judged(100.0, 64.0), "holds");
        assert_eq!(
            judged(90.0, 64.0),
            "not testable here: the longest run so far took 1m 30s"
        );
        assert_eq!(judged(90.0, 65.0), "confounded");
    }

    #[test]
    fn sweeps_are_judged_by_their_spread_and_by_means() {
        let spread = r#"{ at = "w", take = "spread", most = 1.05, say = "{change}" }"#;
        let mean = r#"{ at = "w, slice=200|400", take = "mean", over = "w, slice=50", least = 1.1, say = "{change}" }"#;
        let rows = [("50", 100.0), ("200", 110.0), ("400", 114.0)];
        let rows = rows.map(|(slice, ns)| row(&[("slice", slice)], ns, ("", 0.0)));
        let claim = claim(mean, spread, "");
        let finding = claim.judge(&evidence(vec![rows.into()]), "m").unwrap();
        assert_eq!(
            (finding.theirs.as_str(), finding.twin.as_str()),
            ("+12.0 %", "+14.0 %")
        );
        assert_eq!(finding.verdict, "confounded");
    }

    #[test]
    fn every_claim_has_a_command_of_existing_workloads_and_unique_names() {
        let root = crate::hosts::root();
        let claims: Claims = docs::descriptions(&root, "crates/bench/claims.toml").unwrap();
        let mut ids: Vec<&str> = claims.claim.iter().map(|claim| claim.id.as_str()).collect();
        ids.sort_unstable();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count);
        for claim in &claims.claim {
            let words = claim
                .run
                .split(' ')
                .skip(1)
                .take_while(|word| *word != "--json");
            let mut words = words.filter(|word| *word != "--quick").peekable();
            while let Some(word) = words.next_if(|word| !word.starts_with("--")) {
                assert!(workloads::find(word).is_ok(), "{}: {word}", claim.id);
            }
            let is_judged = claim.theirs.iter().chain(&claim.twin);
            let limits = is_judged
                .filter(|it| it.most.is_some() || it.least.is_some())
                .count();
            assert!(limits > 0 || !claim.pending.is_empty(), "{}", claim.id);
        }
    }
}
