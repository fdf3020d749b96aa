//! The thread that looks: `tw-watcher`.

mod frames;
mod look;
mod sample;
mod signal;

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use thalweg_queue::quiet::lock;
use thalweg_queue::{Parker, clock};

use self::look::{Looks, Rate, Stalled};
use self::sample::{Asked, Silent};
use super::Pulse;
use super::report::{self, NoFrames, Stall};
use crate::id::ActorId;
use crate::stack::overflow::AlternateStack;

/// Whether stalls can be found here.
pub(crate) const IS_KNOWN: bool = true;

/// Of the caller. A variable's address would not do: AddressSanitizer has some elsewhere.
#[inline(always)]
pub(crate) fn stack_pointer() -> usize {
    let here: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it reads a register, and changes nothing.
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
    /// Where it is switched on.
    watch: Option<Arc<Watch>>,
    thread: Mutex<Thread>,
}

/// What its thread has.
#[derive(Debug)]
struct Watch {
    limit: Duration,
    pulses: Box<[Arc<Pulse>]>,
    parker: Parker,
    /// It sleeps until a worker gets up.
    asleep: AtomicBool,
    stopping: AtomicBool,
}

#[derive(Debug)]
enum Thread {
    /// No worker has begun, or the system had no thread.
    Unborn,
    Runs(JoinHandle<()>),
    /// It has ended.
    Gone,
}

impl Watcher {
    pub(crate) fn new(limit: Option<Duration>, pulses: impl Iterator<Item = Arc<Pulse>>) -> Self {
        Self {
            watch: limit.map(|limit| {
                Arc::new(Watch {
                    limit,
                    pulses: pulses.collect(),
                    parker: Parker::new(),
                    asleep: AtomicBool::new(false),
                    stopping: AtomicBool::new(false),
                })
            }),
            thread: Mutex::new(Thread::Unborn),
        }
    }

    /// With the first worker. Where the system has no thread nobody watches, everything else goes on, and the next worker
    /// tries again.
    fn start(&self, watch: &Arc<Watch>) {
        let mut thread = lock(&self.thread);
        if matches!(*thread, Thread::Unborn) {
            crate::watch_forks();
            let watch = Arc::clone(watch);
            if let Ok(runs) = crate::runtime::thread("tw-watcher".into(), move || watch.run()) {
                *thread = Thread::Runs(runs);
            }
        }
    }

    /// A worker that slept, after its pulse says that it does not: rule 2.
    pub(crate) fn wake(&self) {
        if let Some(watch) = &self.watch {
            watch.wake();
        }
    }

    /// When no worker is left.
    pub(crate) fn stop(&self) {
        let thread = std::mem::replace(&mut *lock(&self.thread), Thread::Gone);
        if let (Some(watch), Thread::Runs(thread)) = (&self.watch, thread) {
            watch.stopping.store(true, Ordering::Release);
            watch.parker.unpark();
            // A hook may end the runtime; the thread goes after it then.
            if thread.thread().id() != std::thread::current().id() {
                // Its panic has been printed, and there is nothing more to learn from it.
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
        let mut looks = Looks::new(self.limit);
        let mut rate = Rate::default();
        while !self.stopping.load(Ordering::Acquire) {
            let mut stalls = Vec::new();
            let beats = self.pulses.iter().map(|pulse| {
                let beat = pulse.look();
                let waited = beat.is_awake().then(|| sample::waited(pulse));
                (beat, waited.unwrap_or(0))
            });
            let lively = looks.look(clock::now(), beats, |stalled| stalls.push(stalled));
            for stalled in stalls {
                self.report(stalled, &mut looks, &mut rate);
            }
            if lively {
                self.parker.park(Some(looks.next()));
            } else {
                self.sleep();
            }
        }
    }

    /// Rule 2.
    fn sleep(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !self.pulses.iter().any(|pulse| pulse.look().is_awake()) {
            self.parker.park(None);
        }
        self.asleep.store(false, Ordering::Relaxed);
    }

    fn report(&self, stalled: Stalled, looks: &mut Looks, rate: &mut Rate) {
        let pulse = &self.pulses[stalled.worker];
        let asked = sample::ask(pulse, stalled.beat.stretch, |answer| {
            (answer.name(), frames::walk(answer))
        });
        let asked = match asked {
            Ok(answer) => Ok(answer),
            Err(Silent::Busy) => return looks.ask_again(&stalled),
            Err(Silent::Why(NoFrames::NoAnswer)) if looks.is_to_ask_again(&stalled) => return,
            Err(Silent::Why(why)) => Err(why),
        };
        // Who answers has a processor, so that all it waited for one is in the books.
        let waited = sample::waited(pulse);
        let Some(stalled) = looks.settle(stalled, clock::now(), waited) else {
            return;
        };
        let Some(left_out) = rate.allows(clock::now()) else {
            return;
        };
        let (name, frames) = match asked {
            Ok((name, addresses)) => (name, Ok(frames::resolve(&addresses))),
            Err(why) => (None, Err(why)),
        };
        report::report(&Stall {
            worker: stalled.worker,
            actor: stalled.beat.actor().map(ActorId::of_number),
            name,
            lasted: Duration::from_nanos(stalled.lasted),
            frames,
            left_out,
        });
    }
}

/// A worker's time under the watcher's eye: its thread lets itself be asked.
#[derive(Debug)]
pub(crate) struct Watched {
    pulse: Arc<Pulse>,
    before: Asked,
    /// An actor's stack may have no room for a signal.
    _alternate: Option<AlternateStack>,
}

impl Watched {
    /// By the worker's thread, before anything runs there. `None`: it is switched off.
    pub(crate) fn by(watcher: &Watcher, pulse: &Arc<Pulse>) -> Option<Self> {
        let watch = watcher.watch.as_ref()?;
        let alternate = AlternateStack::where_missing();
        let before = Asked::begin(pulse);
        pulse.set_awake();
        watcher.start(watch);
        watch.wake();
        Some(Self {
            pulse: Arc::clone(pulse),
            before,
            _alternate: alternate,
        })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.before.end(&self.pulse);
        self.pulse.sleep();
    }
}
