//! Searches a directory tree for plain text, from Rust.
//!
//! ```text
//! search-rust PATTERN DIR [--print | --count | --json | --direct]
//! ```
//!
//! * `--print`: each line that matches, as `grep -rn` prints it (the default)
//! * `--count`: how many there are, counted by the service: nothing is streamed
//! * `--json`: how many there are, streamed, with the time it took: one line for a program to read
//! * `--direct`: the same without the service: the walk is called as a function, on the same
//!   workers

mod direct;
mod found;
mod service;

use std::io;
use std::process::ExitCode;

/// Why the program ends early: an error, or the reader of its output has closed the pipe.
enum Failed {
    Search(String),
    Output(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Output(error)
    }
}

const USAGE: &str = "usage: search-rust PATTERN DIR [--print | --count | --json | --direct]";

fn main() -> ExitCode {
    let arguments: Option<Vec<String>> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.into_string().ok())
        .collect();
    let arguments = arguments.unwrap_or_default();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        [pattern, dir] | [pattern, dir, "--print"] => service::print(pattern, dir),
        [pattern, dir, "--count"] => service::count(pattern, dir),
        [pattern, dir, "--json"] => service::measure(pattern, dir),
        [pattern, dir, "--direct"] => direct::measure(pattern, dir),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // `search-rust .. | head` is no failure.
        Err(Failed::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failed::Output(error)) => {
            eprintln!("search-rust: {error}");
            ExitCode::FAILURE
        }
        Err(Failed::Search(why)) => {
            eprintln!("search-rust: {why}");
            ExitCode::FAILURE
        }
    }
}
