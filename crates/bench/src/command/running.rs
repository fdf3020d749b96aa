//! `run`.

use std::path::PathBuf;

use clap::Args;

use crate::command::measuring::{Measured, Measuring, measure, worst};
use crate::command::{print, tell};
use crate::problem::Problem;
use crate::report::Row;
use crate::{baseline, csv, result_file, table};

#[derive(Args, Debug)]
pub struct Run {
    #[command(flatten)]
    measuring: Measuring,
    /// Write the result file; it is rewritten after each workload
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write every sample, one per line
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Save this run as the baseline of this machine
    #[arg(long)]
    save_baseline: bool,
    /// Exit with 1 if a target is missed, and with 2 if one is undecided or cannot be judged
    #[arg(long)]
    enforce: bool,
}

/// Runs the command and returns the exit status.
///
/// # Errors
/// Nothing was measured, or a file cannot be written.
pub fn execute(run: &Run) -> Result<u8, Problem> {
    let chosen = run.measuring.chosen()?;
    let lab = run.measuring.lab(&chosen)?;
    if run.save_baseline && lab.refusal().is_some() {
        // Refuse now, not after an hour of measuring.
        return Err(Problem::Usage(
            "a quick run or a debug build has no verdicts: it cannot be a baseline".to_owned(),
        ));
    }
    let keep = |report: &_| match &run.json {
        Some(file) => result_file::write(file, &result_file::text(report)),
        None => Ok(()),
    };
    let Measured { report, problems } = measure(&chosen, lab, keep)?;
    if !report.results.is_empty() {
        print(&table::markdown(&report))?;
    }
    if let Some(file) = &run.csv {
        result_file::write(file, &csv::samples(&report))?;
    }
    if run.save_baseline && !report.results.is_empty() {
        for file in baseline::save(&baseline::folder(), &report)? {
            tell(format_args!("saved {}", file.display()));
        }
    }
    let failed = worst(&problems);
    Ok(if failed == 0 && run.enforce {
        enforced(&report.results)
    } else {
        failed
    })
}

/// 1 if a target was missed; otherwise 2 if one is undecided or was not judged, or there was none;
/// otherwise 0.
fn enforced(rows: &[Row]) -> u8 {
    let verdicts: Vec<&str> = rows
        .iter()
        .filter_map(|row| row.verdict.as_deref())
        .collect();
    if verdicts.contains(&"missed") {
        1
    } else if verdicts.is_empty() || verdicts.iter().any(|verdict| *verdict != "met") {
        2
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    fn status(verdicts: &[Option<&str>]) -> u8 {
        let row = sample().results.remove(1);
        let rows: Vec<Row> = verdicts
            .iter()
            .map(|verdict| Row {
                verdict: verdict.map(str::to_owned),
                ..row.clone()
            })
            .collect();
        enforced(&rows)
    }

    #[test]
    fn enforced_status_is_0_only_if_every_target_is_met() {
        let not_judged = Some("not judged: 2 processors");
        let (met, missed, undecided) = (Some("met"), Some("missed"), Some("undecided"));
        for (verdicts, expected) in [
            (&[None, met] as &[_], 0),
            (&[met, missed, not_judged], 1),
            (&[undecided, missed], 1),
            (&[met, undecided], 2),
            (&[met, not_judged], 2),
            (&[None], 2),
            (&[], 2),
        ] {
            assert_eq!(status(verdicts), expected, "{verdicts:?}");
        }
    }
}
