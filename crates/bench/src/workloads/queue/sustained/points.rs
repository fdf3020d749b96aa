//! A point of a long run, and the conclusions from many points.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use crate::problem::Problem;
use crate::statistics::median;

/// The start of a run that is not judged, because memory is still settling.
const SETTLE: Duration = Duration::from_secs(600);
const HOUR: Duration = Duration::from_secs(3600);

/// The columns of [`Point::line`].
pub const HEAD: &str = "seconds,messages,ns_per_message,rss_kib,fds,mappings";

/// The resources of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Resident memory.
    pub rss_kib: u64,
    /// Open file descriptors.
    pub fds: u64,
    /// Mappings.
    pub mappings: u64,
}

impl Watched {
    /// Reads the current values.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn now() -> Result<Self, Problem> {
        let read = |path: &str| fs::read_to_string(path).map_err(Problem::io(path));
        let status = read("/proc/self/status")?;
        let rss = status.lines().find_map(|line| {
            line.strip_prefix("VmRSS:")?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        });
        let fds = fs::read_dir("/proc/self/fd").map_err(Problem::io("/proc/self/fd"))?;
        Ok(Self {
            rss_kib: rss.unwrap_or_default(),
            fds: fds.count() as u64,
            mappings: read("/proc/self/maps")?.lines().count() as u64,
        })
    }
}

/// The changes since the previous point.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Time since the run began.
    pub at: Duration,
    /// Time since the previous point.
    pub took: Duration,
    /// Messages since the previous point.
    pub messages: u64,
    /// The resources of the process at this point.
    pub left: Watched,
}

impl Point {
    /// Nanoseconds per message, including start and end of each round's threads.
    #[must_use]
    pub fn ns(&self) -> f64 {
        self.took.as_secs_f64() * 1e9 / self.messages.max(1) as f64
    }

    /// The point as a line of the log.
    #[must_use]
    pub fn line(&self) -> String {
        let Watched {
            rss_kib,
            fds,
            mappings,
        } = self.left;
        format!(
            "{:.1},{},{:.3},{rss_kib},{fds},{mappings}",
            self.at.as_secs_f64(),
            self.messages,
            self.ns()
        )
    }
}

/// Whether a run is long enough to detect leaks.
#[must_use]
pub fn is_long(ran: Duration) -> bool {
    ran >= 2 * SETTLE
}

/// Whole hours.
#[must_use]
pub fn hours(ran: Duration) -> u64 {
    ran.as_secs() / HOUR.as_secs()
}

/// The metrics of all points.
#[must_use]
pub fn metrics(points: &[Point]) -> BTreeMap<String, f64> {
    let messages: u64 = points.iter().map(|point| point.messages).sum();
    let mut metrics = BTreeMap::from([
        ("points".to_owned(), points.len() as f64),
        ("messages".to_owned(), messages as f64),
    ]);
    let times: Vec<f64> = points.iter().map(Point::ns).collect();
    if let Some(ns) = median(&times) {
        metrics.insert("ops_per_s".to_owned(), 1e9 / ns);
    }
    if let Some(worst) = worst_hour(points) {
        metrics.insert("worst_hour_percent".to_owned(), worst);
    }
    let ran = points.last().map_or(Duration::ZERO, |point| point.at);
    if is_long(ran) {
        let settled: Vec<&Point> = points.iter().filter(|point| point.at >= SETTLE).collect();
        if let (Some(first), Some(last)) = (settled.first(), settled.last()) {
            let more =
                |count: fn(&Watched) -> u64| count(&last.left) as f64 - count(&first.left) as f64;
            metrics.insert("fds_more".to_owned(), more(|left| left.fds));
            metrics.insert("mappings_more".to_owned(), more(|left| left.mappings));
            metrics.insert("rss_slope_kib_per_h".to_owned(), slope(&settled));
        }
    }
    metrics
}

/// The largest difference between the throughput of a whole hour and that of the first hour, in
/// percent.
fn worst_hour(points: &[Point]) -> Option<f64> {
    let mut of_hours: BTreeMap<u64, (u64, Duration)> = BTreeMap::new();
    for point in points {
        let hour = of_hours.entry(hours(point.at - point.took)).or_default();
        hour.0 += point.messages;
        hour.1 += point.took;
    }
    // The last hour may be incomplete.
    let ran = points.last()?.at;
    let mut rates = of_hours
        .into_iter()
        .filter(|(hour, _)| *hour < hours(ran))
        .map(|(_, (messages, took))| messages as f64 / took.as_secs_f64());
    let first = rates.next()?;
    rates
        .map(|rate| 100.0 * (rate / first - 1.0).abs())
        .reduce(f64::max)
}

/// KiB per hour, by least squares.
fn slope(points: &[&Point]) -> f64 {
    let count = points.len() as f64;
    let hour = |point: &Point| point.at.as_secs_f64() / HOUR.as_secs_f64();
    let mean_hour = points.iter().map(|point| hour(point)).sum::<f64>() / count;
    let mean_rss = points.iter().map(|p| p.left.rss_kib as f64).sum::<f64>() / count;
    let (mut both, mut square) = (0.0, 0.0);
    for point in points {
        let away = hour(point) - mean_hour;
        both += away * (point.left.rss_kib as f64 - mean_rss);
        square += away * away;
    }
    if square > 0.0 { both / square } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One point per minute for `minutes` minutes.
    fn points(minutes: u64, messages: impl Fn(u64) -> u64, rss: impl Fn(u64) -> u64) -> Vec<Point> {
        (1..=minutes)
            .map(|minute| Point {
                at: Duration::from_secs(60 * minute),
                took: Duration::from_secs(60),
                messages: messages(minute),
                left: Watched {
                    rss_kib: rss(minute),
                    fds: 9,
                    mappings: 40,
                },
            })
            .collect()
    }

    #[test]
    fn the_slope_is_of_what_comes_after_the_first_ten_minutes() {
        // Memory grows fast for nine minutes, then by 2 KiB per minute.
        let rss = |minute: u64| {
            if minute < 10 {
                500 * minute
            } else {
                5_000 + 2 * minute
            }
        };
        let metrics = metrics(&points(60, |_| 1_000, rss));
        assert!((metrics["rss_slope_kib_per_h"] - 120.0).abs() < 1e-6);
        assert_eq!(metrics["fds_more"], 0.0);
        assert_eq!(metrics["messages"], 60_000.0);
        assert!(
            !metrics.contains_key("worst_hour_percent"),
            "one hour has no other"
        );
    }

    #[test]
    fn an_hour_that_is_slower_than_the_first_shows() {
        let slower = |minute: u64| {
            if minute > 60 && minute <= 120 {
                800
            } else {
                1_000
            }
        };
        // The fourth hour is incomplete and does not count.
        let metrics = metrics(&points(200, slower, |_| 5_000));
        assert!((metrics["worst_hour_percent"] - 20.0).abs() < 1e-6);
    }

    #[test]
    fn a_short_run_claims_nothing_of_leaks() {
        let metrics = metrics(&points(19, |_| 1_000, |minute| minute));
        assert!(!metrics.contains_key("rss_slope_kib_per_h"));
        assert_eq!(metrics["points"], 19.0);
    }

    #[test]
    fn what_this_process_holds_is_counted() {
        let before = Watched::now().unwrap();
        assert!(before.rss_kib > 0 && before.mappings > 0);
        let _files: Vec<_> = (0..50)
            .map(|_| fs::File::open("/dev/null").unwrap())
            .collect();
        assert!(Watched::now().unwrap().fds >= before.fds + 40);
    }
}
