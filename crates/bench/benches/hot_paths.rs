//! The hot paths, each alone and in one process.
//!
//! `cargo bench -p thalweg-bench` prints nanoseconds an operation, for a first look: what is quoted comes from `thalweg-bench`, which
//! compares. `hot_paths PATH COUNT` runs one path so often and prints nothing, for a profiler:
//! `crates/bench/instructions.sh` counts instructions that way.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use thalweg::wire::{Decode, message};
use thalweg_lab::lab::{LabClient, Match, MatchView};
use thalweg_lab::{Content, Contents, LabService};

/// A path: its name, how often it runs where only the time is wanted, and the path itself.
type Path = (&'static str, u64, fn(u64));

const PATHS: [Path; 5] = [
    ("encode_match", 1_000_000, encode_match),
    ("view_match", 1_000_000, view_match),
    ("stream_match", 1_000_000, stream_match),
    ("call", 20_000, call),
    ("call_async", 20_000, call_async),
];

fn view<'a>(content: &Content<'a>) -> MatchView<'a> {
    let Content {
        path,
        line,
        column,
        text,
        cut,
    } = *content;
    MatchView {
        path,
        line,
        column,
        text,
        path_bytes: None,
        text_bytes: None,
        cut,
    }
}

/// A match becomes a message in memory that is there already.
fn encode_match(count: u64) {
    let contents = Contents::new();
    let mut buffer = Vec::new();
    for n in 0..count {
        let found = view(&contents.get(n));
        buffer = message::encode(black_box(&found), Match::HASH, buffer).expect("it is small");
        black_box(&buffer);
    }
}

/// A message is opened, checked and read in place.
fn view_match(count: u64) {
    let contents = Contents::new();
    let bytes =
        message::encode(&view(&contents.get(1)), Match::HASH, Vec::new()).expect("it is small");
    for _ in 0..count {
        let opened = message::open(black_box(&bytes), Match::HASH).expect("just written");
        let found = opened.view::<Match>().expect("just written");
        black_box((found.line, found.path.len(), found.text.len()));
    }
}

/// A match goes through a stream: written by an actor, read in place on this thread.
fn stream_match(count: u64) {
    let lab = LabClient::start(|| LabService).expect("the runtime starts");
    let mut stream = lab.generate(count).wait().expect("it cannot fail");
    let mut lines = 0;
    while let Some(batch) = stream.next_batch(256, u64::MAX).expect("nobody closes it") {
        lines += batch.iter().map(|found| found.line).sum::<u64>();
    }
    assert_eq!(lines, count * (count + 1) / 2, "every match came once");
}

/// A call that does nothing: submitted, run by the service's actor, completed, waited for.
fn call(count: u64) {
    let lab = LabClient::start(|| LabService).expect("the runtime starts");
    for _ in 0..count {
        lab.nop().wait().expect("it cannot fail");
    }
}

/// The same, run by an actor of its own.
fn call_async(count: u64) {
    let lab = LabClient::start(|| LabService).expect("the runtime starts");
    for _ in 0..count {
        lab.nop_async().wait().expect("it cannot fail");
    }
}

fn main() -> ExitCode {
    // `cargo bench` adds `--bench`.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let [name, count] = arguments.as_slice() else {
        for (name, count, path) in PATHS {
            path(count / 10);
            let began = Instant::now();
            path(count);
            let ns = began.elapsed().as_secs_f64() * 1e9 / count as f64;
            println!("{name:16} {ns:10.1} ns");
        }
        return ExitCode::SUCCESS;
    };
    let path = PATHS.iter().find(|(known, _, _)| known == name);
    match (path, count.parse()) {
        (Some((_, _, path)), Ok(count)) => {
            path(count);
            ExitCode::SUCCESS
        }
        _ => {
            let names: Vec<&str> = PATHS.iter().map(|(name, _, _)| *name).collect();
            eprintln!(
                "usage: hot_paths PATH COUNT, with a path of {}",
                names.join(", ")
            );
            ExitCode::from(2)
        }
    }
}
