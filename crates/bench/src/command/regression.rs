//! `regress`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::command::measuring::{Measured, Measuring, measure};
use crate::command::{print, tell};
use crate::problem::Problem;
use crate::report::Report;
use crate::workloads::{WORKLOADS, Workload};
use crate::{baseline, machine, regress, result_file};

/// The default threshold in percent: larger than the movement of this suite's medians between two
/// runs on a quiet machine.
const THRESHOLD: f64 = 10.0;

/// The environment variable that overrides the default threshold.
const VARIABLE: &str = "THALWEG_REGRESSION_THRESHOLD_PCT";

#[derive(Args, Debug)]
pub struct Regress {
    #[command(flatten)]
    measuring: Measuring,
    /// The result file to compare with; default: the saved baseline of this machine
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Largest allowed change for the worse, in percent
    #[arg(
        long,
        value_name = "PCT",
        env = VARIABLE,
        default_value_t = THRESHOLD,
        allow_negative_numbers = true,
        value_parser = percent
    )]
    threshold: f64,
    /// Judge this result file instead of measuring
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Write the new run's result file
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    json: Option<PathBuf>,
    /// Also print the rows that did not change
    #[arg(long)]
    all: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("a number of percent, 0 or more".to_owned()),
    }
}

/// Runs the command. If it cannot judge, the status is 2, because 1 means that something is worse.
#[must_use]
pub fn execute(regress: &Regress) -> ExitCode {
    ExitCode::from(judge(regress).unwrap_or_else(|problem| {
        tell(format_args!("cannot be judged: {problem}"));
        2
    }))
}

fn judge(arguments: &Regress) -> Result<u8, Problem> {
    let mut baselines = match &arguments.baseline {
        Some(file) => vec![result_file::read(file)?],
        None => {
            let host = baseline::name_of(&machine::describe());
            let kept = baseline::load(&baseline::folder(), &host)?;
            if kept.is_empty() {
                return Err(Problem::NotReady(format!(
                    "{host} has no baseline: `thalweg bench run --save-baseline` makes one"
                )));
            }
            kept.into_iter().map(|(_, report)| report).collect()
        }
    };
    let (run, failed) = match &arguments.from {
        Some(file) => (result_file::read(file)?, false),
        None => {
            let Measured { report, problems } = again(arguments, &baselines)?;
            (report, !problems.is_empty())
        }
    };
    let of_run = |workload: &str| run.results.iter().any(|row| row.workload == workload);
    // A workload that failed has no rows, so the comparison must report the baseline's rows as
    // missing.
    let measured = |workload: &str| {
        of_run(workload) || (arguments.from.is_none() && named(arguments, workload))
    };
    for report in &mut baselines {
        report.results.retain(|row| measured(&row.workload));
    }
    let lines = regress::compare(&baselines, &run, arguments.threshold);
    print(&regress::text(&lines, arguments.threshold, arguments.all))?;
    Ok(match regress::exit_status(&lines) {
        0 if failed => 2,
        status => status,
    })
}

fn named(arguments: &Regress, workload: &str) -> bool {
    let Measuring { names, groups, .. } = &arguments.measuring;
    (names.is_empty() && groups.is_empty()) || names.iter().any(|name| name == workload)
}

/// Measures the named workloads; if none is named, all workloads that the baselines contain.
fn again(arguments: &Regress, baselines: &[Report]) -> Result<Measured, Problem> {
    let Measuring { names, groups, .. } = &arguments.measuring;
    let chosen = if names.is_empty() && groups.is_empty() {
        let rows = || baselines.iter().flat_map(|report| &report.results);
        let has_rows = |workload: &&Workload| rows().any(|row| row.workload == workload.name);
        WORKLOADS.iter().filter(has_rows).collect()
    } else {
        arguments.measuring.chosen()?
    };
    let lab = arguments.measuring.lab(&chosen)?;
    let keep = |report: &_| match &arguments.json {
        Some(file) => result_file::write(file, &result_file::text(report)),
        None => Ok(()),
    };
    measure(&chosen, lab, keep)
}
