//! One workload at every point of a grid, to find its best point.
//!
//! Each point is a cell ([`crate::cell`]) in its own process. All points take turns, sample by
//! sample, so fluctuations of the machine affect all of them alike, and any two can be compared
//! pair by pair. The result names the differences beyond noise; "no point is better" is a result,
//! too.

mod grid;
mod table;

use crate::cell::Cell;
use crate::lab::Lab;
use crate::placement::Placement;
use crate::problem::Problem;
use crate::processes::{self, CellProcess, PROCESSES, times};
use crate::report::Row;
use crate::statistics::{Ratio, Samples, median, ratio_of_pairs};
use crate::workloads;

pub use grid::{GRIDS, Grid, Point};
pub use table::{csv, markdown};

/// The swept subject: the grids vary only our own knobs.
const SUBJECT: &str = "thalweg";

/// The default number of samples of each point, over all processes.
const SAMPLES: usize = 15;

/// A point and its samples, in ns per operation and the order of the rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The point.
    pub point: Point,
    /// Its samples.
    pub times: Samples,
}

/// A grid after it was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Swept {
    /// The workload.
    pub workload: String,
    /// Every point, in the grid's order.
    pub points: Vec<Measured>,
}

/// The best point of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Best<'a> {
    /// The point with the smallest median.
    pub best: &'a Measured,
    /// The second-best point, and the ratio of the best point's time to its time.
    pub next: Option<(&'a Measured, Ratio)>,
    /// The number of other points that cannot be told apart from the best.
    pub as_good: usize,
}

impl Best<'_> {
    /// Whether the interval separates the best point from the next.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        self.next.as_ref().is_none_or(|(_, ratio)| ratio.high < 1.0)
    }
}

impl Swept {
    /// The best point; `None` if nothing was measured.
    #[must_use]
    pub fn best(&self) -> Option<Best<'_>> {
        let mut order: Vec<(&Measured, f64)> = self
            .points
            .iter()
            .filter_map(|measured| Some((measured, median(&measured.times)?)))
            .collect();
        order.sort_by(|one, other| one.1.total_cmp(&other.1));
        let (best, _) = *order.first()?;
        let others: Vec<(&Measured, Ratio)> = order[1..]
            .iter()
            .filter_map(|(other, _)| Some((*other, ratio_of_pairs(&best.times, &other.times)?)))
            .collect();
        Some(Best {
            best,
            next: others.first().copied(),
            as_good: others.iter().filter(|(_, ratio)| ratio.high >= 1.0).count(),
        })
    }
}

/// Measures `grid`: all its points, or every other one if there are many and `full` is not set.
///
/// # Errors
/// The workload does not exist or does not support cells, or something failed in a process.
pub fn sweep(lab: &Lab, grid: &Grid, full: bool) -> Result<Swept, Problem> {
    if workloads::find(&grid.workload)?.cells.is_none() {
        return Err(Problem::Usage(format!(
            "{} is not measured by cells: it cannot be swept",
            grid.workload
        )));
    }
    let points = grid.points(full);
    let plan = lab.plan(Some(SAMPLES));
    let title = format!("sweep of {}", grid.workload);
    let start = || -> Result<Vec<CellProcess>, Problem> {
        let process = |point| CellProcess::start(&cell(lab, grid, point));
        points.iter().map(process).collect()
    };
    let taken = processes::measure(lab, &title, points.len(), plan, PROCESSES, start)?;
    lab.end();
    let measured = points.into_iter().zip(&taken);
    Ok(Swept {
        workload: grid.workload.clone(),
        points: measured
            .map(|(point, samples)| Measured {
                point,
                times: times(samples),
            })
            .collect(),
    })
}

/// One row per point. The fixed and the swept knobs are its parameters.
///
/// # Errors
/// The workload does not exist.
pub fn rows(grid: &Grid, swept: &Swept) -> Result<Vec<Row>, Problem> {
    let workload = workloads::find(&grid.workload)?;
    let row = |measured: &Measured| {
        let of_point = measured.point.0.iter().map(|(name, value)| (name, value));
        let params: Vec<(&str, &str)> = grid
            .fixed
            .iter()
            .chain(of_point)
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        Row::new(
            (workload.name, workload.group),
            &params,
            "ns",
            (SUBJECT, measured.times.clone()),
            None,
        )
        .checked("every sample's own checks, and all points took turns")
    };
    Ok(swept.points.iter().map(row).collect())
}

/// The cell of a point. A name that begins with `THALWEG_` is an environment variable of its
/// process; any other is a parameter.
fn cell(lab: &Lab, grid: &Grid, point: &Point) -> Cell {
    let mut cell = Cell::new(&grid.workload, &[], &[SUBJECT]);
    cell.quick = lab.quick();
    let of_point = point.0.iter().map(|(name, value)| (name, value));
    for (name, value) in grid.fixed.iter().chain(of_point) {
        let place = if name.starts_with("THALWEG_") {
            &mut cell.environment
        } else {
            &mut cell.params
        };
        place.insert(name.clone(), value.clone());
    }
    if cell
        .params
        .get("placement")
        .is_some_and(|placement| placement == "one_cpu")
    {
        cell.placement = Placement::OneCpu;
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swept(points: &[(&str, &[f64])]) -> Swept {
        Swept {
            workload: "w".to_owned(),
            points: points
                .iter()
                .map(|(name, times)| Measured {
                    point: Point(vec![("capacity".to_owned(), (*name).to_owned())]),
                    times: times.to_vec().into(),
                })
                .collect(),
        }
    }

    #[test]
    fn the_best_stands_alone_where_its_pairs_say_so() {
        let swept = swept(&[
            ("64", &[5.0, 5.1, 5.2, 5.0, 5.1]),
            ("256", &[3.0, 3.1, 3.2, 3.0, 3.1]),
            ("1024", &[4.0, 4.1, 4.2, 4.0, 4.1]),
        ]);
        let best = swept.best().unwrap();
        assert_eq!(best.best.point.text(), "capacity=256");
        assert_eq!(best.next.unwrap().0.point.text(), "capacity=1024");
        assert!(best.stands_alone());
        assert_eq!(best.as_good, 0);
    }

    #[test]
    fn where_the_noise_is_larger_no_point_is_better() {
        let swept = swept(&[
            ("64", &[3.0, 5.0, 3.0, 5.0, 4.0]),
            ("256", &[4.0, 4.0, 4.5, 3.5, 4.1]),
            ("1024", &[9.0, 9.0, 9.0, 9.0, 9.0]),
        ]);
        let best = swept.best().unwrap();
        assert!(!best.stands_alone());
        assert_eq!(best.as_good, 1);
    }

    #[test]
    fn a_single_point_is_the_best_of_itself() {
        let one = swept(&[("64", &[3.0])]);
        assert!(one.best().unwrap().stands_alone());
        assert!(swept(&[]).best().is_none());
    }

    #[test]
    fn what_is_named_like_an_environment_variable_becomes_one() {
        let grid = Grid::parse(
            r#"[{"workload": "w", "fixed": {"items": "10", "placement": "one_cpu"},
                 "axes": [["THALWEG_TIMESLICE", ["50us"]], ["capacity", ["64"]]]}]"#,
        )
        .unwrap()
        .remove(0);
        let cell = cell(&Lab::new(true, None), &grid, &grid.points(true)[0]);
        assert_eq!(cell.environment["THALWEG_TIMESLICE"], "50us");
        let params: Vec<&String> = cell.params.keys().collect();
        assert_eq!(params, ["capacity", "items", "placement"]);
        assert_eq!(cell.placement, Placement::OneCpu);
        assert!(cell.quick);
    }

    #[test]
    fn a_row_names_what_is_fixed_and_what_is_swept() {
        let grid = Grid::parse(
            r#"[{"workload": "spsc_threads", "fixed": {"placement": "free"}, "axes": [["capacity", ["64"]]]}]"#,
        )
        .unwrap()
        .remove(0);
        let mut swept = swept(&[("64", &[3.0; 5])]);
        swept.workload = grid.workload.clone();
        let rows = rows(&grid, &swept).unwrap();
        assert_eq!(rows[0].params["placement"], "free");
        assert_eq!(rows[0].params["capacity"], "64");
        assert_eq!(
            (rows[0].group.as_str(), rows[0].subject_median),
            ("queue", 3.0)
        );
    }

    #[test]
    fn a_workload_without_cells_cannot_be_swept() {
        let grid = Grid::parse(r#"[{"workload": "idle", "axes": [["a", ["1"]]]}]"#)
            .unwrap()
            .remove(0);
        let problem = sweep(&Lab::new(true, None), &grid, false).unwrap_err();
        assert_eq!(problem.exit_status(), 2);
        assert!(problem.to_string().contains("idle"));
    }
}
