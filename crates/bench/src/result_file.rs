//! Result files: a run as JSON, read and written.
//!
//! A file whose name ends in `.gz` is compressed with gzip. Committed results are, because
//! the JSON of a run with its samples is about ten times smaller so.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Deserialize;

use crate::problem::Problem;
use crate::report::{Report, SCHEMA};

/// The text of a result file.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut text = serde_json::to_string_pretty(report).expect("a report has no odd keys");
    text.push('\n');
    text
}

/// The largest text that [`read`] accepts, in bytes: about 100 times the largest committed result.
/// A small compressed file can expand to much more.
const LARGEST: u64 = 64 << 20;

/// Whether `file` has the name of a result file: `.json` or `.json.gz`.
#[must_use]
pub fn is_named(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".json") || name.ends_with(".json.gz")
}

fn is_compressed(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "gz")
}

/// Writes `content` to `file`, compressed if the name ends in `.gz`, and creates missing folders.
/// The same content always gives the same bytes.
///
/// # Errors
/// The operating system reports an error.
pub fn write(file: &Path, content: &str) -> Result<(), Problem> {
    let problem = || Problem::io(file.display().to_string());
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(problem())?;
    }
    if !is_compressed(file) {
        return fs::write(file, content).map_err(problem());
    }
    let mut encoder = GzEncoder::new(File::create(file).map_err(problem())?, Compression::best());
    encoder.write_all(content.as_bytes()).map_err(problem())?;
    encoder.finish().map_err(problem())?;
    Ok(())
}

/// Reads a result file, compressed or not. Its verdicts are computed again: see
/// [`crate::judgement`].
///
/// # Errors
/// The file does not exist, is larger than 64 MiB when decompressed, or violates the schema.
pub fn read(file: &Path) -> Result<Report, Problem> {
    parse(&content(file)?).map_err(|why| Problem::NotAResult(file.to_owned(), why))
}

fn content(file: &Path) -> Result<String, Problem> {
    let problem = || Problem::io(file.display().to_string());
    let opened = File::open(file).map_err(problem())?;
    let content: Box<dyn Read> = if is_compressed(file) {
        Box::new(GzDecoder::new(opened))
    } else {
        Box::new(opened)
    };
    let mut text = String::new();
    let size = content
        .take(LARGEST + 1)
        .read_to_string(&mut text)
        .map_err(problem())?;
    if size as u64 > LARGEST {
        let why = format!("larger than {} MiB", LARGEST >> 20);
        return Err(Problem::NotAResult(file.to_owned(), why));
    }
    Ok(text)
}

fn parse(text: &str) -> Result<Report, String> {
    #[derive(Deserialize)]
    struct Number {
        schema: Option<u32>,
    }
    // Check the number first: the other fields of a newer schema would only give confusing errors.
    match serde_json::from_str(text).map_err(|error| error.to_string())? {
        Number { schema: None } => return Err("it has no schema".to_owned()),
        Number {
            schema: Some(SCHEMA),
        } => {}
        Number {
            schema: Some(other),
        } => {
            return Err(format!("schema {other}; this program knows {SCHEMA}"));
        }
    }
    let mut report: Report = serde_json::from_str(text).map_err(|error| error.to_string())?;
    for row in &mut report.results {
        row.check()?;
        row.judge_again();
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts;
    use crate::report::tests::sample;

    #[test]
    fn written_result_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let report = sample();
        for name in ["new/folder/result.json", "result.json.gz"] {
            let file = folder.path().join(name);
            assert!(is_named(&file));
            write(&file, &text(&report)).unwrap();
            assert_eq!(text(&read(&file).unwrap()), text(&report), "{name}");
        }
        let compressed = fs::read(folder.path().join("result.json.gz")).unwrap();
        assert!(compressed.len() < text(&report).len());
        write(&folder.path().join("again.json.gz"), &text(&report)).unwrap();
        assert_eq!(
            fs::read(folder.path().join("again.json.gz")).unwrap(),
            compressed
        );
    }

    #[test]
    fn damaged_or_huge_compressed_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("result.json.gz");
        write(&file, &text(&sample())).unwrap();
        let whole = fs::read(&file).unwrap();
        fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        assert!(
            read(&file)
                .unwrap_err()
                .to_string()
                .contains("result.json.gz")
        );
        fs::write(&file, "{}").unwrap();
        assert!(
            read(&file)
                .unwrap_err()
                .to_string()
                .contains("result.json.gz")
        );
        write(&file, &" ".repeat(usize::try_from(LARGEST).unwrap() + 1)).unwrap();
        assert!(
            read(&file)
                .unwrap_err()
                .to_string()
                .contains("larger than 64 MiB")
        );
    }

    #[test]
    fn other_file_is_refused_with_the_reason() {
        let mut uneven = sample();
        uneven.results[0].process.pop();
        for (content, reason) in [
            ("{", "EOF while parsing"),
            ("{}", "no schema"),
            (r#"{"schema": 2}"#, "schema 2; this program knows 1"),
            (r#"{"schema": 1}"#, "missing field `suite` at line 1"),
            (
                text(&sample()).replace("\"unit\"", "\"units\"").as_str(),
                "unknown field `units`",
            ),
            (
                text(&uneven).as_str(),
                "search_overhead: 3 samples, but lists",
            ),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("odd.json");
            write(&file, content).unwrap();
            let problem = read(&file).unwrap_err();
            assert!(matches!(&problem, Problem::NotAResult(path, _) if *path == file));
            assert!(
                problem.to_string().contains(reason),
                "{reason} in {problem}"
            );
        }
        let missing = read(Path::new("no-such-file.json")).unwrap_err();
        assert!(missing.to_string().contains("no-such-file.json"));
    }

    #[test]
    fn committed_results_satisfy_the_schema() {
        let schema = include_str!("../result.schema.json");
        let schema = serde_json::from_str(schema).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut validated = 0;
        let mut folders = vec![hosts::root().join("benchmarks")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if is_named(&path) {
                    read(&path).unwrap();
                    let text = content(&path).unwrap();
                    let errors: Vec<String> = validator
                        .iter_errors(&serde_json::from_str(&text).unwrap())
                        .map(|error| format!("{}: {error}", error.instance_path()))
                        .collect();
                    assert!(errors.is_empty(), "{}: {errors:?}", path.display());
                    validated += 1;
                }
            }
        }
        assert!(validated > 0);
    }
}
