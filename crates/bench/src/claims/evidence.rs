//! The rows of one machine, and how a claim finds the rows that test it.

use std::fmt;

use crate::report::{Report, Row};

/// Selects a row of a workload, or its rows against several peers, by parameters that the rows must
/// have.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The workload.
    pub workload: &'static str,
    /// The parameters that the row must have. Other parameters may have any value.
    pub params: &'static [(&'static str, &'static str)],
    /// The measured subject; `None` matches any.
    pub subject: Option<&'static str>,
}

impl Point {
    /// A point with Thalweg as the subject.
    #[must_use]
    pub const fn ours(
        workload: &'static str,
        params: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self {
            workload,
            params,
            subject: Some("thalweg"),
        }
    }

    /// The same point with this subject.
    #[must_use]
    pub const fn of(self, subject: &'static str) -> Self {
        Self {
            subject: Some(subject),
            ..self
        }
    }

    fn is(&self, row: &Row) -> bool {
        row.workload == self.workload
            && self.subject.is_none_or(|subject| row.subject == subject)
            && self
                .params
                .iter()
                .all(|(name, value)| row.params.get(*name).is_some_and(|found| found == value))
    }
}

impl fmt::Display for Point {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "`{}`", self.workload)?;
        for (name, value) in self.params {
            write!(to, " {name}={value}")?;
        }
        match self.subject {
            Some(subject) if subject != "thalweg" => write!(to, " of {subject}"),
            _ => Ok(()),
        }
    }
}

/// A description of missing evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(pub String);

/// The measurements of one machine. Those of different machines are never mixed.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// Newest first.
    reports: Vec<&'a Report>,
}

impl<'a> Evidence<'a> {
    /// The evidence from these reports, all of one machine.
    #[must_use]
    pub fn new(mut reports: Vec<&'a Report>) -> Self {
        // RFC 3339 in UTC sorts as text.
        reports.sort_by(|a, b| b.started.cmp(&a.started));
        Self { reports }
    }

    /// The rows at `point` of the newest run that has any, in the file's order.
    ///
    /// # Errors
    /// No run has such a row.
    pub fn rows(&self, point: &Point) -> Result<Vec<&'a Row>, Missing> {
        let of = |report: &&'a Report| -> Vec<&'a Row> {
            let rows = report.results.iter();
            rows.filter(|row| point.is(row)).collect()
        };
        let found = self.reports.iter().map(of).find(|rows| !rows.is_empty());
        found.ok_or_else(|| Missing(point.to_string()))
    }

    /// The first of [`Evidence::rows`]. Figures of the subject alone do not depend on the peer.
    ///
    /// # Errors
    /// No run has such a row.
    pub fn row(&self, point: &Point) -> Result<&'a Row, Missing> {
        Ok(self.rows(point)?[0])
    }

    /// A figure of that row.
    ///
    /// # Errors
    /// There is no such row, or the figure is missing.
    pub fn metric(&self, point: &Point, name: &str) -> Result<f64, Missing> {
        let value = self.row(point)?.metrics.get(name).copied();
        value.ok_or_else(|| Missing(format!("`{name}` of {point}")))
    }

    /// All rows of this workload, from all runs.
    pub fn all(&self, workload: &str) -> impl Iterator<Item = &'a Row> {
        self.reports
            .iter()
            .flat_map(|report| &report.results)
            .filter(move |row| row.workload == workload)
    }

    /// The number of processors that every run was allowed to use.
    #[must_use]
    pub fn processors(&self) -> usize {
        let of = |report: &&Report| count(&report.host.affinity);
        self.reports.iter().map(of).min().unwrap_or(0)
    }

    /// The cost of reading the clock, if the runs report it.
    #[must_use]
    pub fn clock_ns(&self) -> Option<f64> {
        let of = |report: &&Report| {
            let said = report.host.clock.strip_suffix(" ns a reading")?;
            said.rsplit(' ').next()?.parse().ok()
        };
        self.reports.iter().find_map(of)
    }
}

/// The number of processors in a list such as `0-3,7`.
fn count(list: &str) -> usize {
    let number = |text: &str| text.trim().parse::<usize>().ok();
    let of = |part: &str| match part.split_once('-') {
        Some((first, last)) => Some(number(last)?.checked_sub(number(first)?)? + 1),
        None => number(part).map(|_| 1),
    };
    list.split(',').filter_map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    const IDLE: Point = Point::ours("idle", &[]);
    const TWO: Point = Point::ours("search_overhead", &[("workers", "2")]);

    #[test]
    fn the_newest_run_that_has_the_row_counts() {
        let (mut old, new) = (sample(), sample());
        old.started = "2025-01-02T03:04:05Z".to_owned();
        old.results[0].subject_median = 9.0;
        let mut newest = sample();
        newest.started = "2027-01-02T03:04:05Z".to_owned();
        newest.results.remove(0);
        let evidence = Evidence::new(vec![&old, &new, &newest]);
        assert_eq!(evidence.row(&TWO).unwrap().subject_median, 1.0);
        assert_eq!(evidence.all("idle").count(), 3);
    }

    #[test]
    fn what_differs_in_a_parameter_or_the_subject_is_another_row() {
        let report = sample();
        let evidence = Evidence::new(vec![&report]);
        assert!(evidence.row(&IDLE).is_ok());
        assert!(evidence.row(&IDLE.of("direct")).is_err());
        let four = Point::ours("search_overhead", &[("workers", "4")]);
        let missing = evidence.row(&four).unwrap_err();
        assert_eq!(missing.0, "`search_overhead` workers=4");
        let missing = evidence.metric(&IDLE, "ops_per_s").unwrap_err();
        assert_eq!(missing.0, "`ops_per_s` of `idle`");
    }

    #[test]
    fn a_machine_says_its_processors_and_its_clock() {
        let report = sample();
        let evidence = Evidence::new(vec![&report]);
        assert_eq!(evidence.processors(), 2);
        assert_eq!(evidence.clock_ns(), Some(25.0));
        assert_eq!(count("0-3,7"), 5);
        assert_eq!(count("unknown"), 0);
        let mut silent = sample();
        silent.host.clock = "unknown".to_owned();
        assert_eq!(Evidence::new(vec![&silent]).clock_ns(), None);
    }
}
