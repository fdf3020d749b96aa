//! Result files: a run as JSON, read and written.

use std::fs;
use std::path::Path;

use crate::problem::Problem;
use crate::report::{Report, SCHEMA};

/// The text of a result file.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut text = serde_json::to_string_pretty(report).expect("a report has no odd keys");
    text.push('\n');
    text
}

/// Writes `content` to `file` and creates missing folders.
///
/// # Errors
/// The operating system reports an error.
pub fn write(file: &Path, content: &str) -> Result<(), Problem> {
    let problem = || Problem::io(file.display().to_string());
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(problem())?;
    }
    fs::write(file, content).map_err(problem())
}

/// Reads a result file.
///
/// # Errors
/// The file does not exist, is not a result file, or has a schema that this program does not
/// support.
pub fn read(file: &Path) -> Result<Report, Problem> {
    let text = fs::read_to_string(file).map_err(Problem::io(file.display().to_string()))?;
    parse(&text).map_err(|why| Problem::NotReady(format!("{}: {why}", file.display())))
}

fn parse(text: &str) -> Result<Report, String> {
    // Check the number first: the other fields of a newer schema would only give confusing errors.
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        Some(number) if number == u64::from(SCHEMA) => {}
        Some(number) => return Err(format!("schema {number}; this program knows {SCHEMA}")),
        None => return Err("not a result file: it has no schema".to_owned()),
    }
    serde_json::from_value(value).map_err(|error| format!("not a result file: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts;
    use crate::report::tests::sample;

    #[test]
    fn what_was_written_reads_back_but_for_the_samples() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/folder/result.json");
        let report = sample();
        write(&file, &text(&report)).unwrap();
        let back = read(&file).unwrap();
        assert_eq!(text(&back), text(&report));
    }

    #[test]
    fn what_is_no_result_file_says_why() {
        assert!(parse("{").unwrap_err().contains("not JSON"));
        assert!(parse("{}").unwrap_err().contains("no schema"));
        assert_eq!(
            parse(r#"{"schema": 2}"#).unwrap_err(),
            "schema 2; this program knows 1"
        );
        assert!(parse(r#"{"schema": 1}"#).unwrap_err().contains("suite"));
        let missing = read(Path::new("no-such-file.json")).unwrap_err();
        assert!(missing.to_string().contains("no-such-file.json"));
    }

    #[test]
    fn every_committed_result_still_reads() {
        let mut read_back = 0;
        let mut folders = vec![hosts::root().join("benchmarks/results")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|ending| ending == "json") {
                    read(&path).unwrap();
                    read_back += 1;
                }
            }
        }
        assert!(read_back > 0);
    }
}
