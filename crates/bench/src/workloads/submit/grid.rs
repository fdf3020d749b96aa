//! Subjects times numbers of producers, all in the same rounds. Subjects, and numbers of producers,
//! are therefore compared pair by pair.

use std::time::Duration;

use super::knobs::Settings;
use super::sample::Load;
use super::subjects::{self, Subject};
use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::processes;
use crate::report::Metrics;
use crate::statistics::{Interval, Ratio, Samples, ratio_of_pairs};

/// The number of fresh processes.
const PROCESSES: usize = 3;

/// The checks of every sample, as recorded in results.
pub const CHECKED: &str = "callbacks = submissions, none twice, none failed, each producer's in order, payloads and scalars intact";

/// The samples of a grid.
#[derive(Debug)]
pub struct Grid {
    taken: Vec<(&'static Subject, usize, Samples<Sample>)>,
}

impl Grid {
    /// Takes the samples, for a workload whose `cells` is [`open`].
    ///
    /// # Errors
    /// A check failed, or the operating system reported an error.
    pub fn take(
        lab: &Lab,
        workload: &str,
        settings: &Settings,
        subjects: &[&'static Subject],
    ) -> Result<Self, Problem> {
        let points: Vec<(&'static Subject, usize)> = settings
            .producers
            .iter()
            .flat_map(|producers| subjects.iter().map(|subject| (*subject, *producers)))
            .collect();
        let names: Vec<String> = points
            .iter()
            .map(|(subject, producers)| name(subject, *producers))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let params = [
            ("per_thread", settings.each.to_string()),
            ("settle_ms", settings.settle.as_millis().to_string()),
        ];
        let params = params.each_ref().map(|(key, value)| (*key, value.as_str()));
        let cell = Cell::new(workload, &params, &names);
        let plan = lab.plan(Some(settings.iterations * PROCESSES));
        let taken = processes::sample(lab, &cell, plan, PROCESSES)?;
        let taken = points
            .into_iter()
            .zip(taken)
            .map(|((subject, producers), samples)| (subject, producers, samples))
            .collect();
        Ok(Self { taken })
    }

    /// The samples of one point, in ns per request.
    ///
    /// # Panics
    /// The point was not measured.
    #[must_use]
    pub fn times(&self, subject: &Subject, producers: usize) -> Samples {
        processes::times(self.samples(subject, producers))
    }

    /// The metrics of one point: `ops_per_s`, `completed_per_s`, `items_per_wake` if the consumer
    /// was woken, and `scaling_vs_1`.
    ///
    /// # Panics
    /// The point was not measured.
    #[must_use]
    pub fn metrics(&self, subject: &Subject, producers: usize) -> Metrics {
        let mut metrics = processes::metrics(self.samples(subject, producers));
        // Requests per second as a multiple of one producer's: the median over the rounds.
        let times = [1, producers].map(|producers| self.times(subject, producers));
        if let Some(Ratio { median, low, high }) = ratio_of_pairs(&times[0], &times[1]) {
            metrics.estimate("scaling_vs_1", median, Interval { low, high });
        }
        metrics
    }

    fn samples(&self, subject: &Subject, producers: usize) -> &Samples<Sample> {
        let found = self.taken.iter().find(|(taken, count, _)| {
            (taken.structure, taken.rule, *count) == (subject.structure, subject.rule, producers)
        });
        &found.expect("only what was asked for is looked up").2
    }
}

/// The name of a point in the list of a cell's subjects.
fn name(subject: &Subject, producers: usize) -> String {
    format!("{} {} {producers}", subject.structure, subject.rule)
}

fn point(name: &str) -> Option<(&'static Subject, usize)> {
    let mut words = name.split(' ');
    let subject = subjects::find(words.next()?, words.next()?)?;
    let producers = words.next()?.parse().ok()?;
    words.next().is_none().then_some((subject, producers))
}

/// Sets up the points of a cell.
///
/// # Errors
/// A subject does not exist.
pub fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let each = cell.number("per_thread")?;
    let settle = Duration::from_millis(cell.number("settle_ms")?);
    let side = |name: &String| {
        let (subject, producers) =
            point(name).ok_or_else(|| Problem::Usage(format!("`{name}` is no subject")))?;
        let load = Load {
            producers,
            each,
            settle,
        };
        Ok(Side::new(move || (subject.take)(&load)))
    };
    cell.subjects.iter().map(side).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(times: &[(&'static Subject, usize, [f64; 3])]) -> Grid {
        let sample = |ns| Sample {
            ns,
            ..Sample::default()
        };
        let taken = times
            .iter()
            .map(|(subject, producers, ns)| (*subject, *producers, ns.map(sample).to_vec().into()))
            .collect();
        Grid { taken }
    }

    #[test]
    fn scaling_is_formed_round_by_round() {
        let subject = &subjects::THALWEG;
        let grid = grid(&[
            (subject, 1, [10.0, 40.0, 20.0]),
            (subject, 8, [5.0, 80.0, 10.0]),
        ]);
        let metric = |name, producers| grid.metrics(subject, producers).get(name).unwrap().0;
        assert_eq!(metric("scaling_vs_1", 8), 2.0);
        assert_eq!(metric("scaling_vs_1", 1), 1.0);
        assert_eq!(*grid.times(subject, 8), [5.0, 80.0, 10.0]);
        assert_eq!(metric("ops_per_s", 8), 1e8);
    }

    #[test]
    fn every_point_is_found_by_its_name() {
        for subject in subjects::all() {
            let (found, producers) = point(&name(subject, 16)).unwrap();
            assert_eq!(
                (found.structure, found.rule, producers),
                (subject.structure, subject.rule, 16)
            );
        }
        for odd in [
            "lanes edge",
            "lanes edge x",
            "lanes edge 1 2",
            "lane edge 1",
        ] {
            assert!(point(odd).is_none());
        }
    }

    #[test]
    fn a_cell_takes_a_sample_of_each_point() {
        let params = [("per_thread", "50"), ("settle_ms", "30000")];
        let cell = Cell::new("ffi_submit", &params, &["lanes edge 2", "vyukov flag 1"]);
        let mut sides = open(&cell).unwrap();
        for side in &mut sides {
            assert!(side.take().unwrap().ns > 0.0);
        }
        assert!(open(&Cell::new("ffi_submit", &params, &["warp edge 1"])).is_err());
    }
}
