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

use crate::problem::Problem;
use crate::report::{Report, Row, SCHEMA};

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

/// Reads a result file, compressed or not.
///
/// # Errors
/// The file does not exist, is larger than 64 MiB when decompressed, is not a result file, or has
/// a schema that this program does not support.
pub fn read(file: &Path) -> Result<Report, Problem> {
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
        let limit = LARGEST >> 20;
        return Err(Problem::NotReady(format!(
            "{}: larger than {limit} MiB",
            file.display()
        )));
    }
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
    let mut report: Report =
        serde_json::from_value(value).map_err(|error| format!("not a result file: {error}"))?;
    report.results.iter_mut().for_each(Row::judge_again);
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
    fn every_committed_result_reads() {
        let mut read_back = 0;
        let mut folders = vec![hosts::root().join("benchmarks/results")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if is_named(&path) {
                    read(&path).unwrap();
                    read_back += 1;
                }
            }
        }
        assert!(read_back > 0);
    }
}
