//! JSON from the command line and from standard input.

use std::io::{self, BufRead, Read};

use serde_json::Value;

use super::failure::Error;

/// Largest JSON document in bytes. A document takes up to some 30 times as much memory, because a
/// small number becomes a `Value`.
const MAX_INPUT: u64 = 64 << 20;

/// Standard input, which one part of a command may read.
#[derive(Debug, Default)]
pub struct Stdin {
    is_taken: bool,
}

impl Stdin {
    /// Reserves standard input.
    ///
    /// # Errors
    /// Another part of the command reads it.
    pub fn take(&mut self) -> Result<(), Error> {
        match std::mem::replace(&mut self.is_taken, true) {
            false => Ok(()),
            true => Err(Error::Usage(
                "`-` occurs twice, and standard input can be read only once".to_owned(),
            )),
        }
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// It was read before, cannot be read, or is too large.
    pub fn all(&mut self) -> Result<Vec<u8>, Error> {
        self.take()?;
        let mut bytes = Vec::new();
        let mut input = io::stdin().lock().take(MAX_INPUT + 1);
        let read = input.read_to_end(&mut bytes);
        read.map_err(|error| Error::Input(format!("cannot read standard input: {error}")))?;
        check_size(&bytes, "standard input").map_err(Error::Input)?;
        Ok(bytes)
    }
}

fn check_size(bytes: &[u8], what: &str) -> Result<(), String> {
    match bytes.len() as u64 > MAX_INPUT {
        true => Err(format!("{what} is larger than {MAX_INPUT} bytes")),
        false => Ok(()),
    }
}

/// Parses a JSON document.
///
/// # Errors
/// It is not JSON, or is nested deeper than 127 levels.
pub fn parse(text: &[u8], what: &str) -> Result<Value, Error> {
    serde_json::from_slice(text).map_err(|error| Error::Input(format!("{what}: {error}")))
}

/// The next line with a JSON document. `None`: there are no more. `number` is the number of the last
/// line.
///
/// # Errors
/// The line cannot be read, is too large, or is not JSON.
pub fn next_line(input: &mut impl BufRead, number: &mut u64) -> Result<Option<Value>, String> {
    let mut line = Vec::new();
    loop {
        line.clear();
        *number += 1;
        let what = format!("standard input, line {number}");
        let read = input
            .by_ref()
            .take(MAX_INPUT + 1)
            .read_until(b'\n', &mut line);
        if read.map_err(|error| format!("{what}: {error}"))? == 0 {
            return Ok(None);
        }
        check_size(&line, &what)?;
        if !line.trim_ascii().is_empty() {
            let json = serde_json::from_slice(&line);
            return json.map(Some).map_err(|error| format!("{what}: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{next_line, parse};
    use serde_json::json;

    #[test]
    fn lines_are_read_one_by_one_and_empty_ones_skipped() {
        let mut input = &b"1\n\n  {\"a\": 2}\r\n\"last\""[..];
        let mut number = 0;
        let mut next = || next_line(&mut input, &mut number);
        assert_eq!(next(), Ok(Some(json!(1))));
        assert_eq!(next(), Ok(Some(json!({"a": 2}))));
        assert_eq!(next(), Ok(Some(json!("last"))));
        assert_eq!(next(), Ok(None));
    }

    #[test]
    fn line_that_is_not_json_is_refused_with_its_number() {
        let mut number = 0;
        let error = next_line(&mut &b"\n1 2\n"[..], &mut number).unwrap_err();
        assert!(error.starts_with("standard input, line 2: "), "{error}");
    }

    #[test]
    fn malformed_and_deep_documents_are_refused() {
        let deep = "[".repeat(200_000);
        for text in ["", "{", "\"\\ud800\"", "[1,]", "1e999", &deep] {
            assert!(parse(text.as_bytes(), "the JSON").is_err());
        }
    }
}
