//! The states that an instance has in its guests, with their calls, resources and streams.
//!
//! An instance has one current state, which serves new calls. After a reload, the states of earlier
//! guests drain:
//!
//! 1. A turn that finds another guest for new calls moves the current state to those that drain. The
//!    next call opens a state in the new guest.
//! 2. A state that drains serves the calls that have its resources as arguments. It ends when it has
//!    no calls, resources and streams left, and at the latest at its deadline. What is left then ends
//!    as `stale`.
//! 3. A turn ends states. Whatever may leave a state with nothing schedules one.
//! 4. A call and the objects of a resource belong to one state. Its guest never sees those of another.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use thalweg_queue::no_preempt::lock;

use super::{Guest, GuestObject, GuestPackage};
use crate::completion::CallBuffer;
use crate::end_stream::EndStream;
use crate::message_handles::close_unread_streams;

/// The foreign code of an instance. It outlives the states.
pub(crate) struct GuestInstance {
    pub(crate) package: &'static GuestPackage,
    /// The call whose [`Guest::call`] runs, or 0.
    running: AtomicU64,
    /// The number of the state that serves it. Changed under the lock of `states`.
    serving: AtomicU64,
    states: Mutex<States>,
}

struct States {
    /// The guest that serves new calls.
    guest: Arc<dyn Guest>,
    /// When the states of earlier guests end, a time of the [`thalweg_queue::clock`].
    drain_deadline: u64,
    open: Vec<OpenState>,
    /// The call that another thread answers, or has answered, while [`Guest::call`] runs for it; or 0.
    answered_early: u64,
    /// Number of states, resources and streams so far.
    numbers: u64,
}

/// A state that a guest has opened.
struct OpenState {
    number: u64,
    guest: Arc<dyn Guest>,
    /// The number that the guest has returned for it.
    state: u64,
    /// `None`: it is the current one.
    drain_deadline: Option<u64>,
    owned: Owned,
}

/// Values by numbers that the core has chosen, which need no hash that nobody can predict.
pub(super) type Numbered<V> = HashMap<u64, V, BuildHasherDefault<NumberHasher>>;

#[derive(Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        // Fibonacci hashing: both ends of the result depend on the low bits of the number.
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// What a state has.
#[derive(Default)]
pub(super) struct Owned {
    /// The calls that the guest has not answered, although [`Guest::call`] has returned.
    pub(super) kept: Numbered<Kept>,
    /// Those that ended otherwise, which the guest does not know yet.
    cancelled: Vec<u64>,
    /// The objects that the core owns, by the number of their resource.
    pub(super) objects: Numbered<OwnedObject>,
    /// The streams that the guest writes or reads, by the number of its end.
    streams: Numbered<Weak<dyn EndStream>>,
}

pub(super) struct OwnedObject {
    pub(super) object: GuestObject,
    /// The handle of the resource, if the guest has it and has not given it away.
    kept_handle: Option<u64>,
}

/// A call that a guest has not answered, although [`Guest::call`] has returned.
pub(super) struct Kept {
    /// The memory for its answer.
    pub(super) buffer: CallBuffer,
    /// Closed with the call.
    pub(super) _unread: UnreadStreams,
}

/// The arguments of a call with streams. Those that the guest has not taken are closed with it.
pub(super) struct UnreadStreams(pub(super) Option<Vec<u8>>);

impl Drop for UnreadStreams {
    fn drop(&mut self) {
        if let Some(args) = &self.0 {
            close_unread_streams(args);
        }
    }
}

impl Owned {
    fn is_empty(&self) -> bool {
        self.kept.is_empty()
            && self.cancelled.is_empty()
            && self.objects.is_empty()
            && self.streams.is_empty()
    }

    /// The handles of resources that the guest has not given away.
    pub(super) fn kept_handles(&self) -> impl Iterator<Item = u64> {
        self.objects.values().filter_map(|owned| owned.kept_handle)
    }

    /// The streams that the guest writes or reads.
    pub(super) fn streams(&self) -> impl Iterator<Item = Arc<dyn EndStream>> {
        self.streams.values().filter_map(Weak::upgrade)
    }
}

impl OpenState {
    /// Rule 3.
    fn is_drained(&self) -> bool {
        self.drain_deadline.is_some() && self.owned.is_empty()
    }
}

impl States {
    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn get(&mut self, state: u64) -> Option<&mut OpenState> {
        self.open.iter_mut().find(|open| open.number == state)
    }

    /// Removes a call that its guest has not answered. Returns its state, too.
    fn take_kept(&mut self, call: u64) -> Option<(Kept, &mut OpenState)> {
        let mut open = self.open.iter_mut();
        open.find_map(|open| Some((open.owned.kept.remove(&call)?, open)))
    }
}

impl GuestInstance {
    pub(crate) fn new(package: &'static GuestPackage, guest: Arc<dyn Guest>) -> Arc<Self> {
        Arc::new(Self {
            package,
            running: AtomicU64::new(0),
            serving: AtomicU64::new(0),
            states: Mutex::new(States {
                guest,
                drain_deadline: u64::MAX,
                open: Vec::new(),
                answered_early: 0,
                numbers: 0,
            }),
        })
    }

    /// Sets the guest that serves new calls. A turn must follow (rule 1).
    pub(crate) fn reload(&self, guest: Arc<dyn Guest>, drain_deadline: u64) {
        let before = {
            let states = &mut *lock(&self.states);
            states.drain_deadline = drain_deadline;
            mem::replace(&mut states.guest, guest)
        };
        // Not under the lock: it may be the last reference.
        drop(before);
    }

    /// The guest that serves new calls.
    pub(super) fn guest(&self) -> Arc<dyn Guest> {
        Arc::clone(&lock(&self.states).guest)
    }

    /// Adds a state that `guest` has opened, the current one.
    pub(super) fn add(&self, guest: &Arc<dyn Guest>, state: u64) -> u64 {
        let states = &mut *lock(&self.states);
        let number = states.next_number();
        states.open.push(OpenState {
            number,
            guest: Arc::clone(guest),
            state,
            drain_deadline: None,
            owned: Owned::default(),
        });
        self.serving.store(number, Ordering::Relaxed);
        number
    }

    /// Whether new calls are served by another guest than this one, in which `state` is open. If so,
    /// the state drains.
    pub(super) fn drains(&self, guest: &Arc<dyn Guest>, state: u64) -> bool {
        let states = &mut *lock(&self.states);
        let is_other = !ptr::addr_eq(Arc::as_ptr(&states.guest), Arc::as_ptr(guest));
        if is_other {
            let deadline = states.drain_deadline;
            if let Some(open) = states.get(state) {
                open.drain_deadline = Some(deadline);
            }
        }
        is_other
    }

    /// Which of these states have ended draining at `now`: rule 2.
    pub(super) fn drained(&self, now: u64, numbers: impl Iterator<Item = u64>) -> Vec<u64> {
        let states = &mut *lock(&self.states);
        let has_ended = |open: &mut OpenState| {
            open.is_drained() || open.drain_deadline.is_some_and(|deadline| deadline <= now)
        };
        numbers
            .filter(|number| states.get(*number).is_none_or(has_ended))
            .collect()
    }

    /// The first deadline of the states that drain.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        let states = lock(&self.states);
        states
            .open
            .iter()
            .filter_map(|open| open.drain_deadline)
            .min()
    }

    /// Removes a state that ends. Also returns when it had to end.
    pub(super) fn remove(&self, state: u64) -> (Owned, Option<u64>) {
        let states = &mut *lock(&self.states);
        let found = states.open.iter().position(|open| open.number == state);
        match found.map(|index| states.open.remove(index)) {
            Some(open) => (open.owned, open.drain_deadline),
            None => (Owned::default(), None),
        }
    }

    /// This state serves the next call.
    pub(super) fn set_serving(&self, state: u64) {
        let _states = lock(&self.states);
        self.serving.store(state, Ordering::Relaxed);
    }

    /// [`Guest::call`] begins for a call.
    #[inline]
    pub(super) fn begin_call(&self, call: u64) {
        self.running.store(call, Ordering::Release);
    }

    /// It has returned, and the call was [kept](Self::keep) if it was not answered.
    #[inline]
    pub(super) fn end_call(&self) {
        self.running.store(0, Ordering::Release);
    }

    /// The state that serves the call whose [`Guest::call`] runs on this thread.
    pub(super) fn serving(&self) -> u64 {
        self.serving.load(Ordering::Relaxed)
    }

    /// The state that serves a call. `None`: its guest does not have the call any more.
    pub(super) fn state_of(&self, call: u64) -> Option<u64> {
        self.with_state_of(call, |_, open| open.number)
    }

    fn with_state_of<R>(&self, call: u64, f: impl FnOnce(u64, &mut OpenState) -> R) -> Option<R> {
        // The lock keeps the state open.
        let states = &mut *lock(&self.states);
        let number = states.next_number();
        let is_running = self.running.load(Ordering::Acquire) == call;
        let serving = self.serving.load(Ordering::Relaxed);
        let has_call = |open: &&mut OpenState| match is_running {
            true => open.number == serving,
            false => open.owned.kept.contains_key(&call),
        };
        let open = states.open.iter_mut().find(has_call)?;
        Some(f(number, open))
    }

    /// Records that [`Guest::call`] returns and has not answered the call on its thread.
    pub(super) fn keep(&self, state: u64, call: u64, kept: Kept) {
        let dropped = {
            let states = &mut *lock(&self.states);
            let was_answered = mem::take(&mut states.answered_early) == call;
            match states.get(state) {
                Some(open) if !was_answered => open.owned.kept.insert(call, kept),
                _ => Some(kept),
            }
        };
        // Not under the lock.
        drop(dropped);
    }

    /// Records that the guest answers a call on another thread than that of its [`Guest::call`], or later.
    /// Returns the memory for the answer if the call was kept, and whether a turn must follow (rule 3).
    pub(crate) fn take_kept(&self, call: u64) -> (Option<CallBuffer>, bool) {
        let (kept, is_drained) = {
            let states = &mut *lock(&self.states);
            match states.take_kept(call) {
                Some((kept, open)) => (Some(kept), open.is_drained()),
                None => {
                    if self.running.load(Ordering::Acquire) == call {
                        states.answered_early = call;
                    }
                    (None, false)
                }
            }
        };
        (kept.map(|kept| kept.buffer), is_drained)
    }

    /// Records that a call was stopped. Returns whether a turn must tell the guest.
    pub(crate) fn note_stopped(&self, call: u64) -> bool {
        let kept = {
            let states = &mut *lock(&self.states);
            states.take_kept(call).map(|(kept, open)| {
                open.owned.cancelled.push(call);
                kept
            })
        };
        // Dropped here, and not under the lock.
        kept.is_some()
    }

    /// The calls of a state that were stopped since the last time.
    pub(super) fn take_cancelled(&self, state: u64) -> Vec<u64> {
        let states = &mut *lock(&self.states);
        let cancelled = states.get(state).map(|open| &mut open.owned.cancelled);
        cancelled.map(mem::take).unwrap_or_default()
    }

    /// Adds an object to the state that serves a call. Returns the state and the number of the object.
    /// `None`: the guest does not have the call any more.
    pub(super) fn add_object(&self, call: u64, object: GuestObject) -> Option<(u64, u64)> {
        self.with_state_of(call, |number, open| {
            let owned = OwnedObject {
                object,
                kept_handle: None,
            };
            open.owned.objects.insert(number, owned);
            (open.number, number)
        })
    }

    /// Adds the guest's end of a stream to the state that serves a call. Returns the state and the number
    /// of the end. `None`: the guest does not have the call any more.
    pub(crate) fn add_stream(&self, call: u64, stream: &Arc<dyn EndStream>) -> Option<(u64, u64)> {
        self.with_state_of(call, |number, open| {
            open.owned.streams.insert(number, Arc::downgrade(stream));
            (open.number, number)
        })
    }

    /// The guest's end of a stream is gone. Returns whether a turn must follow (rule 3).
    pub(crate) fn remove_stream(&self, (state, number): (u64, u64)) -> bool {
        let states = &mut *lock(&self.states);
        states.get(state).is_some_and(|open| {
            open.owned.streams.remove(&number);
            open.is_drained()
        })
    }

    /// Records which handle of a resource only the guest has. Returns `false` if the state has ended, with
    /// the object.
    pub(super) fn set_kept_handle(&self, state: u64, number: u64, handle: Option<u64>) -> bool {
        let states = &mut *lock(&self.states);
        let open = states.get(state);
        let owned = open.and_then(|open| open.owned.objects.get_mut(&number));
        owned.map(|owned| owned.kept_handle = handle).is_some()
    }

    /// Removes an object. Returns the guest and its number of the state. `None`: the state has ended,
    /// with the object.
    pub(super) fn take_object(&self, state: u64, number: u64) -> Option<(Arc<dyn Guest>, u64)> {
        let states = &mut *lock(&self.states);
        let open = states.get(state)?;
        open.owned.objects.remove(&number)?;
        Some((Arc::clone(&open.guest), open.state))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::code::Failure;
    use crate::completion::Outcome;
    use crate::package::QueueLimits;
    use crate::{GuestCall, PackageDescription};

    struct Nothing;

    impl Guest for Nothing {
        fn open(&self) -> Result<u64, Failure> {
            Ok(0)
        }
        fn call(&self, _: u64, _: GuestCall<'_>) {}
        fn cancel(&self, _: u64, _: u64) {}
        fn drop_resource(&self, _: u64, _: GuestObject) {}
        fn close(&self, _: u64) {}
    }

    #[test]
    fn call_that_is_answered_while_its_function_runs_is_not_kept() {
        let package = GuestPackage::of(&PackageDescription {
            name: "test:kept",
            version: "0.1.0",
            methods: vec![],
            imports: vec![],
            limits: QueueLimits::DEFAULT,
        });
        let guest: Arc<dyn Guest> = Arc::new(Nothing);
        let instance = GuestInstance::new(package.unwrap(), Arc::clone(&guest));
        let state = instance.add(&guest, 0);
        let is_kept = |call| {
            let states = &mut *lock(&instance.states);
            states.open[0].owned.kept.contains_key(&call)
        };
        let kept = || Kept {
            buffer: CallBuffer::without_call(Outcome::spare()),
            _unread: UnreadStreams(None),
        };
        instance.begin_call(5);
        assert!(instance.take_kept(5).0.is_none());
        instance.keep(state, 5, kept());
        assert!(!is_kept(5));
        instance.begin_call(7);
        instance.keep(state, 7, kept());
        assert!(is_kept(7));
        assert!(instance.take_kept(7).0.is_some());
        assert!(!is_kept(7));
    }
}
