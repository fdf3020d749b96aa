//! Grids: the workloads, their knobs, and the values to measure.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::problem::Problem;

/// Names with their values.
type Fixed = &'static [(&'static str, &'static str)];
/// Names, each with the values to vary.
type Axes = &'static [(&'static str, &'static [&'static str])];

/// The default grids of `sweep`: the workload, the fixed knobs, and the axes. A name that begins
/// with `THALWEG_` is an environment variable; any other is a parameter of the workload's cells.
/// `placement=one_cpu` pins the processes.
pub const GRIDS: &[(&str, Fixed, Axes)] = &[
    (
        "spsc_threads",
        &[("placement", "free"), ("messages", "timed")],
        &[
            ("capacity", &["64", "256", "1024", "4096", "8192"]),
            ("batch", &["1", "16", "64", "256"]),
        ],
    ),
    ("chained_spawn", &[("actors", "1000")], KNOBS),
    ("ping_pong_oneshot", &[("rounds", "1000")], KNOBS),
    (
        "spawn_storm_busy",
        &[("actors", "10000"), ("yielders", "8")],
        KNOBS,
    ),
    (
        "yield_many",
        &[("actors", "200"), ("yields", "1000")],
        KNOBS,
    ),
    (
        "yield_in_hot_loop",
        &[("actors", "1"), ("yields", "1000000")],
        KNOBS,
    ),
    ("many_timers", &[("sleeps", "10000")], KNOBS),
    ("fan_out_compute", &[("chunks", "64")], KNOBS),
    (
        "deep_recursion",
        &[("depth", "500"), ("form", "plain")],
        KNOBS,
    ),
    (
        "mpsc_contention",
        &[("producers", "32"), ("each", "10000")],
        KNOBS,
    ),
    (
        "uncontended_channel",
        &[("producers", "1"), ("each", "1000000")],
        KNOBS,
    ),
    ("catch_unwind_panics", &[("actors", "10000")], KNOBS),
];

/// The knobs of our runtime, over the benchmarks that smarm swept. smarm defined 20 points and used
/// 10. `multi_thread_scaling` is missing because it is `fan_out_compute` on one processor.
const KNOBS: Axes = &[
    ("THALWEG_ALLOC_INTERVAL", &["32", "64", "128", "256", "512"]),
    ("THALWEG_TIMESLICE", &["50us", "100us", "200us", "400us"]),
];

/// The fixed knobs of every grid over [`KNOBS`]: one processor, and the time includes the runtime's
/// start and stop, as in smarm's figures. The interval matters only with the preempting allocator.
const LIKE_SMARM: Fixed = &[
    ("placement", "one_cpu"),
    ("workers", "1"),
    ("lifetime", "cold"),
    ("allocator", "preempting"),
    ("drivers", "time"),
    ("hook", "silent"),
];

/// The number of points up to which a grid is measured completely by default.
const FEW: usize = 10;

/// A workload and the knobs to vary.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// The workload's public name.
    pub workload: String,
    /// The knobs that are the same at every point.
    #[serde(default)]
    pub fixed: BTreeMap<String, String>,
    /// Names and the values of each.
    pub axes: Vec<(String, Vec<String>)>,
}

/// One combination of values, in the order of the axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point(pub Vec<(String, String)>);

impl Point {
    /// `capacity=1024 batch=16`.
    #[must_use]
    pub fn text(&self) -> String {
        let params: Vec<String> = self.0.iter().map(|(k, v)| format!("{k}={v}")).collect();
        params.join(" ")
    }
}

impl Grid {
    /// All of [`GRIDS`].
    #[must_use]
    pub fn known() -> Vec<Self> {
        let grid = |(workload, fixed, axes): &(&str, Fixed, Axes)| {
            let more = if axes[0] == KNOBS[0] { LIKE_SMARM } else { &[] };
            let fixed = fixed.iter().chain(more);
            let list = |values: &&[&str]| values.iter().map(|value| (*value).to_owned()).collect();
            Self {
                workload: (*workload).to_owned(),
                fixed: fixed
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
                axes: axes
                    .iter()
                    .map(|(name, values)| ((*name).to_owned(), list(values)))
                    .collect(),
            }
        };
        GRIDS.iter().map(grid).collect()
    }

    /// Parses a file of grids: `[{"workload": "..", "fixed": {"items": "1000"}, "axes":
    /// [["capacity", ["64", "256"]]]}]`.
    ///
    /// # Errors
    /// The text has another form, or an axis has no value.
    pub fn parse(text: &str) -> Result<Vec<Self>, Problem> {
        let grids: Vec<Self> = serde_json::from_str(text)
            .map_err(|error| Problem::Usage(format!("not a list of grids: {error}")))?;
        for grid in &grids {
            if grid.axes.is_empty() || grid.axes.iter().any(|(_, values)| values.is_empty()) {
                return Err(Problem::Usage(format!(
                    "the grid of {} has no point: every axis needs a value",
                    grid.workload
                )));
            }
        }
        Ok(grids)
    }

    /// Its points; the last axis changes fastest. If there are more than ten and `full` is not set,
    /// every other point, like the black squares of a chessboard: each value of each axis is still
    /// included.
    #[must_use]
    pub fn points(&self, full: bool) -> Vec<Point> {
        let mut points = vec![(0, Point(Vec::new()))];
        for (name, values) in &self.axes {
            points = points
                .iter()
                .flat_map(|(places, point)| {
                    values.iter().enumerate().map(move |(place, value)| {
                        let mut longer = point.0.clone();
                        longer.push((name.clone(), value.clone()));
                        (places + place, Point(longer))
                    })
                })
                .collect();
        }
        let whole = full || points.len() <= FEW;
        points.retain(|(places, _)| whole || places % 2 == 0);
        points.into_iter().map(|(_, point)| point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads;

    fn grid(axes: &[(&str, &[&str])]) -> Grid {
        Grid {
            workload: "w".to_owned(),
            fixed: BTreeMap::new(),
            axes: axes
                .iter()
                .map(|(name, values)| {
                    let values = values.iter().map(|value| (*value).to_owned());
                    ((*name).to_owned(), values.collect())
                })
                .collect(),
        }
    }

    #[test]
    fn five_times_four_are_twenty_points_and_ten_where_nobody_asks_for_all() {
        let grid = grid(&[
            ("capacity", &["1", "2", "3", "4", "5"]),
            ("batch", &["1", "2", "3", "4"]),
        ]);
        assert_eq!(grid.points(true).len(), 20);
        let some = grid.points(false);
        assert_eq!(some.len(), 10);
        for (name, values) in &grid.axes {
            for value in values {
                let wanted = (name.clone(), value.clone());
                assert!(some.iter().any(|point| point.0.contains(&wanted)));
            }
        }
    }

    #[test]
    fn a_small_grid_is_measured_whole() {
        let grid = grid(&[("a", &["1", "2"]), ("b", &["x", "y", "z"])]);
        let points: Vec<String> = grid.points(false).iter().map(Point::text).collect();
        assert_eq!(
            points,
            [
                "a=1 b=x", "a=1 b=y", "a=1 b=z", "a=2 b=x", "a=2 b=y", "a=2 b=z"
            ]
        );
    }

    #[test]
    fn a_file_that_is_no_grid_is_a_wrong_command_line() {
        for text in [
            "{}",
            r#"[{"workload": "w", "axes": []}]"#,
            r#"[{"workload": "w", "axes": [["a", []]]}]"#,
            r#"[{"workload": "w", "axes": [["a", ["1"]]], "more": 1}]"#,
        ] {
            assert_eq!(Grid::parse(text).unwrap_err().exit_status(), 2, "{text}");
        }
    }

    #[test]
    fn every_grid_is_of_a_workload_that_can_be_swept() {
        for grid in Grid::known() {
            let workload = workloads::find(&grid.workload).unwrap();
            assert!(workload.cells.is_some(), "{}", grid.workload);
            assert_eq!(grid.points(true).len(), 20, "{}", grid.workload);
            assert_eq!(grid.points(false).len(), 10, "{}", grid.workload);
            let pinned = grid.fixed["placement"] == "one_cpu";
            assert_eq!(pinned, workload.group == "runtime", "{}", grid.workload);
        }
    }
}
