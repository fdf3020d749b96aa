//! A stream of ours: the producer is an actor of a service; the consumer reads in place, or is a
//! callback that the producer runs.

use std::ops::ControlFlow::Continue;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use thalweg::StreamReader;
use thalweg::port::Event as Delivered;
use thalweg_lab::LabService;
use thalweg_lab::events::event;
use thalweg_lab::lab::{Event, LabClient};

use super::event::Seen;
use crate::problem::Problem;

/// Default capacity of a stream.
pub const CAPACITY: u32 = 8192;

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

    fn open(&self, capacity: u32, count: u64, batch: u32) -> Result<StreamReader<Event>, Problem> {
        let opening = match capacity {
            256 => self.lab.events_in256(count, batch),
            1024 => self.lab.events_in1024(count, batch),
            CAPACITY => self.lab.events(count, batch),
            _ => return Err(failed(format!("none has {capacity} places"))),
        };
        opening.wait().map_err(failed)
    }

    /// Reads `count` events, written and read `batch` at a time, through a stream of the given
    /// capacity. Timed from the call that returns the stream.
    ///
    /// # Errors
    /// The stream did not end normally, or no stream has this capacity.
    pub fn read(&self, capacity: u32, count: u64, batch: u32) -> Result<(Duration, Seen), Problem> {
        let mut seen = Seen::default();
        let began = Instant::now();
        let mut stream = self.open(capacity, count, batch)?;
        while let Some(batch) = stream.next_batch(batch, u64::MAX).map_err(failed)? {
            batch.iter().for_each(|event| seen.add_view(&event));
        }
        Ok((began.elapsed(), seen))
    }

    /// Has a callback take `count` events on the thread that writes them, `batch` at a time. Timed
    /// from the call that returns the stream until the callback receives the end.
    ///
    /// # Errors
    /// The stream did not end normally.
    pub fn subscribe(&self, count: u64, batch: u32) -> Result<(Duration, Seen), Problem> {
        let (told, ended) = mpsc::sync_channel(1);
        let mut seen = Seen::default();
        let began = Instant::now();
        let stream = self.open(CAPACITY, count, batch)?;
        let subscription = stream.subscribe(move |event| {
            match event {
                Delivered::Records(records) => {
                    records.iter().for_each(|event| seen.add_view(&event));
                }
                Delivered::Ended { result, lost, .. } => {
                    let result = result.map_err(failed).and_then(|()| match lost {
                        0 => Ok(seen),
                        _ => Err(failed(format!("{lost} events were lost"))),
                    });
                    // The receiver is alive: it waits below.
                    let _ = told.send((began.elapsed(), result));
                }
            }
            Continue(())
        });
        let subscription = subscription.map_err(failed)?;
        let (elapsed, seen) = ended.recv().map_err(failed)?;
        subscription.join(u64::MAX).map_err(failed)?;
        Ok((elapsed, seen?))
    }

    /// Compares every field of `count` events, which are written `batch` at a time.
    ///
    /// # Errors
    /// An event has wrong contents.
    pub fn verify(&self, count: u64, batch: u32) -> Result<(), Problem> {
        let mut next = 0;
        let mut stream = self.open(CAPACITY, count, batch)?;
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
