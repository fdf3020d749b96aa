//! The samples, one a line, for those who want to do their own arithmetic.

use std::fmt::Write;

use crate::report::Report;

/// RFC 4180: `workload,params,side,name,unit,round,value`, a line for every sample of either side of every row.
#[must_use]
pub fn samples(report: &Report) -> String {
    let mut text = "workload,params,side,name,unit,round,value\r\n".to_owned();
    for row in &report.results {
        let params: Vec<String> = row.params.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let params = field(&params.join(" "));
        let peer = row.peer.as_deref().unwrap_or_default();
        let sides = [
            ("subject", row.subject.as_str(), &row.raw.subject),
            ("peer", peer, &row.raw.peer),
        ];
        for (side, name, values) in sides {
            for (round, value) in values.iter().enumerate() {
                let (workload, name, unit) = (&row.workload, field(name), &row.unit);
                writeln!(
                    text,
                    "{workload},{params},{side},{name},{unit},{round},{value}\r"
                )
                .expect("a String takes any text");
            }
        }
    }
    text
}

/// A field, quoted where it has to be.
fn field(text: &str) -> String {
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

    #[test]
    fn a_sample_is_a_line_and_awkward_text_is_quoted() {
        let mut report = sample();
        report.results = vec![Row::new(
            ("w", "g"),
            &[("pattern", "a,\"b\"")],
            "s",
            ("thalweg", vec![1.5, 2.0]),
            Some(("direct", vec![1.0, 4.0])),
        )];
        assert_eq!(
            samples(&report),
            "workload,params,side,name,unit,round,value\r\n\
             w,\"pattern=a,\"\"b\"\"\",subject,thalweg,s,0,1.5\r\n\
             w,\"pattern=a,\"\"b\"\"\",subject,thalweg,s,1,2\r\n\
             w,\"pattern=a,\"\"b\"\"\",peer,direct,s,0,1\r\n\
             w,\"pattern=a,\"\"b\"\"\",peer,direct,s,1,4\r\n"
        );
    }
}
