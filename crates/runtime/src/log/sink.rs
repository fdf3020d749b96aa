//! The process's sink, and the calls of it.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use thalweg_queue::NoPreemptGuard;
use thalweg_queue::no_preempt::lock;

use super::{Level, Record};
use crate::time_of_day;

type Sink = Box<dyn Fn(&Record<'_>) + Send + Sync>;

struct Registration {
    sink: Sink,
    calls: Arc<Calls>,
}

/// The number of running calls of one sink.
#[derive(Default)]
struct Calls {
    running: Mutex<usize>,
    none: Condvar,
}

impl Calls {
    /// Waits until no call is running.
    fn wait(&self) {
        let _no_preempt = NoPreemptGuard::enter();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while *running > 0 {
            running = self
                .none
                .wait(running)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn leave(&self) {
        let mut running = lock(&self.running);
        *running -= 1;
        if *running == 0 {
            self.none.notify_all();
        }
    }
}

/// The sink of one process (rule 1).
struct Process {
    epoch: u64,
    /// The level of the sink; 0 if there is none.
    max: AtomicU8,
    registered: Mutex<Option<Arc<Registration>>>,
}

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());

/// Runs a closure on a large stack if the caller is an actor.
type OnDeepStack = fn(&mut dyn FnMut());

static ON_DEEP_STACK: OnceLock<OnDeepStack> = OnceLock::new();

/// Sets how sinks are called by actors. The runtime, which is above this module, does so when it
/// starts.
pub(crate) fn set_deep_stack(on_deep_stack: OnDeepStack) {
    // The first runtime has set the same function.
    let _ = ON_DEEP_STACK.set(on_deep_stack);
}

/// Runs code of the program, which may need a large stack. Discards a panic.
fn call_program(f: impl FnOnce()) {
    let mut f = Some(f);
    let mut called = Ok(());
    let mut call = || {
        if let Some(f) = f.take() {
            called = catch_unwind(AssertUnwindSafe(f));
        }
    };
    match ON_DEEP_STACK.get() {
        Some(on_deep_stack) => on_deep_stack(&mut call),
        None => call(),
    }
    if let Err(payload) = called {
        std::mem::forget(payload);
    }
}

thread_local! {
    /// Rule 3.
    static IS_WRITING: Cell<bool> = const { Cell::new(false) };
}

/// This process's entry, if it has had a sink.
#[inline]
fn process() -> Option<&'static Process> {
    let known = PROCESS.load(Ordering::Acquire);
    // SAFETY: an entry that was stored here was leaked, so it lives forever.
    let process = unsafe { known.as_ref() }?;
    (process.epoch == crate::epoch()).then_some(process)
}

/// This process's entry, which is created if necessary. The parent's entry may be locked by a
/// thread that does not exist in the child, so it is left alone.
fn process_or_new() -> &'static Process {
    crate::watch_forks();
    loop {
        if let Some(process) = process() {
            return process;
        }
        let known = PROCESS.load(Ordering::Acquire);
        let fresh = Box::into_raw(Box::new(Process {
            epoch: crate::epoch(),
            max: AtomicU8::new(0),
            registered: Mutex::new(None),
        }));
        if PROCESS
            .compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            // SAFETY: `fresh` was not shared with another thread.
            drop(unsafe { Box::from_raw(fresh) });
        }
    }
}

/// The number of the level up to which the sink receives records. `None` if there is no sink, or if
/// this thread must write no records (rule 3).
#[inline]
pub(super) fn max_level() -> Option<u8> {
    let max = process()?.max.load(Ordering::Relaxed);
    (max > 0 && !IS_WRITING.get()).then_some(max)
}

/// Sets the sink that receives the records of all runtimes of the process up to `max`. It replaces
/// the earlier one, as [`take_sink`] does.
///
/// The sink is called on the thread that writes the record, also on several threads at the same
/// time. It should return soon, because that thread has other work. It must not wait for an actor,
/// and must not use the object that the record is about. Records that the sink itself causes on its
/// thread are discarded. A panic of the sink ends only that call. A forked child begins without a
/// sink.
pub fn set_sink(max: Level, sink: impl Fn(&Record<'_>) + Send + Sync + 'static) {
    replace(
        max as u8,
        Some(Arc::new(Registration {
            sink: Box::new(sink),
            calls: Arc::default(),
        })),
    );
}

/// Removes the sink and drops it. Returns whether there was one.
///
/// Waits for calls of the sink that are running on other threads, so no call runs after it returns.
/// In a call of the sink it does not wait: no further call begins, and the sink is dropped after
/// its last call.
pub fn take_sink() -> bool {
    process().is_some() && replace(0, None)
}

fn replace(max: u8, next: Option<Arc<Registration>>) -> bool {
    let process = process_or_new();
    let before = {
        let mut registered = lock(&process.registered);
        process.max.store(max, Ordering::Relaxed);
        std::mem::replace(&mut *registered, next)
    };
    let Some(before) = before else {
        return false;
    };
    if !IS_WRITING.get() {
        before.calls.wait();
    }
    drop_sink(before);
    true
}

/// Drops a reference to a sink. Its destructor may be code of another language, and may panic.
fn drop_sink(registration: Arc<Registration>) {
    call_program(|| drop(registration));
}

/// A running call of the sink (rule 2).
struct SinkCall(Option<Arc<Registration>>);

impl SinkCall {
    fn begin(process: &Process) -> Option<Self> {
        let registered = lock(&process.registered);
        let registration = registered.clone()?;
        *lock(&registration.calls.running) += 1;
        IS_WRITING.set(true);
        Some(Self(Some(registration)))
    }
}

impl Drop for SinkCall {
    fn drop(&mut self) {
        if let Some(registration) = self.0.take() {
            let calls = Arc::clone(&registration.calls);
            drop_sink(registration);
            IS_WRITING.set(false);
            calls.leave();
        }
    }
}

/// Builds the record and calls the sink.
#[cold]
pub(super) fn deliver(level: Level, target: &'static str, message: fmt::Arguments<'_>) {
    let Some(call) = process().and_then(SinkCall::begin) else {
        return;
    };
    let Some(registration) = &call.0 else {
        return;
    };
    // Both the text and the sink may be code of the program.
    call_program(|| {
        let record = Record {
            level,
            target,
            message: &message.to_string(),
            at: time_of_day::now(),
        };
        (registration.sink)(&record);
    });
}
