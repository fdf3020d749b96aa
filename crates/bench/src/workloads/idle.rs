//! `idle`: after work, Thalweg's threads do nothing at all.
//!
//! Each host makes calls and reads a stream to its end. Then another process counts, over five
//! seconds, the context switches of the host's threads named `tw-*`, and those of all its other
//! threads. A single switch is a failure, because it means that a timer polls. A host that waits
//! for its next line does not run. If no thread runs, none takes the GIL of Python.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use serde::de::IgnoredAny;

use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::{Workload, lab_hosts};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "idle",
    group: "boundary",
    what: "Context switches of a host's threads in 5 s after work, Thalweg's own and all others: none, or something polls, or takes the GIL.",
    source: "runtimes that wake a hundred times a second to find nothing",
    peers: &[],
    seconds: 20,
    run,
    ..Workload::USUAL
};

/// Time between the last work and the first count: threads that are about to sleep fall asleep.
const SETTLE: Duration = Duration::from_millis(500);

/// How long no switch may happen.
const WATCH: Duration = Duration::from_secs(5);

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let row = |host: &lab_hosts::LabHost| match host.missing(&WORKLOAD) {
        Some(missing) => Ok(missing),
        None => row(lab, host),
    };
    lab_hosts::ALL.iter().map(row).collect()
}

fn row(lab: &Lab, host: &lab_hosts::LabHost) -> Result<Row, Problem> {
    lab.begin(&format!("idle {} {}", host.language, host.mode), 2);
    let mut program = host.start()?;
    program.ask::<IgnoredAny>("nop 2000 0 0")?;
    program.ask::<IgnoredAny>("nop-async 200 0 0")?;
    let reading = match host.language {
        "nim" => "objects",
        _ => "views",
    };
    program.ask::<IgnoredAny>(&format!("{reading} 100000"))?;
    lab.step();
    sleep(SETTLE);
    let before = Switches::of(program.id(), OURS)?;
    let all_before = Switches::of(program.id(), "")?;
    sleep(WATCH);
    let after = Switches::of(program.id(), OURS)?;
    let all_after = Switches::of(program.id(), "")?;
    lab.step();
    program.finish()?;

    if before.threads == 0 || before.switches == 0 {
        return Err(Problem::Check(format!(
            "{}: {} threads named tw-* with {} switches: nothing was watched",
            host.language, before.threads, before.switches
        )));
    }
    if before.threads != after.threads {
        return Err(Problem::Check(format!(
            "{}: {} threads named tw-* became {}",
            host.language, before.threads, after.threads
        )));
    }
    // A thread that exited no longer reports its count, and must have run.
    let gone = all_before.threads.abs_diff(all_after.threads) as u64;
    let switched = all_after.switches.abs_diff(all_before.switches).max(gone);
    let params = [
        ("language", host.language),
        ("mode", host.mode),
        ("seconds", &WATCH.as_secs().to_string()),
    ];
    let mut row = Row::new(
        (WORKLOAD.name, WORKLOAD.group),
        &params,
        "switches",
        ("thalweg", vec![switched as f64]),
        None,
    )
    .checked(format!(
        "{} threads named tw-* had worked before",
        before.threads
    ));
    let ours = after.switches - before.switches;
    row.metrics
        .insert("context_switches".to_owned(), switched as f64);
    row.metrics
        .insert("context_switches_of_tw".to_owned(), ours as f64);
    row.metrics
        .insert("threads".to_owned(), before.threads as f64);
    // The figure is a count, not a time, so it is judged in a quick run, too.
    Ok(row.held_to(&Target::Metric("context_switches", 0.0), None))
}

/// The prefix of the names of Thalweg's own threads.
const OURS: &str = "tw-";

/// The kernel's counts for those threads of a process whose names have a given prefix.
#[derive(Debug, PartialEq, Eq)]
pub struct Switches {
    /// The number of threads.
    pub threads: usize,
    /// Voluntary and involuntary switches of all threads.
    pub switches: u64,
    /// The voluntary switches: how often the threads went to sleep.
    pub voluntary: u64,
}

impl Switches {
    /// Counts the threads of `process` whose names begin with `prefix`.
    ///
    /// # Errors
    /// There is no such process.
    pub fn of(process: u32, prefix: &str) -> Result<Self, Problem> {
        let folder = format!("/proc/{process}/task");
        let mut found = Self {
            threads: 0,
            switches: 0,
            voluntary: 0,
        };
        for task in fs::read_dir(&folder).map_err(Problem::io(folder.clone()))? {
            let task = task
                .map_err(Problem::io(folder.clone()))?
                .path()
                .join("status");
            // A thread that exited after the folder was read is not idle but gone; the number of
            // threads shows it.
            let status = fs::read_to_string(task).ok();
            if let Some((voluntary, others)) = status.and_then(|status| own(&status, prefix)) {
                found.threads += 1;
                found.switches += voluntary + others;
                found.voluntary += voluntary;
            }
        }
        Ok(found)
    }
}

/// The voluntary and involuntary switches in a thread's `status`, if its name begins with `prefix`.
fn own(status: &str, prefix: &str) -> Option<(u64, u64)> {
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
    };
    if !field("Name")?.starts_with(prefix) {
        return None;
    }
    let count = |name| field(name)?.parse::<u64>().ok();
    Some((
        count("voluntary_ctxt_switches")?,
        count("nonvoluntary_ctxt_switches")?,
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn a_status_counts_both_kinds_and_only_of_our_threads() {
        let status =
            "Name:\ttw-worker-0\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!(own(status, OURS), Some((7, 2)));
        assert_eq!(own(&status.replace("tw-", "my-"), OURS), None);
    }

    // Uses another name than the runtime's, because other tests of this process use that.
    #[test]
    fn a_thread_that_polls_is_seen_and_one_that_waits_is_not() {
        let (stop, stopped) = mpsc::channel::<()>();
        let start = |name: &str, body: Box<dyn FnOnce() + Send>| {
            thread::Builder::new()
                .name(name.to_owned())
                .spawn(body)
                .unwrap()
        };
        let waiting = start(
            "idle-waits",
            Box::new(move || {
                let _ = stopped.recv();
            }),
        );
        sleep(Duration::from_millis(50));
        let first = Switches::of(std::process::id(), "idle-").unwrap();
        sleep(Duration::from_millis(100));
        assert_eq!(Switches::of(std::process::id(), "idle-").unwrap(), first);
        assert_eq!(first.threads, 1);

        let (stop_polling, polling_stopped) = mpsc::channel::<()>();
        let polling = start(
            "idle-polls",
            Box::new(move || {
                let pause = Duration::from_millis(5);
                while polling_stopped.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout) {}
            }),
        );
        sleep(Duration::from_millis(50));
        let busy = Switches::of(std::process::id(), "idle-").unwrap();
        assert_eq!(busy.threads, 2);
        sleep(Duration::from_millis(100));
        assert!(Switches::of(std::process::id(), "idle-").unwrap().switches > busy.switches);
        drop((stop, stop_polling));
        waiting.join().unwrap();
        polling.join().unwrap();
    }
}
