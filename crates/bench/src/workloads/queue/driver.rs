//! The one driver that moves values between threads: it starts them, times them, and limits them.
//!
//! 1. A run consists of producers and consumers: threads that the driver starts, and actors of a
//!    service that the caller opens a stream of. All of them exist before the run begins.
//! 2. They start at one [`Gate`]. The clock starts at the first operation of the first of them,
//!    which reads the clock itself. It ends at the last value of the last consumer, which also
//!    reads the clock itself. No other thread takes a time.
//! 3. Every value carries the mark of the run, which is drawn when the gate opens ([`numbers`]). A
//!    value that a producer sent before the gate opened fails the consumer's check.
//! 4. A thread that panics fails the run. So does a thread that is not done within two minutes,
//!    because it has lost a value or a wake-up. The process exits with it.
//!
//! [`numbers`]: super::numbers

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use thalweg::queue::clock;
use thalweg_lab::gate::Gate;
use thalweg_peers::patience;

use crate::placement::allowed;
use crate::problem::Problem;

use super::run::{CPU_NS, Run, WALL_NS};

/// A well-planned run takes at most a second; a lost wake-up takes forever.
const LIMIT: Duration = Duration::from_secs(120);

/// The result of a thread: its place in the order of addition, its value, and when it had its last
/// value if it is a consumer. An error is its panic message.
type End<T> = Result<(usize, T, Option<u64>), String>;

/// One run. Each thread returns a `T`.
#[derive(Debug)]
pub struct Driver<T> {
    /// The subject whose code the threads run, for messages.
    subject: String,
    size: usize,
    /// Where threads sleep until all of them exist, so that they do not poll the gate for long.
    ready: Arc<Barrier>,
    gate: Arc<Gate>,
    done: SyncSender<End<T>>,
    ends: Receiver<End<T>>,
    threads: Vec<JoinHandle<()>>,
    began: Instant,
    cpu_before: Duration,
}

impl<T: Send + 'static> Driver<T> {
    /// A run of `threads` threads and of `actors` actors that pass [`Driver::gate`]; no thread has
    /// started yet.
    ///
    /// Subjects without blocking calls are informed whether there are more threads than processors.
    #[must_use]
    pub fn new(subject: &str, threads: usize, actors: usize) -> Self {
        let members = threads + actors;
        // Unit tests run in parallel, so the size of one run does not show how many threads run.
        patience::set_crowded(cfg!(test) || members > allowed().len());
        let (done, ends) = sync_channel(threads);
        Self {
            subject: subject.to_owned(),
            size: threads,
            ready: Arc::new(Barrier::new(threads)),
            gate: Gate::new(members),
            done,
            ends,
            threads: Vec::with_capacity(threads),
            began: Instant::now(),
            cpu_before: processor_time(),
        }
    }

    /// The gate, for actors.
    #[must_use]
    pub fn gate(&self) -> Arc<Gate> {
        Arc::clone(&self.gate)
    }

    /// Adds a producer, on `cpu` if given. `work` receives the mark.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
    pub fn produce(
        &mut self,
        cpu: Option<usize>,
        work: impl FnOnce(u64) -> T + Send + 'static,
    ) -> Result<(), Problem> {
        self.add(cpu, move |mark| (work(mark), None))
    }

    /// Adds a consumer, on `cpu` if given. `work` receives the mark and returns at its last value.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
    pub fn consume(
        &mut self,
        cpu: Option<usize>,
        work: impl FnOnce(u64) -> T + Send + 'static,
    ) -> Result<(), Problem> {
        self.consume_elsewhere(cpu, move |mark| {
            let result = work(mark);
            (result, clock::now())
        })
    }

    /// Adds a thread that waits for a consumer on a thread that the driver does not own. `work` also
    /// returns when that consumer had its last value, in ns of the monotonic clock.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
    pub fn consume_elsewhere(
        &mut self,
        cpu: Option<usize>,
        work: impl FnOnce(u64) -> (T, u64) + Send + 'static,
    ) -> Result<(), Problem> {
        self.add(cpu, move |mark| {
            let (result, ended) = work(mark);
            (result, Some(ended))
        })
    }

    fn add(
        &mut self,
        cpu: Option<usize>,
        work: impl FnOnce(u64) -> (T, Option<u64>) + Send + 'static,
    ) -> Result<(), Problem> {
        let (ready, gate) = (Arc::clone(&self.ready), self.gate());
        let (done, place) = (self.done.clone(), self.threads.len());
        let body = move || {
            pin(cpu);
            ready.wait();
            let mark = gate.pass(thread::yield_now);
            let end = catch_unwind(AssertUnwindSafe(|| work(mark)));
            let end = end.map(|(result, ended)| (place, result, ended));
            // The receiver is gone only if the run has already failed.
            let _ = done.send(end.map_err(|panic| {
                let text = panic.downcast_ref::<String>().cloned();
                text.unwrap_or_else(|| "see above".to_owned())
            }));
        };
        let thread = thread::Builder::new()
            .spawn(body)
            .map_err(Problem::io("cannot start a thread"))?;
        self.threads.push(thread);
        Ok(())
    }

    /// Waits for all threads. Returns their results, in the order in which they were added, and the
    /// time from the first operation of any member to the last value of the last consumer.
    ///
    /// # Errors
    /// A thread panicked, or is not done in time.
    ///
    /// # Panics
    /// The driver has fewer threads than it was created for, so its gate cannot open.
    pub fn run(mut self) -> Result<(Vec<T>, Run), Problem> {
        let threads = std::mem::take(&mut self.threads);
        assert_eq!(threads.len(), self.size, "the gate opens for all threads");
        let failed = |text: String| Err(Problem::Check(format!("{}: {text}", self.subject)));
        let deadline = Instant::now() + LIMIT;
        let mut results: Vec<Option<T>> = (0..self.size).map(|_| None).collect();
        let mut last = None;
        for found in 0..self.size {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.ends.recv_timeout(left) {
                Ok(Ok((place, result, ended))) => {
                    results[place] = Some(result);
                    last = last.max(ended);
                }
                Ok(Err(panic)) => return failed(format!("a thread panicked: {panic}")),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return failed(format!(
                        "{found} of {} threads were done after {LIMIT:?}: a message or a wake-up is lost",
                        self.size
                    ));
                }
            }
        }
        // The threads only have to clean up.
        threads.into_iter().for_each(|thread| drop(thread.join()));
        let (Some(began), Some(ended)) = (self.gate.began(), last) else {
            return failed("no consumer took part".to_owned());
        };
        let mut run = Run {
            elapsed: Duration::from_nanos(ended.saturating_sub(began)),
            ..Run::default()
        };
        let cpu = processor_time().saturating_sub(self.cpu_before);
        let wall = self.began.elapsed();
        run.counts.insert(WALL_NS, wall.as_nanos() as f64);
        run.counts.insert(CPU_NS, cpu.as_nanos() as f64);
        Ok((results.into_iter().flatten().collect(), run))
    }
}

/// A run that failed before all members arrived must not keep its actors at the gate.
impl<T> Drop for Driver<T> {
    fn drop(&mut self) {
        self.gate.open();
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
#[must_use]
pub fn processor_time() -> Duration {
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
    fn threads_start_when_all_of_them_and_all_actors_are_there() {
        static THERE: AtomicUsize = AtomicUsize::new(0);
        let mut driver = Driver::new("test", 2, 1);
        for pause in [0, 5] {
            thread::sleep(Duration::from_millis(pause));
            THERE.fetch_add(1, Ordering::SeqCst);
            let work = |_| THERE.load(Ordering::SeqCst);
            driver.consume(None, work).unwrap();
        }
        let gate = driver.gate();
        thread::sleep(Duration::from_millis(20));
        THERE.fetch_add(1, Ordering::SeqCst);
        gate.pass(thread::yield_now);
        let (found, run) = driver.run().unwrap();
        assert_eq!(found, [3, 3]);
        assert!(
            run.elapsed < Duration::from_millis(20),
            "the set-up is not timed"
        );
        assert!(run.counts[WALL_NS] >= 25e6);
    }

    #[test]
    fn results_are_in_the_order_of_addition_and_only_consumers_end_the_clock() {
        let mut driver = Driver::new("test", 2, 0);
        let slow = |_| {
            thread::sleep(Duration::from_millis(200));
            'p'
        };
        driver.produce(None, slow).unwrap();
        driver.consume(None, |_| 'c').unwrap();
        let (found, run) = driver.run().unwrap();
        assert_eq!(found, ['p', 'c']);
        assert!(run.elapsed < Duration::from_millis(200));
    }

    #[test]
    fn thread_that_panics_fails_the_run_instead_of_hanging_it() {
        let mut driver = Driver::<()>::new("test", 1, 0);
        driver
            .consume(None, |_| panic!("{}", "as the test says"))
            .unwrap();
        let text = driver.run().unwrap_err().to_string();
        assert_eq!(
            text,
            "check failed: test: a thread panicked: as the test says"
        );
    }

    #[test]
    fn actor_is_released_when_the_run_fails_before_the_gate_opens() {
        let driver = Driver::<()>::new("test", 1, 1);
        let gate = driver.gate();
        let actor = thread::spawn(move || gate.pass(thread::yield_now));
        drop(driver);
        assert!(actor.join().unwrap() > 0);
    }

    #[test]
    fn thread_runs_on_its_processor() {
        let last = *allowed().last().unwrap();
        let mut driver = Driver::new("test", 1, 0);
        driver.consume(Some(last), |_| allowed()).unwrap();
        assert_eq!(driver.run().unwrap().0, [[last]]);
    }
}
