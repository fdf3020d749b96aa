//! A stream of ours: the producer is an actor of a service, the consumer reads in place.

use std::time::{Duration, Instant};

use thalweg_lab::LabService;
use thalweg_lab::events::{WORDS, event};
use thalweg_lab::lab::LabClient;

use super::event::Seen;
use crate::problem::Problem;

/// The service, started once.
#[derive(Debug)]
pub struct Streams {
    lab: LabClient,
}

fn failed(why: impl std::fmt::Display) -> Problem {
    Problem::Check(format!("a stream ended: {why}"))
}

impl Streams {
    /// Starts it.
    ///
    /// # Errors
    /// The runtime could not be started.
    pub fn start() -> Result<Self, Problem> {
        let lab = LabClient::start(|| LabService).map_err(failed)?;
        Ok(Self { lab })
    }

    /// Reads `count` events, which are written and read `batch` at a time. Timed from the call that returns the stream.
    ///
    /// # Errors
    /// The stream ended in another way than regularly.
    pub fn read(&self, count: u64, batch: u32) -> Result<(Duration, Seen), Problem> {
        let mut seen = Seen::default();
        let began = Instant::now();
        let mut stream = self.lab.events(count, batch).wait().map_err(failed)?;
        while let Some(batch) = stream.next_batch(batch, u64::MAX).map_err(failed)? {
            for event in batch.iter() {
                let tails = event.detail.len() + event.payload.len();
                let words = &event.words;
                seen.add(words[0], words[1], words[WORDS - 1], tails);
            }
        }
        Ok((began.elapsed(), seen))
    }

    /// Compares every field of `count` events, which are written `batch` at a time.
    ///
    /// # Errors
    /// One is not what was written.
    pub fn verify(&self, count: u64, batch: u32) -> Result<(), Problem> {
        let mut next = 0;
        let mut stream = self.lab.events(count, batch).wait().map_err(failed)?;
        while let Some(batch) = stream.next_batch(batch, u64::MAX).map_err(failed)? {
            for read in batch.iter() {
                if read != event(next) {
                    return Err(Problem::Check(format!("event {next} is {read:?}")));
                }
                next += 1;
            }
        }
        if next == count {
            Ok(())
        } else {
            Err(Problem::Check(format!("{next} of {count} events")))
        }
    }
}
