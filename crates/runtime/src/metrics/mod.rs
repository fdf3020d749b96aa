//! What a runtime has done, in numbers, and as Prometheus' text.
//!
//! Each worker counts for itself, with plain stores. To read the counters takes no lock, waits for nobody and asks no worker. So they are not of one instant, but
//! each only grows.
//!
//! ```
//! use thalweg_runtime::{metrics, run, spawn};
//!
//! run(|| {
//!     for n in 0..3 {
//!         let _ = spawn(move || assert!(n < 2, "the third fails")).join();
//!     }
//!     let metrics = metrics::metrics();
//!     let total = metrics.total();
//!     assert_eq!((total.ended_stacks["normal"], total.ended_stacks["panic"]), (2, 1));
//!     let text = metrics.to_prometheus();
//!     assert!(text.contains("thalweg_actors_ended_total{kind=\"stack\",reason=\"panic\"} 1\n"));
//! });
//! ```

mod counts;
mod histogram;
mod prometheus;

pub use self::counts::Counted;
pub(crate) use self::counts::{Counter, Counts};
pub use self::histogram::Histogram;
pub use self::prometheus::BadLabel;
use crate::runtime::Handle;
use crate::worker;

/// The numbers of a runtime.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// Of each worker, by its number; those that did not start have counted nothing.
    pub workers: Vec<WorkerMetrics>,
    /// What threads did that are no workers of this runtime.
    pub outside: Counted,
    /// Actors and turns that no worker has taken yet.
    pub injected: usize,
    /// Deadlines of calls, and messages that were to be sent later, that came: by the timers' thread.
    pub timers_fired: u64,
    /// How long actors had their worker at a time. `None`: [`Config::inspect`](crate::Config::inspect) is off.
    pub slices: Option<Histogram>,
}

/// Of one worker.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkerMetrics {
    /// What it counted.
    pub counted: Counted,
    /// Stacks that it has, in use or not.
    pub stacks: usize,
    /// Actors and turns that have not begun, and that others may take from it.
    pub queued: usize,
}

impl Metrics {
    /// All workers and other threads together.
    pub fn total(&self) -> Counted {
        let mut total = self.outside.clone();
        for worker in &self.workers {
            total += &worker.counted;
        }
        total
    }
}

/// The numbers of the caller's runtime.
///
/// # Panics
/// If the caller is no actor: a thread has [`Handle::metrics`].
pub fn metrics() -> Metrics {
    let handle = Handle::current().expect("this is for actors: a thread has Handle::metrics");
    handle.metrics()
}

impl Handle {
    /// The numbers of this runtime.
    pub fn metrics(&self) -> Metrics {
        let scheduler = &self.scheduler;
        let slices = scheduler.config.inspect.then(|| {
            let mut slices = Histogram::new();
            for seat in &scheduler.seats {
                seat.pulse.counts.read_slices_into(&mut slices);
            }
            slices
        });
        // Before what was spawned by threads is read: what ended is not more then.
        let workers = scheduler.seats.iter().map(|seat| WorkerMetrics {
            counted: seat.pulse.counts.read(),
            stacks: seat.stacks.load(crate::shim::Ordering::Relaxed),
            queued: seat.ring.len() + seat.placed.len(),
        });
        Metrics {
            workers: workers.collect(),
            outside: scheduler.outside.read(),
            injected: scheduler.injected(),
            timers_fired: scheduler.timers.fired(),
            slices,
        }
    }

    /// Counts one more, by whoever the caller is.
    pub(crate) fn count(&self, which: impl Fn(&Counts) -> &Counter) {
        match worker::current() {
            Some(worker) if std::sync::Arc::ptr_eq(&worker.scheduler, &self.scheduler) => {
                which(&worker.pulse.counts).add(1);
            }
            _ => which(&self.scheduler.outside).add_as_one_of_many(1),
        }
    }
}
