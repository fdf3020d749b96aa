//! Metrics: the counters of a runtime, also in Prometheus text format.
//!
//! Each worker has its own counters and updates them with plain stores. Reading the counters takes
//! no lock and does not wait for any worker. The values are therefore not a snapshot of one
//! instant, but each of them only grows.
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

mod prometheus;

pub use self::prometheus::LabelError;
use crate::counters::{Counter, CounterSet};
pub use crate::counters::{Counters, Histogram};
use crate::runtime::Handle;
use crate::worker;

/// The metrics of a runtime.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// The metrics of each worker, indexed by its number. All values of a worker that has not
    /// started are 0.
    pub workers: Vec<WorkerMetrics>,
    /// The counters of threads that are not workers of this runtime.
    pub outside: Counters,
    /// The number of actors and turns that no worker has taken yet.
    pub injected: usize,
    /// The number of fired timers of the timer thread: deadlines of calls, and delayed messages.
    pub timers_fired: u64,
    /// How long actors had their worker without interruption. `None` if
    /// [`Config::inspect`](crate::Config::inspect) is off.
    pub slices: Option<Histogram>,
}

/// The metrics of one worker.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkerMetrics {
    /// The counters of the worker.
    pub counters: Counters,
    /// The number of stacks of the worker, used or free.
    pub stacks: usize,
    /// The number of unstarted actors and turns that other workers may steal.
    pub queued: usize,
}

impl Metrics {
    /// Returns the sum over all workers and other threads.
    pub fn total(&self) -> Counters {
        let mut total = self.outside.clone();
        for worker in &self.workers {
            total += &worker.counters;
        }
        total
    }
}

/// Returns the metrics of the caller's runtime.
///
/// # Panics
/// If the caller is not an actor. On a thread, use [`Handle::metrics`].
pub fn metrics() -> Metrics {
    let handle =
        Handle::current().expect("metrics() is for actors; use Handle::metrics on a thread");
    handle.metrics()
}

impl Handle {
    /// Returns the metrics of this runtime.
    pub fn metrics(&self) -> Metrics {
        let scheduler = &self.scheduler;
        let slices = scheduler.config.inspect.then(|| {
            let mut slices = Histogram::new();
            for shared in &scheduler.workers {
                shared.status.counts.read_slices_into(&mut slices);
            }
            slices
        });
        // Read before the counters of other threads, so that the number of ended actors does not
        // exceed the number of spawned ones.
        let workers = scheduler.workers.iter().map(|shared| WorkerMetrics {
            counters: shared.status.counts.read(),
            stacks: shared.stacks.load(crate::shim::Ordering::Relaxed),
            queued: shared.ring.len() + shared.placed.len(),
        });
        Metrics {
            workers: workers.collect(),
            outside: scheduler.outside.read(),
            injected: scheduler.injected(),
            timers_fired: scheduler.timers.fired(),
            slices,
        }
    }

    /// Increments a counter of the calling worker, or of other threads.
    pub(crate) fn count(&self, which: impl Fn(&CounterSet) -> &Counter) {
        match worker::current() {
            Some(worker) if std::sync::Arc::ptr_eq(&worker.scheduler, &self.scheduler) => {
                which(&worker.status.counts).add(1);
            }
            _ => which(&self.scheduler.outside).add_shared(1),
        }
    }
}
