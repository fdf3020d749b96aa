//! What calls cost besides time: processor time and context switches of nginx's event loop and of the threads that
//! serve it, as the kernel counts them.

use std::fs;

use crate::placement::threads;
use crate::problem::Problem;

/// The counters since the start of the threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Processor time of the event loop, user and system, in ns.
    worker_ns: u64,
    /// The same of all threads that serve it.
    service_ns: u64,
    /// How often one of these threads waited.
    waits: u64,
}

impl Cost {
    /// Reads the counters of a worker of nginx, whose first thread is the event loop, and of a server.
    ///
    /// # Errors
    /// A process has ended.
    pub fn read(worker: u32, server: Option<u32>) -> Result<Self, Problem> {
        let mut cost = Self::default();
        for process in [Some(worker), server].into_iter().flatten() {
            for thread in threads(process)? {
                // A thread that has ended meanwhile has cost nothing since the last reading that counts.
                let Some((ns, waits)) = of_thread(process, thread) else {
                    continue;
                };
                let time = if thread == worker {
                    &mut cost.worker_ns
                } else {
                    &mut cost.service_ns
                };
                *time += ns;
                cost.waits += waits;
            }
        }
        Ok(cost)
    }

    /// The metrics of `calls` calls since `before`.
    #[must_use]
    pub fn per_call(self, before: Self, calls: u64) -> [(&'static str, f64); 3] {
        let each = |now: u64, then: u64| now.saturating_sub(then) as f64 / calls as f64;
        [
            ("worker_cpu_ns", each(self.worker_ns, before.worker_ns)),
            ("service_cpu_ns", each(self.service_ns, before.service_ns)),
            ("waits_per_call", each(self.waits, before.waits)),
        ]
    }
}

/// The processor time in ns and the voluntary context switches of a thread.
fn of_thread(process: u32, thread: u32) -> Option<(u64, u64)> {
    let read = |file| fs::read_to_string(format!("/proc/{process}/task/{thread}/{file}")).ok();
    let time = read("schedstat")?.split(' ').next()?.parse().ok()?;
    let status = read("status")?;
    let waits = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    Some((time, waits.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn time_of_the_first_thread_and_of_the_others_is_counted_separately() {
        let own = std::process::id();
        let before = Cost::read(own, None).unwrap();
        let (start, mut steps) = (Instant::now(), 0_u64);
        while start.elapsed() < Duration::from_millis(30) {
            steps += 1;
        }
        assert!(steps > 0);
        for _ in 0..10 {
            thread::sleep(Duration::from_millis(1));
        }
        // A test runs on a thread that is not the first one of its process.
        let [worker, service, waits] = Cost::read(own, None).unwrap().per_call(before, 10);
        assert!(service.1 > 100_000.0, "{service:?}");
        assert!(worker.1 < service.1, "{worker:?} {service:?}");
        assert!(waits.1 >= 1.0, "{waits:?}");
    }
}
