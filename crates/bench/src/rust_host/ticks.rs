//! Ticks of 64 bytes: the host's own time per tick, and the end-to-end time per tick.

use std::ops::ControlFlow::Continue;
use std::sync::mpsc;
use std::thread::sleep;
use std::time::Instant;

use thalweg::StreamReader;
use thalweg::port::Event;
use thalweg_lab::lab::{LabClient, Tick};
use thalweg_lab::ticks::touch;

use super::reading::{FILL, Reading};
use super::{ended, failed};
use crate::problem::Problem;
use crate::workloads::view_read::{BATCH, CAPACITY};

fn open(lab: &LabClient, count: u64) -> Result<StreamReader<Tick>, Problem> {
    lab.ticks(count, BATCH).wait().map_err(ended)
}

/// Reads one batch in place; `false` at the end.
fn batch(stream: &mut StreamReader<Tick>, read: &mut Reading) -> Result<bool, Problem> {
    let Some(batch) = stream.next_batch(BATCH, u64::MAX).map_err(failed)? else {
        return Ok(false);
    };
    read.records += u64::from(batch.len());
    read.checksum += batch.iter().map(|tick| touch(&tick)).sum::<u64>();
    Ok(true)
}

/// Reads the ticks of a stream in place. Timed: acquiring the next batch, the loop and the release,
/// for batches that are ready after each wait.
pub fn views(lab: &LabClient, count: u64) -> Result<String, Problem> {
    let mut stream = open(lab, count)?;
    let mut read = Reading::default();
    let mut until = 0;
    while read.records < count {
        if read.records >= until {
            sleep(FILL);
            until = read.records + CAPACITY;
        }
        let began = Instant::now();
        if !batch(&mut stream, &mut read)? {
            break;
        }
        read.spent += began.elapsed();
    }
    Ok(read.answer())
}

/// The same loop over `count` ticks in an array, which is built once and not timed.
pub fn array(kept: &mut Vec<Tick>, lab: &LabClient, count: u64) -> Result<String, Problem> {
    if kept.len() as u64 != count {
        let ticks: Result<_, _> = open(lab, count)?.collect();
        *kept = ticks.map_err(failed)?;
    }
    let began = Instant::now();
    let read = Reading {
        checksum: kept.iter().map(touch).sum(),
        records: kept.len() as u64,
        spent: began.elapsed(),
    };
    Ok(read.answer())
}

/// Time for `count` ticks from the call on, read by `how`, producer included.
pub fn whole(lab: &LabClient, how: &str, count: u64) -> Result<String, Problem> {
    let began = Instant::now();
    let mut stream = open(lab, count)?;
    let mut read = Reading::default();
    match how {
        "one" => {
            for tick in stream {
                read.checksum += touch(&tick.map_err(failed)?);
                read.records += 1;
            }
        }
        "objects" => {
            while let Some(batch) = stream.next_batch(BATCH, u64::MAX).map_err(failed)? {
                let ticks: Vec<Tick> = batch.iter().collect();
                read.records += ticks.len() as u64;
                read.checksum += ticks.iter().map(touch).sum::<u64>();
            }
        }
        "views" => while batch(&mut stream, &mut read)? {},
        "callback" => read = called(stream)?,
        _ => return Err(Problem::Host(format!("not a command: stream-{how}"))),
    }
    read.spent = began.elapsed();
    Ok(read.answer())
}

/// Reads all remaining ticks in a callback on the writing thread.
fn called(stream: StreamReader<Tick>) -> Result<Reading, Problem> {
    let (told, over) = mpsc::sync_channel(1);
    let (mut records, mut checksum) = (0, 0);
    let subscription = stream.subscribe(move |event| {
        match event {
            Event::Records(ticks) => {
                records += u64::from(ticks.len());
                checksum += ticks.iter().map(|tick| touch(&tick)).sum::<u64>();
            }
            Event::Ended { result, .. } => {
                // The receiver is alive: it waits below.
                let _ = told.send(
                    result
                        .map(|()| (records, checksum))
                        .map_err(|why| why.to_string()),
                );
            }
        }
        Continue(())
    });
    let subscription = subscription.map_err(failed)?;
    let ended = over
        .recv()
        .map_err(|_| Problem::Check("a stream had no end".to_owned()))?;
    let (records, checksum) = ended.map_err(Problem::Check)?;
    subscription.join(u64::MAX).map_err(failed)?;
    Ok(Reading {
        records,
        checksum,
        ..Reading::default()
    })
}
