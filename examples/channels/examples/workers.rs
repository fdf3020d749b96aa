//! A pool of workers that count the lines and bytes of files, like `wc -lc`.
//!
//! ```text
//! cargo run -p thalweg-example-channels --example workers -- README.md docs
//! ```
//!
//! The arguments are files and directories; the default is this repository's crates. The paths go
//! through a channel with many receivers: each path to one free worker.
//!
//! It asserts that every file is counted once, including those that were in the channel when it was
//! closed.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::{env, thread};

use thalweg::channel::{mpmc, mpsc};
use thalweg_example_channels::grouped;

/// The maximum number of waiting paths, so that the search does not run far ahead of the workers.
const CAPACITY: usize = 64;
const SHOWN: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let mut roots: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    if roots.is_empty() {
        roots.push(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../crates")
                .canonicalize()?,
        );
    }
    let workers = thread::available_parallelism()?.get().max(2);

    let (jobs, todo) = mpmc::channel(CAPACITY)?;
    let (results, counted) = mpsc::channel(CAPACITY)?;
    let workers: Vec<_> = (0..workers)
        .map(|_| {
            let (todo, results) = (todo.clone(), results.clone());
            thread::spawn(move || work(&todo, &results))
        })
        .collect();
    drop((todo, results));
    let finder = thread::spawn(move || find_all(&roots, &jobs));

    // Ends when the last worker has ended and all results are received.
    let mut files = counted.iter().collect::<io::Result<Vec<Counted>>>()?;
    let found = finder.join().expect("the finder does not panic")?;
    let shares = workers
        .into_iter()
        .map(|worker| worker.join().expect("a worker does not panic"));
    let shares: Vec<u64> = shares.collect();

    show(&mut files);
    let each: Vec<String> = shares.iter().map(|share| grouped(*share)).collect();
    let found_count = found.files.len() as u64;
    println!(
        "\n{} files by {} workers: {}",
        grouped(found_count),
        shares.len(),
        each.join(", ")
    );
    println!(
        "{} still waited when the channel was closed; all were counted.",
        found.waiting
    );

    assert_eq!(shares.iter().sum::<u64>(), found_count);
    let mut counted: Vec<PathBuf> = files.into_iter().map(|file| file.path).collect();
    counted.sort();
    assert!(
        counted == found.files,
        "a file was counted twice, or not at all"
    );
    Ok(())
}

/// Counts files until the channel is closed and drained. Returns how many.
fn work(todo: &mpmc::Receiver<PathBuf>, results: &mpsc::Sender<io::Result<Counted>>) -> u64 {
    let mut share = 0;
    for path in todo {
        share += 1;
        // After an error, nobody receives the results.
        if results.send(count(path)).is_err() {
            break;
        }
    }
    share
}

struct Counted {
    path: PathBuf,
    lines: u64,
    bytes: u64,
}

fn count(path: PathBuf) -> io::Result<Counted> {
    let mut file = File::open(&path)?;
    let mut buffer = vec![0; 64 * 1024];
    let (mut lines, mut bytes) = (0, 0);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(Counted { path, lines, bytes });
        }
        bytes += read as u64;
        lines += buffer[..read].iter().filter(|byte| **byte == b'\n').count() as u64;
    }
}

/// The number of paths that were sent, and how many were still in the channel when it was closed.
struct Found {
    files: Vec<PathBuf>,
    waiting: usize,
}

/// Sends every file below the roots, then closes the channel.
fn find_all(roots: &[PathBuf], jobs: &mpmc::Sender<PathBuf>) -> io::Result<Found> {
    let mut files = Vec::new();
    let mut left = roots.to_vec();
    while let Some(path) = left.pop() {
        // Does not follow symbolic links: the target is counted at its own path.
        let kind = fs::symlink_metadata(&path)?.file_type();
        if kind.is_dir() {
            for entry in fs::read_dir(&path)? {
                left.push(entry?.path());
            }
        } else if kind.is_file() {
            files.push(path.clone());
            if jobs.send(path).is_err() {
                break;
            }
        }
    }
    // Dropping the handle would do the same. Values in the channel are still received.
    jobs.close();
    let waiting = jobs.len();
    files.sort();
    Ok(Found { files, waiting })
}

fn show(files: &mut [Counted]) {
    files.sort_by(|a, b| b.lines.cmp(&a.lines).then_with(|| a.path.cmp(&b.path)));
    let here = env::current_dir().unwrap_or_default();
    println!("  {:>9}  {:>11}", "lines", "bytes");
    for file in files.iter().take(SHOWN) {
        let path = file.path.strip_prefix(&here).unwrap_or(&file.path);
        println!(
            "  {:>9}  {:>11}  {}",
            grouped(file.lines),
            grouped(file.bytes),
            path.display()
        );
    }
    if files.len() > SHOWN {
        println!("  {:>9}  {:>11}  ..", "", "");
    }
    let lines = files.iter().map(|file| file.lines).sum();
    let bytes = files.iter().map(|file| file.bytes).sum();
    println!("  {:>9}  {:>11}  total", grouped(lines), grouped(bytes));
}
