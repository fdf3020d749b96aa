//! Threads that start together at one gate, with an upper bound for their run time.
//!
//! 1. Every thread exists, and is on its processor, before the timed section begins; a barrier
//!    releases all of them at once.
//! 2. A thread that panics fails the run. So does a thread that is not done within two minutes,
//!    because it has lost a message or a wake-up. The process exits with it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use thalweg_peers::patience;

use crate::placement::allowed;
use crate::problem::Problem;

use super::run::{CPU_NS, Run, WALL_NS};

/// A well-planned run takes at most a second; a lost wake-up takes forever.
const LIMIT: Duration = Duration::from_secs(120);

/// The result of a thread; an error is its panic message.
type End<T> = Result<T, String>;

/// The threads of one run.
#[derive(Debug)]
pub struct Crew<T> {
    /// The subject whose code they run, for messages.
    subject: &'static str,
    size: usize,
    gate: Arc<Barrier>,
    done: SyncSender<End<T>>,
    ends: Receiver<End<T>>,
    threads: Vec<JoinHandle<()>>,
    began: Instant,
    cpu_before: Duration,
}

impl<T: Send + 'static> Crew<T> {
    /// A crew of `size` threads; no thread has started yet.
    ///
    /// Subjects without blocking calls are informed whether there are more threads than processors.
    #[must_use]
    pub fn new(subject: &'static str, size: usize) -> Self {
        // Unit tests run in parallel, so the size of one crew does not show how many threads run.
        patience::set_crowded(cfg!(test) || size > allowed().len());
        let (done, ends) = sync_channel(size);
        Self {
            subject,
            size,
            gate: Arc::new(Barrier::new(size)),
            done,
            ends,
            threads: Vec::with_capacity(size),
            began: Instant::now(),
            cpu_before: processor_time(),
        }
    }

    /// Adds one thread, on `cpu` if given; `work` receives the time at which it passed the gate.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
    pub fn add(
        &mut self,
        cpu: Option<usize>,
        work: impl FnOnce(Instant) -> T + Send + 'static,
    ) -> Result<(), Problem> {
        let (gate, done) = (Arc::clone(&self.gate), self.done.clone());
        let body = move || {
            pin(cpu);
            gate.wait();
            let began = Instant::now();
            let end = catch_unwind(AssertUnwindSafe(|| work(began))).map_err(|panic| {
                let text = panic.downcast_ref::<String>().cloned();
                text.unwrap_or_else(|| "see above".to_owned())
            });
            // The receiver is gone only if the run has already failed.
            let _ = done.send(end);
        };
        let thread = thread::Builder::new()
            .spawn(body)
            .map_err(Problem::io("cannot start a thread"))?;
        self.threads.push(thread);
        Ok(())
    }

    /// Waits for all threads. Returns their results, in the order in which they finish, and the
    /// cost of the whole run, including start and end of the threads.
    ///
    /// # Errors
    /// A thread panicked, or was not done in time.
    /// A thread panicked, or is not done in time.
    pub fn wait(self) -> Result<(Vec<T>, Run), Problem> {
        let Self { subject, size, .. } = self;
        assert_eq!(
            self.threads.len(),
            size,
            "the gate opens for the whole crew"
        );
        drop(self.done);
        let deadline = Instant::now() + LIMIT;
        let mut found = Vec::with_capacity(size);
        while found.len() < size {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.ends.recv_timeout(left) {
                Ok(Ok(end)) => found.push(end),
                Ok(Err(panic)) => {
                    return Err(Problem::Check(format!(
                        "{subject}: a thread panicked: {panic}"
                    )));
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Problem::Check(format!(
                        "{subject}: {} of {size} threads were done after {LIMIT:?}: a message or a wake-up is lost",
                        found.len()
                    )));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Problem::Check(format!(
                        "{subject}: a thread ended without a word"
                    )));
                }
            }
        }
        // The threads only have to clean up.
        self.threads
            .into_iter()
            .for_each(|thread| drop(thread.join()));
        let mut run = Run::default();
        let wall = self.began.elapsed();
        let cpu = processor_time().saturating_sub(self.cpu_before);
        run.elapsed = wall;
        run.counts.insert(WALL_NS, wall.as_nanos() as f64);
        run.counts.insert(CPU_NS, cpu.as_nanos() as f64);
        Ok((found, run))
    }
}

/// Pins this thread to `cpu`. If the kernel refuses, the thread runs anywhere, as with `free`.
fn pin(cpu: Option<usize>) {
    if let Some(cpu) = cpu {
        let mut there = CpuSet::new();
        there.set(cpu);
        let _ = sched_setaffinity(None, &there);
    }
}

/// The processor time of this process's threads.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn nobody_starts_before_all_are_there() {
        static THERE: AtomicUsize = AtomicUsize::new(0);
        let mut crew = Crew::new("test", 3);
        for pause in [0, 5, 20] {
            thread::sleep(Duration::from_millis(pause));
            THERE.fetch_add(1, Ordering::SeqCst);
            crew.add(None, |_| THERE.load(Ordering::SeqCst)).unwrap();
        }
        let (found, run) = crew.wait().unwrap();
        assert_eq!(found, [3, 3, 3]);
        assert!(run.elapsed >= Duration::from_millis(25));
        assert!(run.counts[WALL_NS] >= 25e6);
    }

    #[test]
    fn a_thread_that_panics_fails_the_run_instead_of_hanging_it() {
        let mut crew = Crew::<()>::new("test", 1);
        crew.add(None, |_| panic!("{}", "as the test says"))
            .unwrap();
        let text = crew.wait().unwrap_err().to_string();
        assert_eq!(
            text,
            "check failed: test: a thread panicked: as the test says"
        );
    }

    #[test]
    fn a_thread_goes_where_it_is_told() {
        let last = *allowed().last().unwrap();
        let mut crew = Crew::new("test", 1);
        crew.add(Some(last), |_| allowed()).unwrap();
        assert_eq!(crew.wait().unwrap().0, [[last]]);
    }
}
