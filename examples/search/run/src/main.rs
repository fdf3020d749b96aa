//! Searches one directory from every host language, checks that all found what grep finds, and says
//! what each took.

mod arguments;
mod grep;
mod host;
mod table;
mod verdict;
mod warm_up;

use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};

use arguments::Arguments;
use host::{Host, Measured};
use table::counted;

/// The number of runs of each host. The hosts take turns, so that a disturbance of the machine
/// affects all of them.
const ROUNDS: usize = 3;

fn main() -> ExitCode {
    match Arguments::read(std::env::args_os()).and_then(|arguments| run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let Arguments {
        pattern, directory, ..
    } = arguments;
    println!("Searching for {pattern:?} below {directory}");
    // Drawn on the standard error's terminal, and nowhere if that is none.
    let bar = ProgressBar::new(0);
    let progress = warm_up::search(pattern, directory, &bar)?;
    let reference = grep::count(pattern, directory)?;
    let hosts = Host::all(arguments);
    let runs = rounds(&hosts, &bar)?;
    bar.finish_and_clear();

    let rows: Vec<(&str, &[Measured])> = hosts
        .iter()
        .zip(&runs)
        .map(|(host, runs)| (host.name, &runs[..]))
        .collect();
    let width = console::Term::stdout()
        .size_checked()
        .map_or(usize::MAX, |(_, width)| width.into());
    print!("\n{}\n", table::table(&rows, width));
    if progress.unreadable > 0 {
        println!(
            "Could not be read: {}, the last was {}",
            counted(progress.unreadable, "path"),
            progress.problem.unwrap_or_default()
        );
    }
    verdict::agree(&reference, &rows)?;
    println!(
        "All agree with LC_ALL=C grep -raF -c: {} in {}.",
        counted(reference.matches, "line"),
        counted(progress.files, "file")
    );
    println!("Medians of {ROUNDS} rounds; the ratio is to the same walk called directly.");
    Ok(())
}

/// Every host in turn, several times.
fn rounds(hosts: &[Host], bar: &ProgressBar) -> Result<Vec<Vec<Measured>>, String> {
    bar.reset();
    bar.set_style(
        ProgressStyle::with_template("  {wide_bar} {pos}/{len}, {msg}")
            .expect("a constant template"),
    );
    bar.set_length((ROUNDS * hosts.len()) as u64);
    let mut runs = vec![Vec::new(); hosts.len()];
    for _ in 0..ROUNDS {
        for (host, runs) in hosts.iter().zip(&mut runs) {
            bar.set_message(host.name);
            runs.push(host.run()?);
            bar.inc(1);
        }
    }
    Ok(runs)
}
