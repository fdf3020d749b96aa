//! A swept grid in readable form, and its samples.

use std::fmt::Write;

use crate::csv::field;
use crate::figure::quantity;
use crate::statistics::{Ratio, interval, median, ratio_of_pairs};
use crate::sweep::{Best, Measured, Swept};
use crate::table::aligned;

/// The points from best to worst, then the conclusion.
#[must_use]
pub fn markdown(swept: &Swept) -> String {
    let Some(best) = swept.best() else {
        return format!("{}: nothing was measured\n", swept.workload);
    };
    let mut order: Vec<_> = swept.points.iter().collect();
    order.sort_by(|one, other| {
        let middle = |point: &Measured| median(&point.times).unwrap_or(f64::INFINITY);
        middle(one).total_cmp(&middle(other))
    });
    let mut lines = vec![["point", "median", "95 %", "best / this"].map(str::to_owned)];
    for measured in order {
        let (Some(middle), Some(ends)) = (median(&measured.times), interval(&measured.times))
        else {
            continue;
        };
        let ratio = ratio_of_pairs(&best.best.times, &measured.times);
        lines.push([
            measured.point.text(),
            quantity(middle, "ns"),
            format!(
                "{} - {}",
                quantity(ends.low, "ns"),
                quantity(ends.high, "ns")
            ),
            match ratio {
                _ if std::ptr::eq(measured, best.best) => "best".to_owned(),
                Some(ratio) => range(ratio),
                None => "-".to_owned(),
            },
        ]);
    }
    format!(
        "{}\n\n{}\n{}",
        swept.workload,
        aligned(&lines),
        conclusion(&best)
    )
}

fn range(ratio: Ratio) -> String {
    let mark = if ratio.high < 1.0 { "" } else { " =" };
    format!(
        "{:.3} ({:.3}-{:.3}){mark}",
        ratio.median, ratio.low, ratio.high
    )
}

fn conclusion(best: &Best<'_>) -> String {
    let name = best.best.point.text();
    let Some((next, ratio)) = &best.next else {
        return format!("Only {name} was measured.\n");
    };
    let next = next.point.text();
    let percent = |ratio: f64| 100.0 * (1.0 - ratio);
    let others = match best.as_good {
        1 => "1 other point".to_owned(),
        count => format!("{count} other points"),
    };
    if !best.stands_alone() {
        return format!(
            "No point is better: {name} has the smallest median, and {others} cannot be told apart from it.\n"
        );
    }
    let mut text = format!(
        "Best: {name}, {:.1} % ({:.1} to {:.1} %) less time than the next, {next}.\n",
        percent(ratio.median),
        percent(ratio.high),
        percent(ratio.low)
    );
    // Points further down with equally wide intervals.
    if best.as_good > 0 {
        writeln!(text, "But {others} (=) cannot be told apart from it.")
            .expect("a String takes any text");
    }
    text
}

/// RFC 4180: `workload,point,round,process,ns`, one line per sample of every point.
#[must_use]
pub fn csv(all: &[Swept]) -> String {
    let mut text = "workload,point,round,process,ns\r\n".to_owned();
    for swept in all {
        for measured in &swept.points {
            let point = field(&measured.point.text());
            let times = measured.times.iter().zip(measured.times.process());
            for (round, (ns, process)) in times.enumerate() {
                writeln!(text, "{},{point},{round},{process},{ns}\r", swept.workload)
                    .expect("a String takes any text");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::Point;

    fn swept(first: &[f64], second: &[f64]) -> Swept {
        let measured = |value: &str, times: &[f64]| Measured {
            point: Point(vec![("capacity".to_owned(), value.to_owned())]),
            times: times.to_vec().into(),
        };
        Swept {
            workload: "spsc_threads".to_owned(),
            points: vec![measured("64", first), measured("1024", second)],
        }
    }

    #[test]
    fn the_best_comes_first_and_is_said_to_be_better() {
        let text = markdown(&swept(&[4.0; 5], &[3.0; 5]));
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[4].contains("capacity=1024") && lines[4].contains("best"),
            "{text}"
        );
        assert!(lines[5].contains("0.750 (0.750-0.750)"), "{text}");
        assert!(
            text.ends_with("Best: capacity=1024, 25.0 % (25.0 to 25.0 %) less time than the next, capacity=64.\n"),
            "{text}"
        );
    }

    #[test]
    fn where_none_is_better_that_is_the_result() {
        let text = markdown(&swept(
            &[3.0, 4.0, 5.0, 4.0, 3.0],
            &[4.0, 3.0, 4.0, 5.0, 4.0],
        ));
        assert!(
            text.contains("No point is better: capacity=") && text.contains("1 other point "),
            "{text}"
        );
    }

    #[test]
    fn a_noisy_point_further_down_is_not_passed_over() {
        let mut swept = swept(&[3.0; 5], &[4.0; 5]);
        swept.points.push(Measured {
            point: Point(vec![("capacity".to_owned(), "8".to_owned())]),
            times: vec![2.0, 2.0, 9.0, 9.0, 9.0].into(),
        });
        let text = markdown(&swept);
        assert!(
            text.contains("next, capacity=1024.\nBut 1 other point (=) cannot"),
            "{text}"
        );
    }

    #[test]
    fn every_sample_is_a_line() {
        assert_eq!(
            csv(&[swept(&[1.5], &[2.0])]),
            "workload,point,round,process,ns\r\nspsc_threads,capacity=64,0,0,1.5\r\nspsc_threads,capacity=1024,0,0,2\r\n"
        );
    }
}
