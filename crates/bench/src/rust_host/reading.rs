//! Matches read in place, as objects, and the same loop over an array.

use std::thread::sleep;
use std::time::{Duration, Instant};

use thalweg::StreamReader;
use thalweg_lab::lab::{LabClient, Match, MatchView};

use super::{ended, failed};
use crate::problem::Problem;
use crate::workloads::view_read::{BATCH, CAPACITY};

/// How long a generator gets to fill a stream, untimed: several times what it needs.
pub const FILL: Duration = Duration::from_millis(3);

/// What a sample read, and how long the reader itself took.
#[derive(Default)]
pub struct Reading {
    /// The reader's own time.
    pub spent: Duration,
    /// How many.
    pub records: u64,
    /// What they sum up to.
    pub checksum: u64,
}

impl Reading {
    /// As a line of the program says it.
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

/// What every host touches of a match.
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

/// A stream's matches read in place. Timed: the next batch, the loop, giving it back; of what lies ready after each wait.
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

/// The same, each match an object of its own.
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
    /// As many matches as are asked for, each read once.
    pub fn whole(&mut self, lab: &LabClient, count: u64) -> Result<String, Problem> {
        fill(&mut self.whole, lab, count)?;
        Ok(read_array(&self.whole, count))
    }

    /// A stream's worth, again and again.
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
