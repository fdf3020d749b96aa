//! The samples as CSV, one per line, for readers who want to do their own arithmetic.

use std::fmt::Write;

use crate::report::{Report, Row, Winner};

/// RFC 4180: `workload,params,side,name,unit,round,process,value`, one line per sample of either
/// side of every row. Older result files have no samples, and thus no lines.
#[must_use]
pub fn samples(report: &Report) -> String {
    let mut text = "workload,params,side,name,unit,round,process,value\r\n".to_owned();
    for row in &report.results {
        let params: Vec<String> = row.params.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let params = field(&params.join(" "));
        let peer = row.peer.as_deref().unwrap_or_default();
        let sides = [
            ("subject", row.subject.as_str(), &row.subject_samples),
            ("peer", peer, &row.peer_samples),
        ];
        for (side, name, values) in sides {
            for (round, (value, process)) in values.iter().zip(&row.process).enumerate() {
                let (workload, name, unit) = (&row.workload, field(name), &row.unit);
                writeln!(
                    text,
                    "{workload},{params},{side},{name},{unit},{round},{process},{value}\r"
                )
                .expect("a String takes any text");
            }
        }
    }
    text
}

/// RFC 4180: one line per row of every run, with all fields of the result file except the checks.
#[must_use]
pub fn results(reports: &[Report]) -> String {
    let mut text = "run,started,commit,cpu,workload,group,params,subject,peer,unit,subject_median,subject_low,subject_high,\
                    peer_median,peer_low,peer_high,ratio,ratio_low,ratio_high,winner,samples,processes,metrics,target,verdict,best_peer\r\n"
        .to_owned();
    for (run, report) in (1..).zip(reports) {
        for row in &report.results {
            let mut cells = vec![
                run.to_string(),
                report.started.clone(),
                report.commit.clone(),
                report.host.cpu.clone(),
            ];
            cells.extend(cells_of(row));
            let cells: Vec<String> = cells.iter().map(|cell| field(cell)).collect();
            writeln!(text, "{}\r", cells.join(",")).expect("a String takes any text");
        }
    }
    text
}

fn cells_of(row: &Row) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let params: Vec<String> = row.params.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let metrics: Vec<String> = row
        .metrics
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    let (ours, theirs) = (row.subject_interval, row.peer_interval);
    vec![
        row.workload.clone(),
        row.group.clone(),
        params.join(" "),
        row.subject.clone(),
        text(&row.peer),
        row.unit.clone(),
        number(Some(row.subject_median)),
        number(ours.map(|interval| interval.low)),
        number(ours.map(|interval| interval.high)),
        number(row.peer_median),
        number(theirs.map(|interval| interval.low)),
        number(theirs.map(|interval| interval.high)),
        number(row.ratio.map(|ratio| ratio.median)),
        number(row.ratio.map(|ratio| ratio.low)),
        number(row.ratio.map(|ratio| ratio.high)),
        row.winner.map_or("", Winner::name).to_owned(),
        row.samples.to_string(),
        row.processes()
            .map_or_else(String::new, |count| count.to_string()),
        metrics.join(" "),
        text(&row.target),
        text(&row.verdict),
        row.best_peer
            .map_or_else(String::new, |best| best.to_string()),
    ]
}

/// A field, quoted if necessary.
#[must_use]
pub fn field(text: &str) -> String {
    if text.contains(['"', ',', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Row;
    use crate::report::tests::sample;
    use crate::statistics::Samples;

    #[test]
    fn result_is_a_line_with_as_many_fields_as_the_head() {
        let text = results(&[sample(), sample()]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        for line in &lines {
            assert_eq!(line.split(',').count(), 26, "{line}");
        }
        assert!(
            lines[1].starts_with("1,2026-01-02T03:04:05Z,0123abcd,A processor,search_overhead,")
        );
        assert!(lines[1].contains(",0.5,0.5,0.5,subject,3,3,,ratio <= 1.05,met,"));
        assert!(lines[4].starts_with("2,"));
    }

    #[test]
    fn sample_is_a_line_and_awkward_text_is_quoted() {
        let mut report = sample();
        report.results = vec![Row::new(
            ("w", "g"),
            &[("pattern", "a,\"b\"")],
            "s",
            ("thalweg", Samples::new(vec![1.5, 2.0], vec![0, 1])),
            Some(("direct", Samples::new(vec![1.0, 4.0], vec![0, 1]))),
        )];
        assert_eq!(
            samples(&report),
            "workload,params,side,name,unit,round,process,value\r\n\
             w,\"pattern=a,\"\"b\"\"\",subject,thalweg,s,0,0,1.5\r\n\
             w,\"pattern=a,\"\"b\"\"\",subject,thalweg,s,1,1,2\r\n\
             w,\"pattern=a,\"\"b\"\"\",peer,direct,s,0,0,1\r\n\
             w,\"pattern=a,\"\"b\"\"\",peer,direct,s,1,1,4\r\n"
        );
    }
}
