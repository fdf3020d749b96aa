//! Starting and stopping, and the handle to spawn by.

use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread::JoinHandle;

use crate::config::{Config, StartError};
use crate::scheduler::{Fresh, Run, Scheduler};
use crate::timers::Timers;
use crate::worker::Worker;

/// Running workers. Dropping it stops them: turns are finished, waits end with [`crate::Woke::Stopping`], what has
/// not begun is dropped.
#[derive(Debug)]
pub struct Runtime {
    handle: Handle,
    threads: Vec<JoinHandle<()>>,
}

/// Spawns onto a runtime, from any thread.
#[derive(Clone)]
pub struct Handle {
    scheduler: Arc<Scheduler>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle")
            .field("workers", &self.workers())
            .finish()
    }
}

impl Runtime {
    /// Starts the workers, threads named `tw-worker-N` that take no signals.
    ///
    /// # Errors
    /// A setting out of range, or no thread to be had.
    pub fn start(config: Config) -> Result<Self, StartError> {
        let scheduler = Arc::new(Scheduler::new(config.checked()?));
        let mut runtime = Self {
            handle: Handle {
                scheduler: Arc::clone(&scheduler),
            },
            threads: Vec::new(),
        };
        for index in 0..scheduler.config.workers {
            let shared = Arc::clone(&scheduler);
            // On an error the runtime is dropped, and stops those that run.
            let thread = thread(format!("tw-worker-{index}"), move || {
                Worker::new(index, shared).run();
            });
            runtime.threads.push(thread.map_err(StartError::Thread)?);
        }
        Ok(runtime)
    }

    /// The process's own, started at the first call and never stopped. A forked child has another.
    ///
    /// # Errors
    /// As [`Runtime::start`]; the next call tries again.
    pub fn global() -> Result<Handle, StartError> {
        static GLOBAL: AtomicPtr<(u32, Runtime)> = AtomicPtr::new(std::ptr::null_mut());
        crate::watch_forks();
        let epoch = crate::epoch();
        let known = GLOBAL.load(Ordering::Acquire);
        // SAFETY: what is stored there was leaked: it lives for ever.
        if let Some((made_in, runtime)) = unsafe { known.as_ref() }
            && *made_in == epoch
        {
            return Ok(runtime.handle().clone());
        }
        let runtime = Self::start(Config::default())?;
        let handle = runtime.handle().clone();
        let fresh = Box::into_raw(Box::new((epoch, runtime)));
        match GLOBAL.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(handle),
            Err(_) => {
                // Two threads opened at once, and the other was first.
                // SAFETY: nobody else has seen `fresh`.
                drop(unsafe { Box::from_raw(fresh) });
                Self::global()
            }
        }
    }

    /// To spawn by.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.handle.scheduler.stop();
        for thread in self.threads.drain(..) {
            // A worker catches what its actors throw; there is nothing to learn from its end.
            let _ = thread.join();
        }
    }
}

impl Handle {
    /// Runs the closure as an actor: with a stack of its own, on any worker. A panic ends it and nothing else.
    pub fn spawn(&self, job: impl FnOnce() + Send + 'static) {
        self.scheduler.inject(Fresh::Once(Box::new(job)));
    }

    /// Gives `actor` one turn on any worker. It is for `actor` to see to it that it is scheduled once at a time.
    pub fn schedule(&self, actor: Arc<dyn Run>) {
        self.scheduler.inject(Fresh::Run(actor));
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.scheduler.config.workers
    }

    /// The deadlines of this runtime.
    pub fn timers(&self) -> &Timers {
        &self.scheduler.timers
    }
}

/// A thread of the core: it blocks all asynchronous signals, so that the host's threads get them.
pub(crate) fn thread(
    name: String,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    // Blocked here and inherited there: no signal finds the thread in between.
    let before = signals::block();
    let thread = std::thread::Builder::new().name(name).spawn(body);
    signals::restore(&before);
    thread
}

mod signals {
    /// Blocks every signal on this thread but those that a fault of its own raises.
    pub(super) fn block() -> libc::sigset_t {
        // SAFETY: sigset_t is plain data that the calls fill; all pointers are to locals.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut set);
            for fault in [
                libc::SIGSEGV,
                libc::SIGBUS,
                libc::SIGFPE,
                libc::SIGILL,
                libc::SIGTRAP,
                libc::SIGABRT,
                libc::SIGSYS,
            ] {
                libc::sigdelset(&mut set, fault);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &set, &mut before);
            before
        }
    }

    pub(super) fn restore(before: &libc::sigset_t) {
        // SAFETY: a mask that `block` got from the system.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
    }
}
