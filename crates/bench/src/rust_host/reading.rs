//! Matches read in place, as objects, and the same loop over an array.

use std::thread::sleep;
use std::time::{Duration, Instant};

use thalweg::StreamReader;
use thalweg_lab::lab::{LabClient, Match, MatchView};

use super::{ended, failed};
use crate::problem::Problem;
use crate::workloads::view_read::{BATCH, CAPACITY};

/// Untimed pause in which a generator fills a stream: several times the time it needs.
pub const FILL: Duration = Duration::from_millis(3);

/// Totals of a sample, and the reader's own time.
#[derive(Default)]
pub struct Reading {
    /// The reader's own time.
    pub spent: Duration,
    /// Number of records.
    pub records: u64,
    /// Checksum of the records.
    pub checksum: u64,
}

impl Reading {
    /// The totals as a line of the program's output.
    pub fn answer(&self) -> String {
        let Self {
            spent,
            records,
            checksum,
        } = self;
        let ns = spent.as_nanos();
        format!("{{\"ns\": {ns}, \"records\": {records}, \"checksum\": {checksum}}}")
    }
}

/// Checksum over the fields of a match that every host reads.
fn touch(of: MatchView<'_>) -> u64 {
    let text = of.text.as_bytes();
    let ends = match text {
        [first, .., last] => u64::from(*first) + u64::from(*last),
        _ => 0,
    };
    of.line + of.column + of.path.len() as u64 + ends
}

fn generate(lab: &LabClient, count: u64) -> Result<StreamReader<Match>, Problem> {
    lab.generate(count).wait().map_err(ended)
}

/// Reads the matches of a stream in place. Timed: acquiring the next batch, the loop and the
/// release, for batches that are ready after each wait.
pub fn views(lab: &LabClient, count: u64) -> Result<String, Problem> {
    let mut stream = generate(lab, count)?;
    let mut read = Reading::default();
    let mut until_wait = 0;
    loop {
        if until_wait == 0 {
            sleep(FILL);
            until_wait = CAPACITY;
        }
        let began = Instant::now();
        let Some(batch) = stream.next_batch(BATCH, u64::MAX).map_err(failed)? else {
            break;
        };
        let records = u64::from(batch.len());
        read.checksum += batch.iter().map(touch).sum::<u64>();
        drop(batch);
        read.spent += began.elapsed();
        read.records += records;
        until_wait -= records.min(until_wait);
    }
    Ok(read.answer())
}

/// The same, with each match copied to an object.
pub fn objects(lab: &LabClient, count: u64) -> Result<String, Problem> {
    let mut stream = generate(lab, count)?;
    let mut read = Reading::default();
    while read.records < count {
        sleep(FILL);
        let began = Instant::now();
        for found in stream
            .by_ref()
            .take(usize::try_from(CAPACITY).expect("a small constant"))
        {
            let Match {
                path,
                line,
                column,
                text,
                ..
            } = found.map_err(failed)?;
            let ends = text.as_bytes().first().zip(text.as_bytes().last());
            let ends = ends.map_or(0, |(first, last)| u64::from(*first) + u64::from(*last));
            read.checksum += line + column + path.len() as u64 + ends;
            read.records += 1;
        }
        read.spent += began.elapsed();
    }
    Ok(read.answer())
}

/// FNV-1a over every byte of every match, in order: see `Contents::digest` in the service.
pub fn verify(lab: &LabClient, count: u64) -> Result<String, Problem> {
    let mut digest: u64 = 0xcbf2_9ce4_8422_2325;
    let mut records = 0_u64;
    for found in generate(lab, count)? {
        let Match {
            path,
            line,
            column,
            text,
            cut,
            ..
        } = found.map_err(failed)?;
        let numbers = line.to_le_bytes().into_iter().chain(column.to_le_bytes());
        let strings = path.bytes().chain(text.bytes());
        for byte in strings.chain(numbers).chain([u8::from(cut)]) {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        records += 1;
    }
    Ok(format!(
        "{{\"records\": {records}, \"digest\": \"{digest:016x}\"}}"
    ))
}

/// Arrays of matches, built once and not timed.
#[derive(Default)]
pub struct Arrays {
    whole: Vec<Match>,
    kept: Vec<Match>,
}

impl Arrays {
    /// The requested number of matches, each read once.
    pub fn whole(&mut self, lab: &LabClient, count: u64) -> Result<String, Problem> {
        fill(&mut self.whole, lab, count)?;
        Ok(read_array(&self.whole, count))
    }

    /// The contents of one stream, read repeatedly.
    pub fn kept(&mut self, lab: &LabClient, count: u64) -> Result<String, Problem> {
        fill(&mut self.kept, lab, CAPACITY)?;
        Ok(read_array(&self.kept, count))
    }
}

fn fill(array: &mut Vec<Match>, lab: &LabClient, count: u64) -> Result<(), Problem> {
    if array.len() as u64 != count {
        let matches: Result<_, _> = generate(lab, count)?.collect();
        *array = matches.map_err(failed)?;
    }
    Ok(())
}

fn read_array(array: &[Match], count: u64) -> String {
    let began = Instant::now();
    let matches = array
        .iter()
        .cycle()
        .take(usize::try_from(count).unwrap_or(usize::MAX));
    let mut read = Reading::default();
    for found in matches {
        let text = found.text.as_bytes();
        let ends = match text {
            [first, .., last] => u64::from(*first) + u64::from(*last),
            _ => 0,
        };
        read.checksum += found.line + found.column + found.path.len() as u64 + ends;
        read.records += 1;
    }
    read.spent = began.elapsed();
    read.answer()
}
