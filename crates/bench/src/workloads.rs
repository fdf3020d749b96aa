//! The workloads: one file each, and the list of them.

pub mod codec;
pub mod e2e;
pub mod echo_nginx;
pub mod ffi_complete;
pub mod ffi_flood;
pub mod first_calls;
pub mod guests;
pub mod idle;
pub mod lab_hosts;
pub mod queue;
pub mod runtime;
pub mod search_overhead;
pub mod single_await;
pub mod streaming;
pub mod submit;
pub mod view_read;

use serde::Serialize;

use crate::cell::Open;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::Row;

/// One workload and its description.
#[derive(Debug)]
pub struct Workload {
    /// Its public name.
    pub name: &'static str,
    /// One of [`crate::catalogue::GROUPS`].
    pub group: &'static str,
    /// Purpose of the measurement, in one sentence.
    pub what: &'static str,
    /// Where the idea comes from.
    pub source: &'static str,
    /// The peers that it measures against.
    pub peers: &'static [&'static str],
    /// Its approximate duration, in seconds.
    pub seconds: u32,
    /// Takes the samples, checks them, and returns the rows.
    pub run: fn(&mut Lab) -> Result<Vec<Row>, Problem>,
    /// The knobs that `--set NAME=VALUE` may change; read by [`Lab::knob`].
    pub knobs: &'static [Knob],
    /// Sets up one of its cells in a separate process, if the workload supports cells: see
    /// [`crate::processes`].
    pub cells: Option<Open>,
}

/// A chart of times on the page of a report: a bar for each side, grouped by a parameter.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Chart {
    /// The name of its workload.
    pub workload: &'static str,
    /// Its title.
    pub title: &'static str,
    /// The parameters of its rows.
    pub at: &'static [(&'static str, &'static str)],
    /// The parameter that groups the bars, in the order of the rows.
    pub by: &'static str,
    /// The parameter that distinguishes the subjects.
    pub series: &'static str,
    /// The unit of the bars, for example `s per 100,000 calls`.
    pub unit: &'static str,
    /// The factor from the unit of the rows to this one.
    pub factor: f64,
}

/// A setting that a person may change for one run.
#[derive(Clone, Copy, Debug)]
pub struct Knob {
    /// Its name, as in `--set NAME=VALUE`.
    pub name: &'static str,
    /// Its default.
    pub default: &'static str,
    /// What it does.
    pub what: &'static str,
}

impl Workload {
    /// The usual values; `..Workload::USUAL` ends a description.
    pub const USUAL: Self = Self {
        name: "",
        group: "",
        what: "",
        source: "",
        peers: &[],
        seconds: 0,
        run: |_| Ok(Vec::new()),
        knobs: &[],
        cells: None,
    };
}

/// All workloads, in the order in which they run.
pub static WORKLOADS: &[Workload] = &[
    search_overhead::WORKLOAD,
    first_calls::WORKLOAD,
    guests::CALL,
    single_await::WORKLOAD,
    view_read::WORKLOAD,
    codec::WORKLOAD,
    e2e::WORKLOAD,
    idle::WORKLOAD,
    queue::scenarios::SPSC_SAME_THREAD,
    queue::hand_off::SPSC_THREADS,
    queue::latency::WORKLOAD,
    queue::scenarios::BURST,
    queue::scenarios::SIZES,
    queue::scenarios::STRESS,
    queue::sustained::WORKLOAD,
    queue::hand_off::MPSC,
    queue::hand_off::MPMC,
    queue::broadcast::WORKLOAD,
    queue::rendezvous::WORKLOAD,
    queue::overflow::WORKLOAD,
    queue::scenarios::CONCURRENT_ACCESS,
    queue::io_simulation::WORKLOAD,
    queue::channel_memory::WORKLOAD,
    queue::async_channel::WORKLOAD,
    queue::channel_idle::WORKLOAD,
    queue::sustained::HOURS,
    submit::port_submit::WORKLOAD,
    submit::ingress::WORKLOAD,
    ffi_complete::WORKLOAD,
    ffi_flood::WORKLOAD,
    submit::ablation::WORKLOAD,
    streaming::streaming_channels::WORKLOAD,
    streaming::streaming_events::WORKLOAD,
    streaming::hosts::WORKLOAD,
    guests::STREAM,
    streaming::pause::WORKLOAD,
    echo_nginx::WORKLOAD,
    runtime::spawning::CHAINED_SPAWN,
    runtime::spawning::PING_PONG_ONESHOT,
    runtime::spawning::SPAWN_STORM_BUSY,
    runtime::yielding::YIELD_MANY,
    runtime::yielding::YIELD_IN_HOT_LOOP,
    runtime::timers::WORKLOAD,
    runtime::computing::FAN_OUT_COMPUTE,
    runtime::computing::MULTI_THREAD_SCALING,
    runtime::recursion::WORKLOAD,
    runtime::channels::MPSC_CONTENTION,
    runtime::channels::UNCONTENDED_CHANNEL,
    runtime::echo::WORKLOAD,
    runtime::panics::WORKLOAD,
    runtime::skynet::WORKLOAD,
    runtime::supervision::WORKLOAD,
    runtime::waking::WORKLOAD,
    runtime::actors::CALL,
    runtime::actors::CAST,
    runtime::actors::SPAWN_STOP,
    runtime::living::WORKLOAD,
    runtime::failing::WORKLOAD,
    runtime::memory::WORKLOAD,
];

/// All charts, in the order of the page.
pub static CHARTS: &[Chart] = &echo_nginx::CHARTS;

/// The workload of this name.
///
/// # Errors
/// It does not exist; the message lists the workloads that do.
pub fn find(name: &str) -> Result<&'static Workload, Problem> {
    WORKLOADS
        .iter()
        .find(|workload| workload.name == name)
        .ok_or_else(|| {
            let all: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
            Problem::Usage(format!(
                "there is no workload `{name}`; there is {}",
                all.join(", ")
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::GROUPS;

    #[test]
    fn an_unknown_name_is_answered_with_those_that_are_there() {
        let problem = find("warp").unwrap_err();
        assert_eq!(problem.exit_status(), 2);
        let text = problem.to_string();
        assert!(
            text.contains("`warp`") && text.contains("search_overhead"),
            "{text}"
        );
    }

    #[test]
    fn every_workload_says_what_it_is_and_stands_once_in_a_known_group() {
        for workload in WORKLOADS {
            let name = workload.name;
            assert!(
                !workload.what.is_empty() && !workload.source.is_empty(),
                "{name}"
            );
            assert!(workload.seconds > 0, "{name}");
            assert!(
                GROUPS.iter().any(|group| group.name == workload.group),
                "{name}"
            );
            assert_eq!(
                WORKLOADS.iter().filter(|other| other.name == name).count(),
                1,
                "{name}"
            );
        }
    }
}
