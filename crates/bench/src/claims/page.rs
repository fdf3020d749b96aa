//! The claims and their findings as Markdown. The same result files give the same page.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::all;
use super::claim::{Claim, Finding, Verdict};
use super::evidence::{Evidence, Missing, Point};
use super::later::LATER;
use crate::baseline;
use crate::report::Report;

/// The page.
#[must_use]
pub fn markdown(reports: &[Report]) -> String {
    let (judging, left_out): (Vec<&Report>, Vec<&Report>) = reports
        .iter()
        .partition(|report| baseline::refusal(report).is_none());
    let mut hosts: BTreeMap<String, Vec<&Report>> = BTreeMap::new();
    for report in judging {
        let host = &report.host;
        let name = format!("{}, processors {}", baseline::name_of(host), host.affinity);
        hosts.entry(name).or_default().push(report);
    }
    let mut text = HEAD.to_owned();
    text += &machines(&hosts, &left_out);
    let hosts: Vec<(String, Evidence<'_>)> = hosts
        .into_iter()
        .map(|(name, reports)| (name, Evidence::new(reports)))
        .collect();
    text += "\n## At a glance\n\n| claim | whose | verdict |\n| --- | --- | --- |\n";
    let judged: Vec<(&Claim, Vec<Judged>)> =
        all().map(|claim| (claim, judge(claim, &hosts))).collect();
    for (claim, findings) in &judged {
        let whose = claim.whose.split(',').next().unwrap_or_default();
        line(
            &mut text,
            &[
                &format!("[{0}](#{0})", claim.id),
                whose,
                &verdicts(findings),
            ],
        );
    }
    text += "\n## One by one\n";
    for (claim, findings) in &judged {
        text += &section(claim, findings);
    }
    text += "\n## With a later landing\n\nNothing here tests these yet.\n\n| whose | claim | what will test it |\n| --- | --- | --- |\n";
    for later in LATER {
        line(&mut text, &[later.whose, later.says, later.tested_by]);
    }
    text
}

const HEAD: &str = "# The claims of those who came before

What the documents of five predecessors claim, and what this lab measures about it. Written by `thalweg bench report --claims`; edit \
`crates/bench/src/claims`, not this page.

The predecessors' programs do not run here. What runs is what their figures were made with: the same loop, the same counting, with Thalweg in \
it and peers beside. So a verdict is one on the *figure and its method*: can it be reached so, and does it show what it is quoted for? It is not one \
on their code. Next to each stands a twin that measures what the claim says. Figures are medians of Thalweg's own, with the peers' where they were \
measured; judged is Thalweg's, or the structure that is named.

| verdict | means |
| --- | --- |
| holds | reached by their method, and the twin bears out what it is quoted for |
| confounded | reached, but by something else than what it is quoted for: the twin does not reach it |
| does not hold | not reached, not even by their method |
| not testable here | what was measured on this machine cannot tell, and why |
| not measured yet | no result file has the rows; the command that measures them |
";

/// The machines, and the runs measured on them.
fn machines(hosts: &BTreeMap<String, Vec<&Report>>, left_out: &[&Report]) -> String {
    let mut text = "\n## Measured on\n\n".to_owned();
    if hosts.is_empty() {
        text += "Nothing yet.\n";
    } else {
        text += "| machine | run | commit | load before |\n| --- | --- | --- | --- |\n";
    }
    for (name, reports) in hosts {
        for report in reports {
            let commit = report.commit.get(..12).unwrap_or(&report.commit);
            let dirty = if report.commit.ends_with("-dirty") {
                "-dirty"
            } else {
                ""
            };
            let commit = format!("{commit}{dirty}");
            line(
                &mut text,
                &[name, &report.started, &commit, &report.host.load],
            );
        }
    }
    for report in left_out {
        let why = baseline::refusal(report).unwrap_or_default();
        let started = &report.started;
        writeln!(text, "\nLeft out: the run of {started}, because {why}.").expect(TAKES);
    }
    text
}

const TAKES: &str = "a String takes any text";

/// The finding of one machine; `None` if it applies to no machine in particular.
struct Judged {
    machine: Option<String>,
    finding: Result<Finding, Missing>,
}

/// The finding of each machine that has the rows; if no machine has them, the missing evidence.
fn judge(claim: &Claim, hosts: &[(String, Evidence<'_>)]) -> Vec<Judged> {
    let mut missing = None;
    let mut found = Vec::new();
    let nothing = Evidence::new(Vec::new());
    for (name, evidence) in hosts {
        match (claim.judge)(evidence) {
            Ok(finding) => found.push(Judged {
                machine: Some(name.clone()),
                finding: Ok(finding),
            }),
            Err(what) => missing = Some(what),
        }
    }
    if found.is_empty() {
        let finding = match missing {
            Some(what) => Err(what),
            None => (claim.judge)(&nothing),
        };
        found.push(Judged {
            machine: None,
            finding,
        });
    }
    found
}

fn verdict(finding: &Result<Finding, Missing>) -> String {
    match finding {
        Ok(finding) => finding.verdict.to_string(),
        Err(_) => "not measured yet".to_owned(),
    }
}

fn verdicts(findings: &[Judged]) -> String {
    let bold = |judged: &Judged| match &judged.finding {
        Ok(Finding {
            verdict: Verdict::NotTestable(_),
            ..
        })
        | Err(_) => verdict(&judged.finding),
        Ok(_) => format!("**{}**", verdict(&judged.finding)),
    };
    match findings {
        [only] => bold(only),
        many => {
            let of = |judged: &Judged| {
                let machine = judged.machine.as_deref().unwrap_or("here");
                format!("{} ({machine})", bold(judged))
            };
            many.iter().map(of).collect::<Vec<_>>().join("; ")
        }
    }
}

fn section(claim: &Claim, findings: &[Judged]) -> String {
    let mut text = format!("\n### {}\n\n{}\n\n", claim.id, claim.says);
    let mut say = |what: &str, value: &str| {
        writeln!(text, "- {what}: {value}").expect(TAKES);
    };
    say("whose", claim.whose);
    say("how the figure was made", claim.made);
    say("the same here", &points(claim.theirs));
    say("its honest twin", &points(claim.twin));
    say("when which verdict", claim.rule);
    say("measure it", &format!("`{}`", command(claim)));
    text += "\n| machine | by their method | the twin | verdict |\n| --- | --- | --- | --- |\n";
    for judged in findings {
        let machine = judged.machine.as_deref().unwrap_or("any");
        match &judged.finding {
            Ok(Finding { theirs, twin, .. }) => {
                line(
                    &mut text,
                    &[machine, theirs, twin, &verdict(&judged.finding)],
                );
            }
            Err(Missing(what)) => {
                let run = format!("not measured yet: run `{}`", command(claim));
                line(
                    &mut text,
                    &["none yet", "", &format!("missing: {what}"), &run],
                );
            }
        }
    }
    text
}

/// The command that measures the rows of `claim`.
fn command(claim: &Claim) -> String {
    match claim.run.strip_prefix("sweep ") {
        Some(names) => format!("thalweg bench sweep {names} --json FILE"),
        None => format!("thalweg bench run {}", claim.run),
    }
}

fn points(points: &[Point]) -> String {
    if points.is_empty() {
        return "no row".to_owned();
    }
    let points: Vec<String> = points.iter().map(ToString::to_string).collect();
    points.join("; ")
}

fn line(text: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    writeln!(text, "| {} |", cells.join(" | ")).expect(TAKES);
}
