//! A call under way: its one ending, its deadline, and what stops with it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Wake, Waker};

use thalweg_queue::clock;
use thalweg_runtime::{TimerKey, wait};
use thalweg_wire::Decode;

use crate::code::{Code, Failure};
use crate::completion::{Completed, Kind, Port};
use crate::handles::{self, Object};
use crate::instance::Instance;
use crate::pending::Slot;
use crate::stream::{StreamCore, StreamReader, StreamWriter};

/// Where a completion goes.
pub(crate) enum Sink {
    Port { port: Arc<Port>, token: u64 },
    Slot(Arc<Slot>),
}

/// One call, shared by its caller, its service and its timer.
pub struct CallCore {
    pub(crate) instance: Arc<Instance>,
    pub(crate) method: u32,
    pub(crate) sink: Sink,
    deadline: u64,
    timer: Mutex<Option<TimerKey>>,
    /// Its number while it has not ended.
    handle: AtomicU64,
    ended: AtomicBool,
    /// Why the service should stop working on it.
    stopped: OnceLock<Failure>,
    streams: Mutex<Vec<Weak<StreamCore>>>,
}

impl std::fmt::Debug for CallCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("method", &self.method)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while one of these is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What fires at the deadline.
struct Deadline(Weak<CallCore>);

impl Wake for Deadline {
    fn wake(self: Arc<Self>) {
        if let Some(call) = self.0.upgrade() {
            call.stop(Code::TimedOut.because("the deadline passed"));
        }
    }
}

impl CallCore {
    /// A call that has begun: it has a number, and its deadline runs. A reserved slot, if the sink is a port, is its own from
    /// now on.
    pub(crate) fn begin(
        instance: &Arc<Instance>,
        method: u32,
        sink: Sink,
        deadline: u64,
    ) -> Result<(Arc<Self>, u64), Failure> {
        let call = Arc::new(Self {
            instance: Arc::clone(instance),
            method,
            sink,
            deadline,
            timer: Mutex::new(None),
            handle: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            stopped: OnceLock::new(),
            streams: Mutex::default(),
        });
        let handle = handles::insert(Object::Call(Arc::clone(&call)))?;
        call.handle.store(handle, Ordering::Release);
        if deadline != u64::MAX {
            let waker = Waker::from(Arc::new(Deadline(Arc::downgrade(&call))));
            let key = instance.runtime.timers().at(deadline, waker);
            *lock(&call.timer) = Some(key);
            // It may have fired before the key was stored.
            call.forget_timer_if_done();
        }
        Ok((call, handle))
    }

    /// The caller has had enough: the call ends as cancelled unless it ended before.
    pub fn cancel(&self) {
        self.stop(Code::Cancelled.because("cancelled"));
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    pub(crate) fn deadline(&self) -> u64 {
        self.deadline
    }

    /// Rule 2: the first ending is delivered. A call that was told to stop ends for that reason, also where the service, which
    /// was told too, is faster with an answer.
    pub(crate) fn end(&self, code: Code, data: Vec<u8>, message: String) -> bool {
        let handle = self.handle.load(Ordering::Acquire);
        let ending = |code, data, message| Completed {
            token: 0,
            handle,
            kind: Kind::CallEnded,
            code,
            data,
            message,
        };
        // What is not delivered is dropped, with the handles in it.
        let mut completed = ending(code, data, message);
        if let Some(why) = self.stopped.get() {
            completed = ending(why.code, Vec::new(), why.message.clone());
        }
        if self.ended.swap(true, Ordering::AcqRel) {
            return false;
        }
        // Only here is it removed, and only once.
        let _ = handles::remove(handle);
        self.forget_timer_if_done();
        match &self.sink {
            Sink::Port { port, token } => {
                completed.token = *token;
                port.complete(completed);
            }
            Sink::Slot(slot) => slot.complete(completed),
        }
        true
    }

    /// Ends the call, its streams and the work on it, if they have not ended.
    pub(crate) fn stop(&self, why: Failure) {
        // The first reason counts.
        let why = self.stopped.get_or_init(|| why).clone();
        let streams: Vec<_> = lock(&self.streams)
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        for stream in streams {
            stream.end(why.clone());
        }
        self.end(why.code, Vec::new(), why.message);
    }

    /// The timer is of no more use once the call has ended and no stream of it is open.
    pub(crate) fn forget_timer_if_done(&self) {
        if self.deadline == u64::MAX
            || !self.has_ended()
            || lock(&self.streams).iter().any(|s| s.strong_count() > 0)
        {
            return;
        }
        if let Some(key) = lock(&self.timer).take() {
            self.instance.runtime.timers().cancel(key);
        }
    }

    fn check(&self) -> Result<(), Failure> {
        match self.stopped.get() {
            Some(why) => Err(why.clone()),
            None => Ok(()),
        }
    }

    /// Runs code of the service. A panic stops the call and has the instance replaced (rule 3).
    pub(crate) fn guard(&self, code: impl FnOnce()) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(code)) {
            let message = payload
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| payload.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "a panic without a text".to_owned());
            // What was thrown may itself panic when dropped.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
            self.instance.replace();
            self.stop(Code::GuestPanicked.because(message));
        }
    }
}

/// What a service's code knows of the call it works for: whether to go on, and how to make streams and actors that belong to it.
#[derive(Clone, Debug)]
pub struct Call {
    pub(crate) core: Arc<CallCore>,
}

impl Call {
    /// Whether to go on. Lets other actors run if they wait and this one had its time slice; call it every few
    /// microseconds of work.
    ///
    /// # Errors
    /// Why not: cancelled, the deadline passed, another part of the call panicked, the runtime stops.
    pub fn check(&self) -> Result<(), Failure> {
        wait::check();
        if wait::stopping() {
            // Whoever is told to give up has no answer: the call ends here.
            self.core.stop(Code::ShutDown.because("the runtime stops"));
        }
        self.core.check()
    }

    /// When the call must have ended, in nanoseconds of [`thalweg_queue::clock`]; `None`: whenever.
    pub fn deadline(&self) -> Option<u64> {
        Some(self.core.deadline()).filter(|ns| *ns != u64::MAX)
    }

    /// Runs `job` as an actor that belongs to this call: its panic ends the call and its streams.
    pub fn spawn(&self, job: impl FnOnce(&Self) + Send + 'static) {
        let unrun = Unrun(Some(self.clone()));
        self.core.instance.runtime.spawn(move || {
            let mut unrun = unrun;
            if let Some(call) = unrun.0.take() {
                call.core.guard(|| job(&call));
            }
        });
    }

    /// How many actors can run at a time.
    pub fn workers(&self) -> usize {
        self.core.instance.runtime.workers()
    }

    /// A stream with the options of this method, to write to and to return. It ends when the last writer is dropped, with
    /// the call's deadline, or when the call is stopped.
    pub fn stream<T: Decode>(&self) -> (StreamWriter<T>, StreamReader<T>) {
        let method = self
            .core
            .instance
            .package
            .methods
            .get(self.core.method as usize);
        let options = method.and_then(|m| m.stream).unwrap_or_default();
        let core = StreamCore::new(&self.core, T::SIZE, T::ALIGN, options);
        {
            let mut streams = lock(&self.core.streams);
            streams.push(Arc::downgrade(&core));
        }
        self.core.instance.watch(&core);
        // A call that was stopped meanwhile did not see the new stream.
        if let Err(why) = self.core.check() {
            core.end(why);
        }
        (
            StreamWriter::new(Arc::clone(&core)),
            StreamReader::new(core),
        )
    }
}

/// A job that was dropped before it ran: what it would have done is missing, and the call says so.
struct Unrun(Option<Call>);

impl Drop for Unrun {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call.core
                .stop(Code::GuestLost.because("a part of the call's work was never run"));
        }
    }
}

/// Nanoseconds of the clock after which a call with this deadline is late at once.
pub(crate) fn is_past(deadline: u64) -> bool {
    deadline != u64::MAX && deadline <= clock::now()
}
