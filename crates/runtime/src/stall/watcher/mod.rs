//! The watcher: the thread `tw-watcher`, which detects stalls.

mod detector;
mod frames;
mod sample;
mod signal;

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use thalweg_queue::no_preempt::lock;
use thalweg_queue::{Parker, clock};

use self::detector::{Rate, StallDetector, Stalled};
use self::sample::{SampleError, SampledThread};
use super::WorkerStatus;
use super::report::{self, NoFrames, Stall};
use crate::id::ActorId;
use crate::stack::overflow::AlternateStack;

/// Whether stall reports are supported here.
pub(crate) const IS_SUPPORTED: bool = true;

/// Returns the caller's stack pointer. The address of a local variable would not work, because
/// AddressSanitizer may place variables elsewhere.
#[inline(always)]
pub(crate) fn stack_pointer() -> usize {
    let here: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it reads a register and changes nothing.
    unsafe {
        std::arch::asm!("mov {}, rsp", out(reg) here, options(nomem, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("mov {}, sp", out(reg) here, options(nomem, nostack, preserves_flags));
    }
    here
}

/// The watcher of one runtime.
#[derive(Debug)]
pub(crate) struct Watcher {
    /// `None` if stall reports are off.
    watch: Option<Arc<Watch>>,
    thread: Mutex<Thread>,
}

/// The state of the watcher's thread.
#[derive(Debug)]
struct Watch {
    limit: Duration,
    statuses: Box<[Arc<WorkerStatus>]>,
    parker: Parker,
    /// Whether the thread sleeps until a worker wakes up.
    asleep: AtomicBool,
    stopping: AtomicBool,
}

#[derive(Debug)]
enum Thread {
    /// No worker has started, or the system had no thread.
    Unborn,
    Runs(JoinHandle<()>),
    /// The thread has ended.
    Gone,
}

impl Watcher {
    pub(crate) fn new(
        limit: Option<Duration>,
        statuses: impl Iterator<Item = Arc<WorkerStatus>>,
    ) -> Self {
        Self {
            watch: limit.map(|limit| {
                Arc::new(Watch {
                    limit,
                    statuses: statuses.collect(),
                    parker: Parker::new(),
                    asleep: AtomicBool::new(false),
                    stopping: AtomicBool::new(false),
                })
            }),
            thread: Mutex::new(Thread::Unborn),
        }
    }

    /// Starts the thread, with the first worker. If the system has no thread, stalls are not
    /// detected, everything else works, and the next worker tries again.
    fn start(&self, watch: &Arc<Watch>) {
        let mut thread = lock(&self.thread);
        if matches!(*thread, Thread::Unborn) {
            crate::watch_forks();
            let watch = Arc::clone(watch);
            if let Ok(runs) = crate::threads::spawn("tw-watcher".into(), move || watch.run()) {
                *thread = Thread::Runs(runs);
            }
        }
    }

    /// Rule 2. Called by a worker that has woken up, after it has published that.
    pub(crate) fn wake(&self) {
        if let Some(watch) = &self.watch {
            watch.wake();
        }
    }

    /// Stops the thread. Called when no worker is left.
    pub(crate) fn stop(&self) {
        let thread = std::mem::replace(&mut *lock(&self.thread), Thread::Gone);
        if let (Some(watch), Thread::Runs(thread)) = (&self.watch, thread) {
            watch.stopping.store(true, Ordering::Release);
            watch.parker.unpark();
            // A hook may end the runtime; the thread then ends after the hook.
            if thread.thread().id() != std::thread::current().id() {
                // A panic of that thread has been printed already.
                let _ = thread.join();
            }
        }
    }
}

impl Watch {
    fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.parker.unpark();
        }
    }

    fn run(&self) {
        let mut detector = StallDetector::new(self.limit);
        let mut rate = Rate::default();
        while !self.stopping.load(Ordering::Acquire) {
            let mut stalls = Vec::new();
            let samples = self.statuses.iter().map(|status| {
                let sample = status.read();
                let waited = sample.is_awake().then(|| sample::waited(status));
                (sample, waited.unwrap_or(0))
            });
            let active = detector.check(clock::now(), samples, |stalled| stalls.push(stalled));
            for stalled in stalls {
                self.report(stalled, &mut detector, &mut rate);
            }
            if active {
                self.parker.park(Some(detector.next()));
            } else {
                self.sleep();
            }
        }
    }

    /// Rule 2.
    fn sleep(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !self.statuses.iter().any(|status| status.read().is_awake()) {
            self.parker.park(None);
        }
        self.asleep.store(false, Ordering::Relaxed);
    }

    fn report(&self, stalled: Stalled, detector: &mut StallDetector, rate: &mut Rate) {
        let status = &self.statuses[stalled.worker];
        let sampled = sample::sample_thread(status, stalled.sample.interval, |answer| {
            (answer.name(), frames::walk(answer))
        });
        let sampled = match sampled {
            Ok(answer) => Ok(answer),
            Err(SampleError::Busy) => return detector.retry(&stalled),
            Err(SampleError::NoFrames(NoFrames::NoAnswer))
                if detector.retry_after_no_response(&stalled) =>
            {
                return;
            }
            Err(SampleError::NoFrames(why)) => Err(why),
        };
        // A thread that responds has a processor, so the kernel has recorded all of its waiting
        // time.
        let waited = sample::waited(status);
        let Some(stalled) = detector.settle(stalled, clock::now(), waited) else {
            return;
        };
        let Some(left_out) = rate.allows(clock::now()) else {
            return;
        };
        let (name, frames) = match sampled {
            Ok((name, addresses)) => (name, Ok(frames::resolve(&addresses))),
            Err(why) => (None, Err(why)),
        };
        report::report(&Stall {
            worker: stalled.worker,
            actor: stalled.sample.actor().map(ActorId::from_number),
            name,
            lasted: Duration::from_nanos(stalled.lasted),
            frames,
            left_out,
        });
    }
}

/// A worker that the watcher observes. Its thread accepts the signal.
#[derive(Debug)]
pub(crate) struct WatchedWorker {
    status: Arc<WorkerStatus>,
    before: SampledThread,
    /// An actor's stack may have too little space for a signal handler.
    _alternate: Option<AlternateStack>,
}

impl WatchedWorker {
    /// Called by the worker's thread before any task runs there. `None` if stall reports are off.
    pub(crate) fn new(watcher: &Watcher, status: &Arc<WorkerStatus>) -> Option<Self> {
        let watch = watcher.watch.as_ref()?;
        let alternate = AlternateStack::where_missing();
        let before = SampledThread::begin(status);
        status.set_awake();
        watcher.start(watch);
        watch.wake();
        Some(Self {
            status: Arc::clone(status),
            before,
            _alternate: alternate,
        })
    }
}

impl Drop for WatchedWorker {
    fn drop(&mut self) {
        self.before.end(&self.status);
        self.status.set_asleep();
    }
}
