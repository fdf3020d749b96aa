//! The counters of the library's runtime, and the numbers of its open handles.

use thalweg_port::{HandleCounts, Instance, handle_counts};

use crate::abi::{TwCounters, TwError};
use crate::error::enter;
use crate::pointers::write_sized;

fn read() -> TwCounters {
    let HandleCounts {
        ports,
        clients,
        calls,
        queued_calls,
        streams,
        resources,
        batches,
        completions,
        ..
    } = handle_counts();
    let mut counters = TwCounters {
        ports,
        clients,
        calls,
        calls_queued: queued_calls,
        streams,
        resources,
        batches,
        completions,
        ..TwCounters::default()
    };
    let Some(runtime) = Instance::runtime_if_started() else {
        return counters;
    };
    let metrics = runtime.metrics();
    let total = metrics.total();
    let ended = [&total.ended_stacks, &total.ended_behaviours];
    let count = |is_counted: fn(&str) -> bool| {
        let all = ended.iter().flat_map(|ended| ended.iter());
        all.filter(|(kind, _)| is_counted(kind))
            .map(|(_, number)| number)
            .sum::<u64>()
    };
    counters.workers = metrics.workers.len() as u64;
    counters.actors_started = total.started_stacks + total.started_behaviours;
    counters.actors = counters.actors_started.saturating_sub(count(|_| true));
    counters.actors_failed =
        count(|kind| matches!(kind, "panic" | "error" | "killed" | "no_stack" | "no_actor"));
    counters.actors_waiting = metrics.injected as u64;
    for worker in &metrics.workers {
        counters.stacks += worker.stacks as u64;
        counters.actors_waiting += worker.queued as u64;
    }
    counters.slices = total.slices;
    counters.waits = total.waits;
    counters.remote_wakes = total.remote_wakes;
    counters.deadlines = total.deadlines;
    counters.timers = metrics.timers_fired;
    counters.steals = total.steals;
    counters.sleeps = total.sleeps;
    counters.messages = total.messages;
    counters.messages_dropped = total.dropped_messages;
    counters.restarts = total.restarts;
    counters
}

pub(crate) unsafe extern "C" fn counters(
    counters: *mut TwCounters,
    size: u32,
    error: *mut TwError,
) -> u32 {
    // SAFETY: thalweg.h requires of the caller what `enter` requires, and that `counters` has
    // capacity for `size` bytes.
    unsafe { enter(error, || write_sized(&read(), counters, size)) }
}
