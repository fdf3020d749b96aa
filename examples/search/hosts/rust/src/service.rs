//! The service, called by its typed client in this process.

use std::io::{self, BufWriter, Write};
use std::time::Instant;

use thalweg::{CallError, Code, StreamReader};
use thalweg_search::SearchService;
use thalweg_search::search::{Match, MatchView, Options, SearchClient, SearchError};

use crate::Failed;
use crate::found::Found;

/// The maximum number of records of a batch.
const BATCH: u32 = 256;

impl From<CallError<SearchError>> for Failed {
    fn from(error: CallError<SearchError>) -> Failed {
        Failed::Search(match error {
            CallError::Service(error) => error.to_string(),
            CallError::Ended(failure) => failure.to_string(),
        })
    }
}

fn client() -> Result<SearchClient, Failed> {
    SearchClient::start(|| SearchService).map_err(|failure| Failed::Search(failure.to_string()))
}

/// All lines below `dir` that contain `pattern`.
fn search(
    client: &SearchClient,
    pattern: &str,
    dir: &str,
) -> Result<StreamReader<Match, SearchError>, CallError<SearchError>> {
    let options = Options {
        fixed: true,
        ignore_case: false,
        hidden: true,
        ignore_files: false,
        globs: Vec::new(),
    };
    let query = client.query(pattern, dir, &options).wait()?;
    client.matches(&query).wait()
}

/// Calls `each` with every record, in place.
fn read(
    mut stream: StreamReader<Match, SearchError>,
    mut each: impl FnMut(MatchView<'_>) -> Result<(), Failed>,
) -> Result<(), Failed> {
    loop {
        match stream.next_batch(BATCH, u64::MAX) {
            Ok(Some(batch)) => batch.iter().try_for_each(&mut each)?,
            Ok(None) => return Ok(()),
            Err(CallError::Ended(why)) if why.code == Code::Interrupted => {}
            Err(why) => return Err(why.into()),
        }
    }
}

/// Prints every line as `grep -rn` does: where path or text are not UTF-8, their own bytes.
pub fn print(pattern: &str, dir: &str) -> Result<(), Failed> {
    let mut out = BufWriter::new(io::stdout().lock());
    read(search(&client()?, pattern, dir)?, |found| {
        let path = found
            .path_bytes
            .map_or(found.path.as_bytes(), |bytes| bytes.as_bytes());
        let text = found
            .text_bytes
            .map_or(found.text.as_bytes(), |bytes| bytes.as_bytes());
        out.write_all(path)?;
        write!(out, ":{}:", found.line)?;
        out.write_all(text)?;
        out.write_all(b"\n")?;
        Ok(())
    })?;
    out.flush()?;
    Ok(())
}

/// Lets the service count. `count` expects a regular expression, so `escape` converts the text.
pub fn count(pattern: &str, dir: &str) -> Result<(), Failed> {
    let client = client()?;
    let escaped = client.escape(pattern).wait();
    let escaped = escaped.map_err(|error| Failed::Search(error.to_string()))?;
    println!("{}", client.count(&escaped, dir).wait()?);
    Ok(())
}

/// Searches and prints the duration.
pub fn measure(pattern: &str, dir: &str) -> Result<(), Failed> {
    let client = client()?;
    let began = Instant::now();
    let mut all = Found::default();
    read(search(&client, pattern, dir)?, |found| {
        all.matches += 1;
        all.lines_sum = all.lines_sum.wrapping_add(found.line);
        all.first.get_or_insert_with(Instant::now);
        Ok(())
    })?;
    println!("{}", all.line("Rust", began, Instant::now()));
    Ok(())
}
