//! The output of `regress`.

use std::fmt::Write;

use crate::regress::{Figure, Line, Outcome};

/// The lines that changed, then a summary. `every` also prints the others.
#[must_use]
pub fn text(lines: &[Line], threshold: f64, every: bool) -> String {
    let mut text = String::new();
    for line in lines {
        if !every && line.outcome == Outcome::Same {
            continue;
        }
        let mark = match &line.outcome {
            Outcome::Worse => "WORSE",
            Outcome::Better => "better",
            Outcome::Same => "same",
            Outcome::New => "new",
            Outcome::NotJudged(_) => "not judged",
        };
        let params = if line.params.is_empty() {
            String::new()
        } else {
            format!(" [{}]", line.params)
        };
        writeln!(text, "{mark:10}  {}{params}", line.workload).expect("a String takes any text");
        let detail = detail(line);
        writeln!(text, "            {}: {detail}", line.figure).expect("a String takes any text");
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text + &summary(lines, threshold)
}

fn detail(line: &Line) -> String {
    let moved = match (&line.before, &line.now) {
        (Some(before), Some(now)) => format!("{} -> {}", range(before), range(now)),
        (None, Some(now)) => range(now),
        (Some(before), None) => format!("was {}", range(before)),
        (None, None) => String::new(),
    };
    match (&line.outcome, line.worse_by) {
        (Outcome::NotJudged(why), _) => format!("{moved}; {why}"),
        (_, Some(change)) if change.is_finite() => {
            let detectable = line.detectable.unwrap_or(0.0);
            format!(
                "{moved}, {}; detectable from {detectable:.1} %",
                said(change)
            )
        }
        (Outcome::New, _) => format!("{moved}; the baseline has no such row"),
        _ => moved,
    }
}

fn said(worse_by: f64) -> String {
    if worse_by == 0.0 {
        "unchanged".to_owned()
    } else if worse_by > 0.0 {
        format!("{worse_by:.1} % worse")
    } else {
        format!("{:.1} % better", -worse_by)
    }
}

fn range(figure: &Figure) -> String {
    let Figure {
        value, low, high, ..
    } = figure;
    // A figure without a width is a count.
    if low == high {
        return number(*value);
    }
    format!("{} ({}-{})", number(*value), number(*low), number(*high))
}

/// A number with four significant digits.
fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let magnitude = value.abs().log10().floor() as i32;
    let digits = usize::try_from((3 - magnitude).max(0)).unwrap_or(0);
    format!("{value:.digits$}")
}

fn summary(lines: &[Line], threshold: f64) -> String {
    let count = |wanted: fn(&Outcome) -> bool| lines.iter().filter(|l| wanted(&l.outcome)).count();
    let worse = count(|outcome| *outcome == Outcome::Worse);
    let better = count(|outcome| *outcome == Outcome::Better);
    let same = count(|outcome| *outcome == Outcome::Same);
    let new = count(|outcome| *outcome == Outcome::New);
    let not_judged = count(|outcome| matches!(outcome, Outcome::NotJudged(_)));
    let mut text = format!(
        "{worse} worse, {better} better, {same} as before, {not_judged} not judged, {new} new; \
         a row moved where it moved by more than {threshold} % and out of its noise.\n"
    );
    if worse == 0 && better + same == 0 {
        text.push_str("Nothing could be judged: this is not a pass.\n");
    }
    text
}
