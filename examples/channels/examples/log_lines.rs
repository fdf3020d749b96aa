//! Many threads write to one log file: each sends its lines to one writer thread, which writes all
//! available lines at once.
//!
//! ```text
//! cargo run -p thalweg-example-channels --example log_lines -- requests.log
//! ```
//!
//! It asserts that the file has every line, and each thread's lines in the order in which it sent
//! them, by reading the file again.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::{env, fs, process, thread};

use thalweg::channel::mpsc;
use thalweg_example_channels::grouped;

const SERVICES: [&str; 4] = ["auth", "billing", "mail", "search"];
const LINES_EACH: u64 = 25_000;
/// The maximum number of waiting lines. A service that is faster than the disk waits, so memory use
/// stays constant.
const CAPACITY: usize = 1_024;
/// The maximum number of lines that the writer writes before it considers a flush.
const BATCH: usize = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let kept = env::args_os().nth(1).map(PathBuf::from);
    let path = match &kept {
        Some(path) => path.clone(),
        None => env::temp_dir().join(format!("log_lines-{}.log", process::id())),
    };
    println!(
        "{} services write {} lines each:\n",
        SERVICES.len(),
        grouped(LINES_EACH)
    );

    let (lines, log) = mpsc::channel(CAPACITY)?;
    let file = File::create(&path)?;
    let services = SERVICES.map(|service| {
        let lines = lines.clone();
        thread::spawn(move || serve(service, &lines))
    });
    // The writer ends when the last service has ended, so this thread must not keep a handle.
    drop(lines);
    let written = write(&log, file)?;
    for service in services {
        service.join().expect("a service does not panic");
    }

    let stats = log.stats();
    println!(
        "  written  {:>7} lines in {} batches",
        grouped(written.lines),
        grouped(written.batches)
    );
    println!(
        "  flushed  {:>7} times, when no line waited",
        grouped(written.flushes)
    );
    println!(
        "  waiting  {:>7} lines at most, of {}",
        grouped(stats.high_water as u64),
        grouped(CAPACITY as u64)
    );

    let checked = check(&path);
    if kept.is_none() {
        fs::remove_file(&path)?;
    }
    assert_eq!(checked?, LINES_EACH * SERVICES.len() as u64);
    println!("\nThe file has them all, each service's in its order.");
    Ok(())
}

fn serve(service: &str, lines: &mpsc::Sender<String>) {
    for number in 1..=LINES_EACH {
        let line = format!("{service} request {number} answered");
        lines.send(line).expect("the writer takes all");
    }
}

struct Written {
    lines: u64,
    batches: u64,
    flushes: u64,
}

fn write(log: &mpsc::Receiver<String>, file: File) -> Result<Written, Box<dyn Error>> {
    let mut file = BufWriter::new(file);
    let mut batch = Vec::with_capacity(BATCH);
    let mut written = Written {
        lines: 0,
        batches: 0,
        flushes: 0,
    };
    // Waits for the first line, then takes all available lines.
    while let Ok(count) = log.recv_batch(&mut batch, BATCH) {
        for line in batch.drain(..) {
            writeln!(file, "{line}")?;
        }
        written.lines += count as u64;
        written.batches += 1;
        // When no line waits, the file on disk is complete.
        if log.is_empty() {
            file.flush()?;
            written.flushes += 1;
        }
    }
    file.flush()?;
    Ok(written)
}

/// Returns the number of lines in the file.
fn check(path: &Path) -> Result<u64, Box<dyn Error>> {
    let mut lines = 0;
    let mut last = [0; SERVICES.len()];
    for line in BufReader::new(File::open(path)?).lines() {
        let line = line?;
        let mut words = line.split(' ');
        let service = words
            .next()
            .and_then(|name| SERVICES.iter().position(|s| *s == name));
        let service = service.ok_or_else(|| format!("no service wrote {line:?}"))?;
        let number: u64 = words.nth(1).ok_or("a line without a number")?.parse()?;
        assert_eq!(
            number,
            last[service] + 1,
            "{} is out of order",
            SERVICES[service]
        );
        last[service] = number;
        lines += 1;
    }
    Ok(lines)
}
