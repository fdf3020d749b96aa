//! `report`.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;

use crate::command::measuring::{Measured, Measuring, measure, worst};
use crate::command::print;
use crate::docs::{self, Docs};
use crate::problem::Problem;
use crate::report::Report;
use crate::{claims, csv, hosts, page, result_file, summary};

#[derive(Args, Debug)]
pub struct Reporting {
    #[command(flatten)]
    measuring: Measuring,
    /// A result file to report on instead of a new run; may be given several times
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["names", "groups", "quick", "samples", "duration", "include_1mib", "set", "allow_debug"]
    )]
    from: Vec<PathBuf>,
    /// The output folder; default: benchmarks/reports in the checkout
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Write docs/claims.md instead of a report: compares the claims of other projects with the
    /// files of --from, or with the committed results
    #[arg(
        long,
        conflicts_with_all = ["names", "groups", "quick", "samples", "duration", "include_1mib", "set", "allow_debug", "into"]
    )]
    claims: bool,
    /// Write every figure in README.md and docs from the committed results, and docs/claims.md
    #[arg(
        long,
        conflicts_with_all = ["names", "groups", "quick", "samples", "duration", "include_1mib", "set", "allow_debug", "into", "from", "claims"]
    )]
    docs: bool,
    /// With --docs: write nothing, and end with 1 if a page differs or has a figure outside a region
    #[arg(long, requires = "docs")]
    check: bool,
}

/// Runs the command and returns the exit status.
///
/// # Errors
/// Nothing was measured, or a file cannot be read or written.
pub fn execute(reporting: &Reporting) -> Result<u8, Problem> {
    if reporting.docs {
        return write_docs(reporting.check);
    }
    if reporting.claims {
        let page = claims::write(&hosts::root(), &reporting.from)?;
        return print(&format!("{}\n", page.display())).map(|()| 0);
    }
    let folder = reporting
        .into
        .clone()
        .unwrap_or_else(|| hosts::root().join("benchmarks/reports"));
    let stamp = stamp(SystemTime::now());
    let file = |what: &str, ending: &str| folder.join(format!("benchmark_{what}_{stamp}.{ending}"));
    let mut files = Vec::new();
    let (reports, status): (Vec<Report>, u8) = if reporting.from.is_empty() {
        let chosen = reporting.measuring.chosen()?;
        let lab = reporting.measuring.lab(&chosen)?;
        let raw = file("run", "json");
        let keep = |report: &_| result_file::write(&raw, &result_file::text(report));
        let Measured { report, problems } = measure(&chosen, lab, keep)?;
        let samples = file("samples", "csv");
        result_file::write(&samples, &csv::samples(&report))?;
        files.extend([raw, samples]);
        (vec![report], worst(&problems))
    } else {
        let read: Result<_, _> = reporting
            .from
            .iter()
            .map(|f| result_file::read(f))
            .collect();
        (read?, 0)
    };
    for (name, text) in [
        (file("summary", "md"), summary::markdown(&reports)),
        (file("results", "csv"), csv::results(&reports)),
        (file("report", "html"), page::html(&reports)),
    ] {
        result_file::write(&name, &text)?;
        files.push(name);
    }
    for file in files {
        print(&format!("{}\n", file.display()))?;
    }
    Ok(status)
}

/// Writes or checks the figures of all pages.
fn write_docs(check: bool) -> Result<u8, Problem> {
    let root = &hosts::root();
    let docs = Docs::load(root)?;
    let evidence = docs.evidence(root, &[])?;
    let mut pages = docs::fill(root, &docs, &evidence)?;
    let (claims, text) = claims::page(root, &[])?;
    if std::fs::read_to_string(&claims).ok().as_ref() != Some(&text) {
        pages.push((claims, text));
    }
    let mut problems = docs::loose(root, &docs)?;
    problems.extend(docs::unused(root, &docs)?);
    for (page, text) in &pages {
        let name = page
            .strip_prefix(root)
            .unwrap_or(page)
            .display()
            .to_string();
        if check {
            problems.push(format!(
                "{name} differs from the committed results; run `thalweg bench report --docs`"
            ));
        } else {
            result_file::write(page, text)?;
            print(&format!("{name}\n"))?;
        }
    }
    for problem in &problems {
        print(&format!("{problem}\n"))?;
    }
    Ok(u8::from(!problems.is_empty()))
}

/// A moment in the form used in file names: `20260102T030405Z`.
fn stamp(moment: SystemTime) -> String {
    let text = humantime::format_rfc3339_seconds(moment).to_string();
    text.replace(['-', ':'], "")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_files_name_says_when_in_utc() {
        let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045);
        assert_eq!(stamp(moment), "20260102T030405Z");
    }
}
