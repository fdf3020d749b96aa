//! `sweep`.

use std::fs;
use std::path::PathBuf;

use clap::Args;

use crate::command::measuring::{begun, refuse_debug};
use crate::command::{print, tell};
use crate::lab::Lab;
use crate::problem::Problem;
use crate::sweep::{self, Grid};
use crate::{doctor, machine, result_file};

#[derive(Args, Debug)]
pub struct Sweep {
    /// The workloads whose grids are measured; default: all
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// A file with grids that replace the built-in ones: `[{"workload": "..", "fixed": {"items":
    /// "1000"}, "axes": [["capacity", ["64", "256"]]]}]`
    #[arg(long, value_name = "FILE")]
    grid: Option<PathBuf>,
    /// Measure every point of a grid, even if it has more than ten
    #[arg(long)]
    full: bool,
    /// Write every sample, one per line
    #[arg(long, value_name = "FILE")]
    save_csv: Option<PathBuf>,
    /// Write the result, one row per point
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Take short samples: checks that everything works, gives no verdicts
    #[arg(long)]
    quick: bool,
    /// Samples of each point, at least 5
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(5..))]
    samples: Option<u16>,
    /// Measure even with a debug build
    #[arg(long)]
    allow_debug: bool,
}

/// Runs the command.
///
/// # Errors
/// A grid does not exist, or a measurement failed.
pub fn execute(sweep: &Sweep) -> Result<(), Problem> {
    let grids = match &sweep.grid {
        Some(file) => {
            let text = fs::read_to_string(file).map_err(Problem::io(file.display().to_string()))?;
            Grid::parse(&text)?
        }
        None => Grid::known(),
    };
    let chosen = choose(grids, &sweep.names)?;
    refuse_debug(sweep.allow_debug)?;
    let host = machine::describe();
    if doctor::busy(&host.load) {
        tell(format_args!(
            "this machine is not idle (load {}): do not quote this sweep",
            host.load
        ));
    }
    let lab = Lab::new(sweep.quick, sweep.samples.map(usize::from));
    let mut report = begun(&lab, host);
    let mut all = Vec::new();
    for grid in &chosen {
        let swept = sweep::sweep(&lab, grid, sweep.full)?;
        let gap = if all.is_empty() { "" } else { "\n" };
        print(&format!("{gap}{}", sweep::markdown(&swept)))?;
        report.results.extend(sweep::rows(grid, &swept)?);
        if let Some(file) = &sweep.json {
            result_file::write(file, &result_file::text(&report))?;
        }
        all.push(swept);
        if let Some(file) = &sweep.save_csv {
            result_file::write(file, &sweep::csv(&all))?;
        }
    }
    if let Some(why) = lab.refusal() {
        print(&format!(
            "\nThis was a {why}: it does not show which point is better.\n"
        ))?;
    }
    Ok(())
}

fn choose(grids: Vec<Grid>, names: &[String]) -> Result<Vec<Grid>, Problem> {
    let known: Vec<String> = grids.iter().map(|grid| grid.workload.clone()).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(Problem::Usage(format!(
            "there is no grid of `{unknown}`; there is {}",
            known.join(", ")
        )));
    }
    let wanted = |grid: &Grid| names.is_empty() || names.contains(&grid.workload);
    Ok(grids.into_iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_that_is_not_there_is_answered_with_those_that_are() {
        let grids = || {
            Grid::parse(
                r#"[{"workload": "a", "axes": [["x", ["1"]]]}, {"workload": "b", "axes": [["x", ["1"]]]}]"#,
            )
            .unwrap()
        };
        let problem = choose(grids(), &["warp".to_owned()]).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "there is no grid of `warp`; there is a, b"
        );
        assert_eq!(choose(grids(), &["b".to_owned()]).unwrap().len(), 1);
        assert_eq!(choose(grids(), &[]).unwrap().len(), 2);
    }
}
