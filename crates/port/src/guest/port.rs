//! Port delivery: threads of the guest take its events out of a port.
//!
//! 1. An instance with work for such a guest is in `ready`, instead of being scheduled on a worker. A
//!    thread that takes from the port runs the turn, in which it meets the events of that instance. A
//!    call therefore needs no thread between that of its caller and that of the guest.
//! 2. Events that no turn of this thread has made, or that a turn has made beyond the number that was
//!    wanted, are in `events`. They are taken first.
//! 3. A service in Rust can have a port of its own, too. It makes no events, but leaves its calls to the
//!    thread that runs the turn.
//! 4. A thread that finds nothing registers itself under the lock: as a sleeping thread, or by arming the
//!    descriptor. A thread that adds an instance or an event wakes one of them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use thalweg_queue::no_preempt::{LockGuard, lock};
use thalweg_queue::{AdaptiveSpin, EventFd, WakerList};
use thalweg_runtime::{WakeReason, wait};

use super::{Guest, GuestCall, GuestObject};
use crate::code::{Code, Failure};
use crate::handles::{self, HandleObject, Kind};
use crate::instance::Instance;
use crate::queued_bytes::SPARE_BYTES;

/// How much memory of arguments a thread keeps: that of as many calls as a turn serves.
const SPARE_ARGS: usize = 64;

/// What happens to a state of a guest.
#[derive(Debug, PartialEq, Eq)]
pub enum GuestEvent {
    /// A new state, before its first call.
    Open {
        /// Its number, which no other state of the process ever has.
        state: u64,
    },
    /// A call.
    Call {
        /// The state that serves it.
        state: u64,
        /// The handle.
        call: u64,
        /// The method's number.
        method: u32,
        /// As in [`GuestCall`].
        deadline: u64,
        /// The message of the parameters. It was checked.
        args: Vec<u8>,
    },
    /// A call ended without the guest, which may have answered it at the same time.
    Cancel {
        /// The state that serves it.
        state: u64,
        /// The handle.
        call: u64,
    },
    /// No host has the resource any more.
    Drop {
        /// The state that it belongs to.
        state: u64,
        /// The object.
        object: GuestObject,
    },
    /// The last event of a state.
    Close {
        /// The state.
        state: u64,
    },
    /// A [waker](GuestPort::waker) was woken.
    Ready {
        /// Its token.
        token: u64,
    },
}

/// Where threads of a guest take its events.
///
/// ```
/// use thalweg_port::{
///     Code, FunctionDescription, GuestEvent, GuestPackage, GuestPort, Instance, MethodOptions,
///     PackageDescription, Port, QueueLimits, StreamOptions, guest_answer,
/// };
///
/// let types = "record{value:u32}\nu32\n\n";
/// let package = GuestPackage::of(&PackageDescription {
///     name: "example:port",
///     version: "0.1.0",
///     methods: vec![FunctionDescription {
///         name: "port.twice",
///         types,
///         is_async: false,
///         options: MethodOptions::NONE,
///         stream: StreamOptions::DEFAULT,
///     }],
///     imports: vec![],
///     limits: QueueLimits::DEFAULT,
/// })?;
/// let guest = GuestPort::new()?;
/// let instance = Instance::open_guest(package, guest.clone(), Instance::runtime()?);
///
/// let calls = Port::open(16)?;
/// let [params, ok, _, _] = thalweg_wire::Shape::hash_lines(types);
/// let args = thalweg_wire::message::encode(&(7u32,), params, Vec::new()).expect("it is small");
/// instance.submit(&calls, 1, 0, &args, u64::MAX)?;
///
/// let mut events = Vec::new();
/// guest.take(64, u64::MAX, |event| events.push(event))?;
/// let [GuestEvent::Open { .. }, GuestEvent::Call { call, args, .. }] = &events[..] else {
///     panic!("{events:?}");
/// };
/// let message = thalweg_wire::message::open(args, params).expect("it was checked");
/// let (value,) = message.owned::<(u32,)>().expect("it was checked");
/// let result = thalweg_wire::message::encode(&(2 * value), ok, Vec::new()).expect("it is small");
/// guest_answer(*call, Code::Ok, &result)?;
///
/// calls.wait(u64::MAX)?;
/// assert_eq!(calls.reap()?.count(), 1);
/// # Ok::<(), thalweg_port::Failure>(())
/// ```
pub struct GuestPort {
    queue: Mutex<Queue>,
    /// Changes when a thread that takes must look again.
    signals: AtomicU32,
    /// Used by one thread at a time. The others sleep at once.
    spin: Mutex<AdaptiveSpin>,
    descriptor: EventFd,
}

#[derive(Default)]
struct Queue {
    /// Rule 1.
    ready: VecDeque<Arc<Instance>>,
    /// Rule 2.
    events: VecDeque<GuestEvent>,
    /// Rule 4.
    asleep: WakerList,
    is_armed: bool,
    has_ended: bool,
}

impl std::fmt::Debug for GuestPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuestPort").finish_non_exhaustive()
    }
}

thread_local! {
    /// The port for which this thread runs a turn, and the events of the turn.
    static TURN: RefCell<Turn> = const {
        RefCell::new(Turn { port: ptr::null(), events: VecDeque::new(), spare: Vec::new() })
    };
}

struct Turn {
    /// Null: none.
    port: *const GuestPort,
    events: VecDeque<GuestEvent>,
    /// Memory of arguments, for the next ones.
    spare: Vec<Vec<u8>>,
}

/// Whether a thread that takes goes to sleep.
#[derive(Clone, Copy)]
enum Sleep<'a> {
    No,
    /// If there is nothing, its waker is registered.
    Before(&'a Waker),
    /// It has slept, and its waker may still be registered.
    After(&'a Waker),
}

impl GuestPort {
    /// A port without events.
    ///
    /// # Errors
    /// `overloaded`: no further descriptor can be opened.
    pub fn new() -> Result<Arc<Self>, Failure> {
        let no_descriptor =
            |error: io::Error| Code::Overloaded.because(format!("no descriptor: {error}"));
        Ok(Arc::new(Self {
            queue: Mutex::default(),
            signals: AtomicU32::new(0),
            spin: Mutex::default(),
            descriptor: EventFd::new().map_err(no_descriptor)?,
        }))
    }

    /// A handle of the port. Closing it [ends](Self::end) the port.
    ///
    /// # Errors
    /// `overloaded`: too many handles are open.
    pub fn insert(self: &Arc<Self>) -> Result<u64, Failure> {
        handles::insert(Kind::GuestPort, Arc::clone(self) as _)
    }

    /// The port of a handle.
    ///
    /// # Errors
    /// `stale`. `argument`: the handle is that of another kind of object.
    pub fn find(handle: u64) -> Result<Arc<Self>, Failure> {
        handles::find_as(handle, Kind::GuestPort)
    }

    /// Becomes readable when there may be events, once a [`take`](Self::take) has returned 0. The next
    /// `take` makes it unreadable.
    pub fn descriptor(&self) -> RawFd {
        self.descriptor.as_fd().as_raw_fd()
    }

    /// Gives up to `most` events to `give` and returns their number. Waits for the first one until
    /// `deadline` in nanoseconds of [`thalweg_queue::clock`]; returns 0 when it has passed, or if it is
    /// 0 and there is no event.
    ///
    /// Several threads may take at the same time. One thread meets the events of a state in their order.
    ///
    /// # Errors
    /// `closed`: the port was ended, and there are no more events. `interrupted`: a signal was handled on
    /// this thread. `shut_down`: the thread is an actor whose runtime stops.
    pub fn take(
        &self,
        most: usize,
        deadline: u64,
        mut give: impl FnMut(GuestEvent),
    ) -> Result<usize, Failure> {
        self.descriptor.reset();
        let look = |sleep: Sleep<'_>| self.take_now(most, sleep, &mut give);
        Ok(self.wait_for(deadline, look)?.unwrap_or(0))
    }

    /// Runs a turn that serves up to `most` calls, for an instance of
    /// [`open_on_port`](Instance::open_on_port). Waits for it until `deadline`, as [`take`](Self::take)
    /// does, and returns whether there was one.
    ///
    /// # Errors
    /// The errors of [`take`](Self::take).
    pub fn run_turn(&self, most: usize, deadline: u64) -> Result<bool, Failure> {
        let look = |sleep: Sleep<'_>| {
            let instance = match self.next_ready(self.lock_queue(sleep), sleep)? {
                Ok(instance) => instance,
                Err(ended) => return Some(Err(ended)),
            };
            instance.run_turn(most);
            if instance.accepts_no_calls() {
                self.end();
            }
            Some(Ok(()))
        };
        Ok(self.wait_for(deadline, look)?.is_some())
    }

    /// Calls `look` until it finds something.
    #[inline]
    fn wait_for<R>(
        &self,
        deadline: u64,
        mut look: impl FnMut(Sleep<'_>) -> Option<Result<R, Failure>>,
    ) -> Result<Option<R>, Failure> {
        loop {
            let signals = self.signals.load(Ordering::Acquire);
            let found = match look(Sleep::No) {
                Some(found) => Some(found),
                None if deadline == 0 => {
                    self.arm();
                    look(Sleep::No)
                }
                None if self.spin_until_after(signals) => continue,
                None => self.look_asleep(deadline, &mut look),
            };
            match found {
                Some(found) => return found.map(Some),
                None if deadline <= thalweg_queue::clock::now() => return Ok(None),
                None => {}
            }
        }
    }

    /// `None`: there is nothing.
    fn take_now(
        &self,
        most: usize,
        sleep: Sleep<'_>,
        give: &mut impl FnMut(GuestEvent),
    ) -> Option<Result<usize, Failure>> {
        if most == 0 {
            return Some(Ok(0));
        }
        loop {
            let mut queue = self.lock_queue(sleep);
            if !queue.events.is_empty() {
                let count = queue.events.len().min(most);
                let taken: VecDeque<_> = queue.events.drain(..count).collect();
                if !queue.events.is_empty() || !queue.ready.is_empty() {
                    self.wake_another(queue);
                } else {
                    drop(queue);
                }
                // Not under the lock: it is code of the caller.
                taken.into_iter().for_each(give);
                return Some(Ok(count));
            }
            let count = match self.next_ready(queue, sleep)? {
                Ok(instance) => self.take_from(&instance, most, give),
                Err(ended) => return Some(Err(ended)),
            };
            if count > 0 {
                return Some(Ok(count));
            }
        }
    }

    fn lock_queue(&self, sleep: Sleep<'_>) -> LockGuard<'_, Queue> {
        let mut queue = lock(&self.queue);
        if let Sleep::After(waker) = sleep {
            // A signal must not wake a thread that does something else.
            queue.asleep.remove(waker);
        }
        queue
    }

    /// The next instance with work. `None`: there is none.
    #[inline]
    fn next_ready(
        &self,
        mut queue: LockGuard<'_, Queue>,
        sleep: Sleep<'_>,
    ) -> Option<Result<Arc<Instance>, Failure>> {
        let Some(instance) = queue.ready.pop_front() else {
            if queue.has_ended {
                return Some(Err(Code::Closed.because("the guest was closed")));
            }
            if let Sleep::Before(waker) = sleep {
                queue.asleep.push(waker.clone());
            }
            return None;
        };
        if !queue.ready.is_empty() {
            self.wake_another(queue);
        }
        Some(Ok(instance))
    }

    /// Rule 1.
    fn take_from(
        &self,
        instance: &Arc<Instance>,
        most: usize,
        give: &mut impl FnMut(GuestEvent),
    ) -> usize {
        TURN.with(|turn| {
            turn.borrow_mut().port = self;
            instance.run_turn(most);
            // Not while it is borrowed: `give` is code of the caller.
            let mut made = {
                let turn = &mut *turn.borrow_mut();
                turn.port = ptr::null();
                std::mem::take(&mut turn.events)
            };
            let count = made.len().min(most);
            for _ in 0..count {
                made.pop_front().into_iter().for_each(&mut *give);
            }
            if made.is_empty() {
                // Its memory is used again.
                turn.borrow_mut().events = made;
            } else {
                let mut queue = lock(&self.queue);
                queue.events.append(&mut made);
                self.wake_another(queue);
            }
            count
        })
    }

    /// Waits once, and looks again.
    #[cold]
    fn look_asleep<R>(
        &self,
        deadline: u64,
        look: &mut impl FnMut(Sleep<'_>) -> Option<Result<R, Failure>>,
    ) -> Option<Result<R, Failure>> {
        let waker = wait::waker();
        let found = look(Sleep::Before(&waker));
        if found.is_some() {
            return found;
        }
        let park = || wait::park(Some(deadline));
        let woke = match self.spin.try_lock() {
            Ok(mut spin) => spin.sleep(park),
            Err(_) => park(),
        };
        let why = match woke {
            WakeReason::Woken | WakeReason::TimedOut => return look(Sleep::After(&waker)),
            WakeReason::Interrupted => Code::Interrupted.because("a signal was handled"),
            WakeReason::Stopping => Code::ShutDown.because("the runtime stops"),
        };
        let mut queue = lock(&self.queue);
        if queue.asleep.remove(&waker).is_none() {
            // The signal was for this thread, too.
            self.wake_another(queue);
        }
        Some(Err(why))
    }

    fn spin_until_after(&self, signals: u32) -> bool {
        let changed = || self.signals.load(Ordering::Acquire) != signals;
        self.spin
            .try_lock()
            .is_ok_and(|mut spin| spin.until(changed))
    }

    fn arm(&self) {
        lock(&self.queue).is_armed = true;
    }

    /// Rule 4.
    fn wake_another(&self, mut queue: LockGuard<'_, Queue>) {
        let waker = queue.asleep.pop();
        let is_armed = waker.is_none() && std::mem::take(&mut queue.is_armed);
        // Not under the lock, which the thread takes when it wakes.
        drop(queue);
        self.signals.fetch_add(1, Ordering::Release);
        if let Some(waker) = waker {
            waker.wake();
        } else if is_armed {
            self.descriptor.signal();
        }
    }

    /// Schedules a turn of an instance.
    pub(crate) fn schedule(&self, instance: Arc<Instance>) {
        let mut queue = lock(&self.queue);
        queue.ready.push_back(instance);
        self.wake_another(queue);
    }

    /// A waker that adds [`GuestEvent::Ready`] with this token each time it is woken.
    pub fn waker(self: &Arc<Self>, token: u64) -> Waker {
        let port = Arc::clone(self);
        Waker::from(Arc::new(ReadyWaker { port, token }))
    }

    fn push(&self, event: GuestEvent) {
        let event = TURN.with_borrow_mut(|turn| match ptr::eq(turn.port, self) {
            true => {
                turn.events.push_back(event);
                None
            }
            false => Some(event),
        });
        if let Some(event) = event {
            let mut queue = lock(&self.queue);
            queue.events.push_back(event);
            self.wake_another(queue);
        }
    }

    /// Takes the memory of a call's arguments, for those of later calls that this thread takes.
    pub fn reuse(mut args: Vec<u8>) {
        if args.capacity() <= SPARE_BYTES {
            TURN.with_borrow_mut(|turn| {
                if turn.spare.len() < SPARE_ARGS {
                    args.clear();
                    turn.spare.push(args);
                }
            });
        }
    }

    /// No more events will come. Threads get those that wait, and then `closed`.
    pub fn end(&self) {
        let asleep = {
            let mut queue = lock(&self.queue);
            queue.has_ended = true;
            queue.asleep.take()
        };
        self.signals.fetch_add(1, Ordering::Release);
        asleep.wake();
        self.descriptor.signal();
    }
}

struct ReadyWaker {
    port: Arc<GuestPort>,
    token: u64,
}

impl Wake for ReadyWaker {
    fn wake(self: Arc<Self>) {
        let token = self.token;
        self.port.push(GuestEvent::Ready { token });
    }
}

impl Guest for GuestPort {
    fn open(&self) -> Result<u64, Failure> {
        static STATES: AtomicU64 = AtomicU64::new(1);
        let state = STATES.fetch_add(1, Ordering::Relaxed);
        self.push(GuestEvent::Open { state });
        Ok(state)
    }

    fn call(&self, state: u64, call: GuestCall<'_>) {
        let spare = TURN.with_borrow_mut(|turn| turn.spare.pop());
        self.push(GuestEvent::Call {
            state,
            call: call.call,
            method: call.method,
            deadline: call.deadline,
            args: std::mem::replace(call.args, spare.unwrap_or_default()),
        });
    }

    fn cancel(&self, state: u64, call: u64) {
        self.push(GuestEvent::Cancel { state, call });
    }

    fn drop_resource(&self, state: u64, object: GuestObject) {
        self.push(GuestEvent::Drop { state, object });
    }

    fn close(&self, state: u64) {
        self.push(GuestEvent::Close { state });
    }

    fn port(self: Arc<Self>) -> Option<Arc<GuestPort>> {
        Some(self)
    }
}

// SAFETY: no other type has this kind.
unsafe impl HandleObject for GuestPort {
    fn has_kind(kind: Kind) -> bool {
        kind == Kind::GuestPort
    }

    fn close_handle(self: Arc<Self>, _: Kind, _: u32) {
        self.end();
    }
}
