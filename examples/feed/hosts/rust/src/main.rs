//! Reads the feed from Rust. It prints the same lines as the hosts in C and Python.

use std::error::Error;
use std::process::ExitCode;

use thalweg::StreamReader;
use thalweg_feed::Market;
use thalweg_feed::feed::{Event, FeedClient, Kind};

/// The maximum number of records in a batch.
const BATCH: u32 = 256;

fn main() -> ExitCode {
    match show() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("feed-rust: {error}");
            ExitCode::FAILURE
        }
    }
}

fn show() -> Result<(), Box<dyn Error>> {
    let client = FeedClient::start(|| Market)?;
    ledger(client.all(100_000).wait()?)?;
    screen(client.recent(5_000).wait()?)?;
    newest(client.newest(5_000).wait()?)
}

/// Reads all events. The overflow policy is `block`.
fn ledger(mut events: StreamReader<Event>) -> Result<(), Box<dyn Error>> {
    let (mut count, mut trades, mut volume, mut turnover, mut best) = (0, 0, 0, 0, 0);
    while let Some(batch) = events.next_batch(BATCH, u64::MAX)? {
        for event in batch.iter() {
            count += 1;
            best = event.bids.iter().map(|bid| bid.price).fold(best, i64::max);
            if event.kind == Kind::Trade {
                trades += 1;
                volume += event.size;
                turnover += event.price * event.size as i64;
            }
        }
    }
    println!("all: {count} events, {trades} trades of {volume} for {turnover}, best bid {best}");
    Ok(())
}

/// Reads the events that were not dropped, and all halts. The overflow policy is `drop-oldest`.
fn screen(mut events: StreamReader<Event>) -> Result<(), Box<dyn Error>> {
    let (mut count, mut volume) = (0, 0);
    while let Some(batch) = events.next_batch(BATCH, u64::MAX)? {
        if batch.is_control() {
            for halt in batch.iter() {
                println!("recent: halt at event {}", halt.number);
            }
            continue;
        }
        if let Some(why) = batch.lost_reason() {
            let (lost, next) = (batch.lost_before(), batch.first_sequence());
            println!(
                "recent: gap of {lost} events before number {next}, reason {}",
                why as u32
            );
        }
        for event in batch.iter() {
            count += 1;
            volume += event.size;
        }
    }
    println!("recent: {count} events of {volume}");
    let stats = events.stats();
    let counts = stats.counts;
    println!(
        "recent: {} published, {} delivered, {} dropped, {} halts",
        counts.published,
        counts.delivered,
        counts.dropped(),
        stats.control
    );
    Ok(())
}

/// Reads the newest event. The overflow policy is `latest`.
fn newest(mut events: StreamReader<Event>) -> Result<(), Box<dyn Error>> {
    while let Some(batch) = events.next_batch(BATCH, u64::MAX)? {
        for event in batch.iter() {
            let (number, at, overtaken) = (event.number, event.at_ns, batch.lost_before());
            println!("newest: event {number} at {at} ns, {overtaken} overtaken");
        }
    }
    Ok(())
}
