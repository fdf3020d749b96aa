//! Subjects times numbers of threads, all in the same rounds. Subjects, and numbers of threads, are
//! therefore compared pair by pair.

use std::time::Duration;

use super::knobs::Settings;
use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::processes::{self, PROCESSES};
use crate::report::{Metrics, Row};
use crate::statistics::{Interval, Ratio, Samples, ratio_of_pairs};
use crate::workloads::Workload;

/// The parameters of a sample.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Threads that submit.
    pub producers: usize,
    /// Requests per thread.
    pub each: u64,
    /// How long the consumer may take for the remaining requests after the last thread has
    /// submitted.
    pub settle: Duration,
}

/// A subject.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// What carries the requests; the subject's name in a result.
    pub name: &'static str,
    /// The difference between subjects of one name: the wake-up rule, or the requests per submission.
    pub variant: &'static str,
    /// Takes one sample, compiled for this subject alone.
    pub take: fn(&Load) -> Result<Sample, Problem>,
}

/// The subject of this name and variant.
#[must_use]
pub fn find<'a>(subjects: &'a [Subject], name: &str, variant: &str) -> Option<&'a Subject> {
    subjects
        .iter()
        .find(|subject| (subject.name, subject.variant) == (name, variant))
}

/// The samples of a grid.
#[derive(Debug)]
pub struct Grid {
    workload: &'static Workload,
    taken: Vec<(&'static Subject, usize, Samples<Sample>)>,
}

impl Grid {
    /// Takes the samples, for a workload whose `cells` is [`open`] with the same subjects. Its peers
    /// are of this commit.
    ///
    /// # Errors
    /// A check failed, or the operating system reported an error.
    pub fn take(
        lab: &mut Lab,
        workload: &'static Workload,
        settings: &Settings,
        subjects: impl Iterator<Item = &'static Subject> + Clone,
    ) -> Result<Self, Problem> {
        for peer in workload.peers {
            let version = "of this commit".to_owned();
            lab.peers.insert((*peer).to_owned(), version);
        }
        let producers = settings.producers.iter();
        let points: Vec<(&'static Subject, usize)> = producers
            .flat_map(|producers| subjects.clone().map(|subject| (subject, *producers)))
            .collect();
        let names: Vec<String> = points.iter().map(|point| point_name(*point)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (each, settle) = (settings.each, settings.settle.as_millis());
        let params = [
            ("per_thread", each.to_string()),
            ("settle_ms", settle.to_string()),
        ];
        let params = params.each_ref().map(|(key, value)| (*key, value.as_str()));
        let cell = Cell::new(workload.name, &params, &names);
        let plan = lab.plan(Some(settings.iterations * PROCESSES));
        let taken = processes::sample(lab, &cell, plan, PROCESSES)?;
        let taken = points.into_iter().zip(taken);
        Ok(Self {
            workload,
            taken: taken
                .map(|((subject, producers), samples)| (subject, producers, samples))
                .collect(),
        })
    }

    /// A row for one point in ns per request, against another subject with the same number of
    /// threads if there is one. Its metrics are `ops_per_s`, `completed_per_s`, `items_per_wake` if
    /// the consumer was woken, `scaling_vs_1`, and `cost_vs_4` if four threads were measured; those of
    /// the peer begin with `peer_`.
    ///
    /// # Panics
    /// A point was not measured.
    #[must_use]
    pub fn row(
        &self,
        subject: &Subject,
        producers: usize,
        peer: Option<&Subject>,
        params: &[(&str, &str)],
        checked: &str,
    ) -> Row {
        let count = producers.to_string();
        let mut params = params.to_vec();
        params.push(("producers", &count));
        let row = Row::new(
            (self.workload.name, self.workload.group),
            &params,
            "ns",
            (subject.name, self.times(subject, producers)),
            peer.map(|peer| (peer.name, self.times(peer, producers))),
        );
        let row = row.with_metrics("", self.metrics(subject, producers));
        let row = match peer {
            Some(peer) => row.with_metrics("peer_", self.metrics(peer, producers)),
            None => row,
        };
        row.checked(checked)
    }

    /// A grid with the samples of one thread and of eight.
    #[cfg(test)]
    pub(super) fn of_two(
        workload: &'static Workload,
        subject: &'static Subject,
        [one, eight]: [Samples<Sample>; 2],
    ) -> Self {
        Self {
            workload,
            taken: vec![(subject, 1, one), (subject, 8, eight)],
        }
    }

    fn times(&self, subject: &Subject, producers: usize) -> Samples {
        processes::times(self.samples(subject, producers))
    }

    fn metrics(&self, subject: &Subject, producers: usize) -> Metrics {
        let mut metrics = processes::metrics(self.samples(subject, producers));
        // Requests per second as a multiple of one thread's, round by round.
        let (one, many) = (self.times(subject, 1), self.times(subject, producers));
        if let Some(Ratio { median, low, high }) = ratio_of_pairs(&one, &many) {
            metrics.estimate("scaling_vs_1", median, Interval { low, high });
        }
        // The time of a request as a multiple of that with four threads.
        let four = self.find_samples(subject, 4).map(processes::times);
        if let Some(Ratio { median, low, high }) =
            four.and_then(|four| ratio_of_pairs(&many, &four))
        {
            metrics.estimate("cost_vs_4", median, Interval { low, high });
        }
        metrics
    }

    fn samples(&self, subject: &Subject, producers: usize) -> &Samples<Sample> {
        let found = self.find_samples(subject, producers);
        found.expect("only what was asked for is looked up")
    }

    fn find_samples(&self, subject: &Subject, producers: usize) -> Option<&Samples<Sample>> {
        let wanted = point_name((subject, producers));
        let mut taken = self.taken.iter();
        let found = taken.find(|(subject, count, _)| point_name((subject, *count)) == wanted)?;
        Some(&found.2)
    }
}

/// The name of a point in the list of a cell's subjects.
fn point_name((subject, producers): (&Subject, usize)) -> String {
    format!("{} {} {producers}", subject.name, subject.variant)
}

fn point<'a>(subjects: &'a [Subject], name: &str) -> Option<(&'a Subject, usize)> {
    let mut words = name.split(' ');
    let subject = find(subjects, words.next()?, words.next()?)?;
    let producers = words.next()?.parse().ok()?;
    words.next().is_none().then_some((subject, producers))
}

/// Sets up the points of a cell.
///
/// # Errors
/// A subject does not exist.
pub fn open(
    cell: &Cell,
    subjects: &'static [Subject],
) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let each = cell.number("per_thread")?;
    let settle = Duration::from_millis(cell.number("settle_ms")?);
    let side = |name: &String| {
        let (subject, producers) = point(subjects, name)
            .ok_or_else(|| Problem::Usage(format!("`{name}` is not a subject")))?;
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
    use crate::workloads::submit::{ingress, subjects::SUBJECTS};

    #[test]
    fn scaling_is_formed_round_by_round() {
        let subject = &SUBJECTS[0];
        let samples = |ns: [f64; 3]| {
            let sample = |ns| Sample {
                ns,
                ..Sample::default()
            };
            Samples::from(ns.map(sample).to_vec())
        };
        let taken = [[10.0, 40.0, 20.0], [5.0, 80.0, 10.0]].map(samples);
        let grid = Grid::of_two(&ingress::WORKLOAD, subject, taken);
        let row = grid.row(subject, 8, Some(subject), &[], "");
        assert_eq!(row.metrics["scaling_vs_1"], 2.0);
        assert_eq!(row.metrics["peer_ops_per_s"], 1e8);
        assert_eq!(row.subject_samples, [5.0, 80.0, 10.0]);
        let one = grid.row(subject, 1, None, &[], "");
        assert_eq!(one.metrics["scaling_vs_1"], 1.0);
    }

    #[test]
    fn every_point_is_found_by_its_name() {
        for subject in &SUBJECTS {
            let (found, producers) = point(&SUBJECTS, &point_name((subject, 16))).unwrap();
            let found = (found.name, found.variant, producers);
            assert_eq!(found, (subject.name, subject.variant, 16));
        }
        for odd in [
            "lanes edge",
            "lanes edge x",
            "lanes edge 1 2",
            "lane edge 1",
        ] {
            assert!(point(&SUBJECTS, odd).is_none());
        }
    }

    #[test]
    fn a_cell_takes_a_sample_of_each_point() {
        let params = [("per_thread", "50"), ("settle_ms", "30000")];
        let cell = Cell::new("ingress", &params, &["lanes edge 2", "vyukov flag 1"]);
        for mut side in open(&cell, &SUBJECTS).unwrap() {
            assert!(side.take().unwrap().ns > 0.0);
        }
        let unknown = Cell::new("ingress", &params, &["warp edge 1"]);
        assert!(open(&unknown, &SUBJECTS).is_err());
    }
}
