//! Grids: the workloads, their knobs, and the values to measure.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::problem::Problem;

/// A grid as written in [`GRIDS`]: the workload, the fixed knobs, and the axes with their values.
type Line = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static [(&'static str, &'static [&'static str])],
);

/// The knobs of our runtime. The interval matters only with the preempting allocator, which these
/// grids select.
const RUNTIME: &[(&str, &[&str])] = &[
    ("THALWEG_ALLOC_INTERVAL", &["32", "64", "128", "256", "512"]),
    ("THALWEG_TIMESLICE", &["50us", "100us", "200us", "400us"]),
];

/// The default grids of `sweep`, one per workload. A name that begins with `THALWEG_` is an
/// environment variable; any other is a parameter of the workload's cells.
pub const GRIDS: &[Line] = &[
    (
        "spsc_threads",
        &[("placement", "free"), ("messages", "timed")],
        &[
            ("capacity", &["64", "256", "1024", "4096", "8192"]),
            ("batch", &["1", "16", "64", "256"]),
        ],
    ),
    (
        "spawn_storm_busy",
        &[
            ("allocator", "preempting"),
            ("drivers", "time"),
            ("hook", "silent"),
            ("lifetime", "warm"),
            ("workers", "2"),
            ("actors", "10000"),
            ("yielders", "8"),
        ],
        RUNTIME,
    ),
    (
        "catch_unwind_panics",
        &[
            ("allocator", "preempting"),
            ("drivers", "time"),
            ("hook", "silent"),
            ("lifetime", "warm"),
            ("workers", "2"),
            ("actors", "10000"),
        ],
        RUNTIME,
    ),
    (
        "many_timers",
        &[
            ("allocator", "preempting"),
            ("drivers", "time"),
            ("hook", "silent"),
            ("lifetime", "warm"),
            ("workers", "2"),
            ("sleeps", "10000"),
        ],
        RUNTIME,
    ),
    (
        "mpsc_contention",
        &[
            ("allocator", "preempting"),
            ("drivers", "time"),
            ("hook", "silent"),
            ("lifetime", "warm"),
            ("workers", "2"),
            ("producers", "32"),
            ("each", "10000"),
        ],
        RUNTIME,
    ),
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
        let owned = |(workload, fixed, axes): &Line| Self {
            workload: (*workload).to_owned(),
            fixed: fixed
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            axes: axes
                .iter()
                .map(|(name, values)| {
                    let values = values.iter().map(|value| (*value).to_owned());
                    ((*name).to_owned(), values.collect())
                })
                .collect(),
        };
        GRIDS.iter().map(owned).collect()
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
            assert!(grid.points(false).len() > 1, "{}", grid.workload);
        }
    }
}
