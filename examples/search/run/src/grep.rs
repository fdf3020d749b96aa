//! The reference: what `LC_ALL=C grep -raF -c` counts.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// The result of grep.
#[derive(Debug, PartialEq, Eq)]
pub struct Reference {
    /// Lines that match, of all files.
    pub matches: u64,
    /// The text that grep wrote to standard error.
    pub complaints: String,
}

/// Counts the lines of all files below `directory` that contain `pattern`.
///
/// # Errors
/// A sentence for the user: grep is not there, or did not do its work.
pub fn count(pattern: &str, directory: &str) -> Result<Reference, String> {
    // -Z writes NUL instead of a colon after a name, because a name may contain colons and
    // newlines.
    let mut grep = Command::new("grep")
        .env("LC_ALL", "C")
        .args(["-raFcZ", "--", pattern, directory])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("grep does not start: {error}"))?;
    // Both pipes are read at once, so that grep cannot stall on a full one.
    let stderr = grep.stderr.take().expect("it is piped");
    let complaints = std::thread::spawn(move || std::io::read_to_string(stderr));
    let matches = sum(BufReader::new(grep.stdout.take().expect("it is piped")));
    let status = grep
        .wait()
        .map_err(|error| format!("grep is lost: {error}"))?;
    let complaints = complaints
        .join()
        .expect("reading does not panic")
        .unwrap_or_default();
    // 0: lines matched. 1: no line matched. 2: a file could not be read; the other counts are
    // valid.
    match status.code() {
        Some(0..=2) => Ok(Reference {
            matches: matches?,
            complaints,
        }),
        _ => Err(format!("grep ended with {status}: {}", complaints.trim())),
    }
}

/// Adds up `name NUL count newline`.
fn sum(mut output: impl BufRead) -> Result<u64, String> {
    let mut sum = 0_u64;
    let mut record = Vec::new();
    loop {
        record.clear();
        let broken = |error| format!("grep's output is cut: {error}");
        if output.read_until(0, &mut record).map_err(broken)? == 0 {
            return Ok(sum);
        }
        record.clear();
        output.read_until(b'\n', &mut record).map_err(broken)?;
        let count = std::str::from_utf8(&record).unwrap_or_default().trim_end();
        sum += count
            .parse::<u64>()
            .map_err(|_| format!("grep's count is no number: {count:?}"))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_colons_and_newlines_do_not_disturb_the_sum() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a:7", "b\n9", "c\n:8", "-d", "e"] {
            std::fs::write(directory.path().join(name), "needle\nhay\nneedle").unwrap();
        }
        let reference = count("needle", directory.path().to_str().unwrap()).unwrap();
        assert_eq!(
            reference,
            Reference {
                matches: 10,
                complaints: String::new()
            }
        );
    }

    #[test]
    fn no_match_is_zero_and_a_pattern_may_begin_with_a_dash() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("f"), "-n\n").unwrap();
        let directory = directory.path().to_str().unwrap();
        assert_eq!(count("absent", directory).unwrap().matches, 0);
        assert_eq!(count("-n", directory).unwrap().matches, 1);
    }

    #[test]
    fn what_grep_complains_about_is_kept() {
        let reference = count("x", "/no/such").unwrap();
        assert!(reference.complaints.contains("No such file"));
    }

    #[test]
    fn output_that_is_not_what_was_asked_for_is_an_error() {
        assert_eq!(sum(&b"a\x003\nb\x004\n"[..]), Ok(7));
        assert!(sum(&b"a:3\n"[..]).is_err());
    }
}
