//! `channel_idle`: a thousand threads that wait for a message do nothing at all.
//!
//! Each thread waits in the blocking receive of its own channel. Their context switches are counted
//! from outside the channels over five seconds. A single switch is a failure, because it means that
//! a wait polls. Then each thread gets its message and exits.

use std::thread::{Builder, sleep};
use std::time::Duration;

use thalweg_peers::channel::Channel;

use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::Workload;
use crate::workloads::idle::Switches;

use super::subjects::{Mpmc, Mpsc, Spsc, THALWEG};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "channel_idle",
    group: "queue",
    what: "Context switches of 1,000 threads that wait for a message, in 5 s: none, or something polls.",
    source: "channels whose waits wake a thousand times a second, and programs that look again every millisecond",
    peers: &[],
    seconds: 20,
    run,
    ..Workload::USUAL
};

const THREADS: usize = 1_000;
/// The prefix of their names, which distinguishes them from the lab's own threads.
const NAME: &str = "ch-idle";
/// Time until all of them sleep.
const SETTLE: Duration = Duration::from_secs(1);
/// How long no switch may happen.
const WATCH: Duration = Duration::from_secs(5);
/// A waiting thread needs a page or two.
const STACK: usize = 64 << 10;

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    Ok(vec![
        waiting::<Spsc>(lab, "spsc")?,
        waiting::<Mpsc>(lab, "mpsc")?,
        waiting::<Mpmc>(lab, "mpmc")?,
    ])
}

fn waiting<C: Channel>(lab: &Lab, channel: &str) -> Result<Row, Problem> {
    lab.begin(&format!("channel_idle {channel}"), 1);
    let mut senders = Vec::with_capacity(THREADS);
    let mut threads = Vec::with_capacity(THREADS);
    for number in 0..THREADS {
        let (sender, mut receiver) = C::bounded(16);
        let thread = Builder::new()
            .name(format!("{NAME}-{number}"))
            .stack_size(STACK)
            .spawn(move || C::receive(&mut receiver))
            .map_err(Problem::io("cannot start a thousand threads"))?;
        senders.push(sender);
        threads.push(thread);
    }
    sleep(SETTLE);
    let process = std::process::id();
    let before = Switches::of(process, NAME)?;
    sleep(WATCH);
    let after = Switches::of(process, NAME)?;
    for (number, sender) in (0..).zip(&mut senders) {
        C::send(sender, number);
    }
    for (number, thread) in (0u64..).zip(threads) {
        if thread.join().ok() != Some(number) {
            return Err(Problem::Check(format!(
                "thread {number} did not get its message"
            )));
        }
    }
    lab.step();
    if before.threads != THREADS || after.threads != THREADS {
        return Err(Problem::Check(format!(
            "{THREADS} threads waited, {} and {} were seen",
            before.threads, after.threads
        )));
    }
    let switched = (after.switches - before.switches) as f64;
    let params = [
        ("channel", channel.to_owned()),
        ("receivers", THREADS.to_string()),
        ("seconds", WATCH.as_secs().to_string()),
    ];
    let params: Vec<(&str, &str)> = params.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let mut row = Row::new(
        (WORKLOAD.name, WORKLOAD.group),
        &params,
        "switches",
        (THALWEG, vec![switched]),
        None,
    )
    .checked("all threads were there before and after, and each then got its message");
    row.metrics.insert("context_switches".to_owned(), switched);
    // The figure is a count, not a time, so it is judged in a quick run, too.
    Ok(row.held_to(&Target::Metric("context_switches", 0.0), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_waiting_receivers_do_not_switch() {
        let row = waiting::<Spsc>(&Lab::new(true, None), "spsc").unwrap();
        assert_eq!(row.verdict.as_deref(), Some("met"), "{:?}", row.metrics);
    }
}
