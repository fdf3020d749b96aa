//! The core of stream and future parameters: a queue of messages, one per element.
//!
//! 1. It is bounded: 256 elements, and 1 MiB of their messages. A larger element waits until the
//!    queue is empty.
//! 2. It ends once, with the first outcome. Elements that were sent before are still read, unless
//!    the reader is gone.
//! 3. The writer ends it. If the writer is dropped without that, it ends as `cancelled`, so that a
//!    partial stream is not mistaken for a complete one.
//! 4. It ends with the call that it is a parameter of: at the call's deadline, when the call is
//!    stopped, and with a panic. A call that returns its result does not end it, because an actor
//!    of the service may continue to read.
//! 5. A malformed element ends it as `argument`, for both sides.
//! 6. The reader wakes writers when half of the capacity is free, so that they do not sleep for
//!    each element.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};

use thalweg_queue::WakerList;
use thalweg_queue::no_preempt::lock;
use thalweg_runtime::{WakeReason, wait};
use thalweg_wire::evolve::{Conversion, Unconverted};
use thalweg_wire::{Decode, Malformed, message};

use crate::code::{Code, Failure, append, no_memory, would_park};
use crate::end_stream::EndStream;
use crate::handles::{HandleObject, Kind};
use crate::message_handles::close_unread_stream;
use crate::package::MAX_RECORD_SIZE;
use crate::stream::owner::StreamOwner;
use crate::stream::sending::too_large;

/// Rule 1. As many elements as a segment has records, and as many bytes as a batch of large ones.
const ELEMENTS: usize = 256;
const BYTES: usize = 1 << 20;

/// A stream parameter of any element type.
#[derive(Debug)]
pub struct UpstreamCore {
    layout: u64,
    /// Conversion of the elements of a caller with another version.
    conversion: Option<Conversion<'static>>,
    /// It has one element and ends with it.
    is_future: bool,
    state: Mutex<UpstreamState>,
    /// The call that it is a parameter of, once the service has read the parameter.
    owner: OnceLock<Arc<dyn StreamOwner>>,
}

#[derive(Debug, Default)]
struct UpstreamState {
    elements: VecDeque<Vec<u8>>,
    bytes: usize,
    outcome: Option<Failure>,
    reader: Option<Waker>,
    writers: WakerList,
    /// One writer that asked to be notified of free capacity.
    room_waker: Option<Waker>,
    /// Size of the element that was refused last.
    refused_bytes: usize,
}

impl UpstreamState {
    /// Rule 1.
    fn fits(&self, size: usize) -> bool {
        self.elements.is_empty() || (self.elements.len() < ELEMENTS && self.bytes + size <= BYTES)
    }

    /// All writers that wait for capacity.
    fn take_waiters(&mut self) -> WakerList {
        let mut waiters = self.writers.take();
        waiters.extend(self.room_waker.take());
        waiters
    }
}

impl UpstreamCore {
    /// A stream of elements with this layout. `is_future`: of a single element.
    pub fn new(layout: u64, is_future: bool) -> Arc<Self> {
        Self::with_conversion(layout, is_future, None)
    }

    /// A stream whose elements are converted when they are sent.
    pub(crate) fn with_conversion(
        layout: u64,
        is_future: bool,
        conversion: Option<Conversion<'static>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            layout,
            conversion,
            is_future,
            state: Mutex::default(),
            owner: OnceLock::new(),
        })
    }

    pub(crate) fn layout(&self) -> u64 {
        self.layout
    }

    /// Rule 4.
    pub(crate) fn set_owner(&self, owner: Arc<dyn StreamOwner>) {
        // It is taken out of the table only once.
        let _ = self.owner.set(owner);
    }

    /// The handle of the call that it belongs to; 0 if there is none yet.
    pub(super) fn call_handle(&self) -> u64 {
        self.owner.get().map_or(0, |call| call.handle())
    }

    /// Sends one element, which is a message. Waits for capacity until `deadline`
    /// ([`clock`](thalweg_queue::clock); 0: do not wait).
    ///
    /// # Errors
    /// `argument`: the element has another layout or is larger than 64 MiB. `would_park` and
    /// `timed_out`: the stream is full. `overloaded`: there is not enough memory; the stream
    /// continues. `interrupted`. The outcome of the stream, if it has ended: `closed` if the
    /// service has closed it.
    pub fn send(&self, element: &[u8], deadline: u64) -> Result<(), Failure> {
        let invalid = |error: &dyn Display| Code::Argument.because(format!("the element: {error}"));
        match &self.conversion {
            None => {
                message::open(element, self.layout).map_err(|error| invalid(&error))?;
                self.send_message(element, deadline)
            }
            Some(conversion) => {
                let converted = conversion.convert(element).map_err(|error| match error {
                    Unconverted::Memory(bytes) => no_memory(bytes),
                    error => invalid(&error),
                })?;
                // Closed like the streams of arguments that the service does not read.
                converted.dropped.into_iter().for_each(close_unread_stream);
                self.send_message(&converted.message, deadline)
            }
        }
    }

    pub(super) fn send_message(&self, element: &[u8], deadline: u64) -> Result<(), Failure> {
        if element.len() > MAX_RECORD_SIZE as usize {
            return Err(too_large("element", element.len() as u64, MAX_RECORD_SIZE));
        }
        let mut waker = None;
        loop {
            let reader = {
                let mut state = lock(&self.state);
                if let Some(why) = &state.outcome {
                    return Err(why.clone());
                }
                if state.fits(element.len()) {
                    let mut copy = Vec::new();
                    append(&mut copy, element)?;
                    let reserved = state.elements.try_reserve(1);
                    reserved.map_err(|_| no_memory(element.len()))?;
                    state.bytes += element.len();
                    state.elements.push_back(copy);
                    if self.is_future {
                        state.outcome = Some(regular_end());
                    }
                    Some(state.reader.take())
                } else if deadline == 0 || !wait::can_park() {
                    state.refused_bytes = element.len();
                    return Err(match deadline {
                        0 => Code::WouldPark.because("the stream is full"),
                        _ => would_park(),
                    });
                } else {
                    let waker = waker.get_or_insert_with(wait::waker);
                    state.writers.insert(waker.clone());
                    None
                }
            };
            if let Some(reader) = reader {
                reader.into_iter().for_each(Waker::wake);
                return Ok(());
            }
            let late = || Code::TimedOut.because("the stream was full until the deadline");
            if let (Err(why), Some(waker)) = (check_wake(wait::park(Some(deadline)), late), &waker)
            {
                lock(&self.state).writers.remove(waker);
                return Err(why);
            }
        }
    }

    /// Ends the stream regularly.
    ///
    /// # Errors
    /// The earlier outcome if the stream has already ended: `closed` if the service has closed it.
    pub fn finish(&self) -> Result<(), Failure> {
        let reader = {
            let mut state = lock(&self.state);
            match &state.outcome {
                // The value was set, which ended the future.
                Some(why) if self.is_future && *why == regular_end() => return Ok(()),
                Some(why) => return Err(why.clone()),
                None if self.is_future => state.outcome = Some(unfinished()),
                None => state.outcome = Some(regular_end()),
            }
            state.reader.take()
        };
        reader.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Called when the writer is dropped (rule 3).
    pub fn abandon(&self) {
        self.end(unfinished());
    }

    /// Called when the reader is dropped.
    pub fn close(&self) {
        self.end_now(
            Code::Closed.because("the service has closed the stream"),
            true,
        );
    }

    pub(super) fn end_now(&self, why: Failure, drops: bool) {
        let (dropped, reader, waiters) = {
            let mut state = lock(&self.state);
            state.outcome.get_or_insert(why);
            let mut dropped = VecDeque::new();
            if drops {
                state.bytes = 0;
                dropped = std::mem::take(&mut state.elements);
            }
            (dropped, state.reader.take(), state.take_waiters())
        };
        drop(dropped);
        reader.into_iter().chain(waiters).for_each(Waker::wake);
    }

    /// The next element. `None`: the stream has ended regularly.
    ///
    /// # Errors
    /// Another outcome of the stream. `would_park`: no element is available yet.
    fn try_take(&self, waker: Option<Waker>) -> Result<Option<Vec<u8>>, Failure> {
        let (element, waiters) = {
            let mut state = lock(&self.state);
            match state.elements.pop_front() {
                Some(element) => {
                    state.bytes -= element.len();
                    // Rule 6.
                    let half = state.elements.len() <= ELEMENTS / 2 && state.bytes <= BYTES / 2;
                    let waiters = if half {
                        state.take_waiters()
                    } else {
                        WakerList::new()
                    };
                    (element, waiters)
                }
                None => match &state.outcome {
                    Some(why) if *why == regular_end() => return Ok(None),
                    Some(why) => return Err(why.clone()),
                    None => {
                        state.reader = waker;
                        return Err(Code::WouldPark.because("nothing is available yet"));
                    }
                },
            }
        };
        waiters.wake();
        Ok(Some(element))
    }

    /// Like [`try_take`](Self::try_take), and decodes the element.
    pub(super) fn try_read<T: Decode>(&self, waker: Option<Waker>) -> Result<Option<T>, Failure> {
        self.try_read_with(waker, |core, element| {
            message::open(&element, core.layout).and_then(|message| message.owned::<T>())
        })
    }

    fn try_read_with<T>(
        &self,
        waker: Option<Waker>,
        decode: impl Fn(&Self, Vec<u8>) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Failure> {
        let Some(element) = self.try_take(waker)? else {
            return Ok(None);
        };
        decode(self, element).map(Some).map_err(|error| {
            let why = Code::Argument.because(format!("an element is malformed: {error}"));
            self.end_malformed(why.clone());
            why
        })
    }

    /// Rule 5. Replaces the outcome even if the writer has already ended the stream.
    fn end_malformed(&self, why: Failure) {
        lock(&self.state).outcome = Some(why.clone());
        self.end_now(why, true);
    }

    pub(super) fn read<T: Decode>(&self, deadline: u64) -> Result<Option<T>, Failure> {
        read_until(deadline, |waker| self.try_read(waker))
    }

    /// The message of the next element, which `check` accepts. `None`: the stream has ended regularly.
    pub(super) fn read_message(
        &self,
        deadline: u64,
        check: impl Fn(&[u8]) -> Result<(), Malformed>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let decode = |_: &Self, element: Vec<u8>| check(&element).map(|()| element);
        read_until(deadline, |waker| self.try_read_with(waker, decode))
    }

    /// Wakes `waker` when there is an element or the stream has ended. Returns `true`, and arms
    /// nothing, if that is so now.
    pub(super) fn arm_element(&self, waker: Waker) -> bool {
        let before = {
            let mut state = lock(&self.state);
            if state.outcome.is_some() || !state.elements.is_empty() {
                return true;
            }
            state.reader.replace(waker)
        };
        drop(before);
        false
    }

    /// Wakes `waker` when there is capacity. Returns `true`, and arms nothing, if there is capacity
    /// now or the stream has ended.
    pub(crate) fn arm_room(&self, waker: Waker) -> bool {
        let before = {
            let mut state = lock(&self.state);
            if state.outcome.is_some() || state.fits(state.refused_bytes) {
                return true;
            }
            state.room_waker.replace(waker)
        };
        // Not under the lock: dropping it may release a slot of a port.
        drop(before);
        false
    }

    pub(super) fn poll_room(&self, context: &Context<'_>) -> Poll<Result<(), Failure>> {
        if !self.arm_room(context.waker().clone()) {
            return Poll::Pending;
        }
        Poll::Ready(match &lock(&self.state).outcome {
            Some(why) => Err(why.clone()),
            None => Ok(()),
        })
    }
}

impl EndStream for UpstreamCore {
    fn end(&self, why: Failure) {
        self.end_now(why, false);
    }
}

// SAFETY: streams for a service have no other type.
unsafe impl HandleObject for UpstreamCore {
    fn has_kind(kind: Kind) -> bool {
        matches!(kind, Kind::Upstream | Kind::UpstreamWriter)
    }

    fn close_handle(self: Arc<Self>, kind: Kind, _: u32) {
        match kind {
            Kind::UpstreamWriter => self.abandon(),
            _ => self.close(),
        }
    }
}

impl Drop for UpstreamCore {
    fn drop(&mut self) {
        if let Some(call) = self.owner.get() {
            call.stream_ended();
        }
    }
}

/// Waits until `read` returns something else than `would_park`.
fn read_until<T>(
    deadline: u64,
    read: impl Fn(Option<Waker>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    loop {
        let may_park = deadline != 0 && wait::can_park();
        match read(may_park.then(wait::waker)) {
            Err(why) if why.code == Code::WouldPark && may_park => {
                check_wake(wait::park(Some(deadline)), || {
                    Code::TimedOut.because("nothing arrived before the deadline")
                })?;
            }
            result => return result,
        }
    }
}

/// The regular outcome.
fn regular_end() -> Failure {
    Code::Closed.because("the stream has ended")
}

fn unfinished() -> Failure {
    Code::Cancelled.because("the caller dropped the stream without ending it")
}

fn check_wake(woke: WakeReason, late: impl FnOnce() -> Failure) -> Result<(), Failure> {
    match woke {
        WakeReason::Woken => Ok(()),
        WakeReason::TimedOut => Err(late()),
        WakeReason::Interrupted => Err(Code::Interrupted.because("a signal arrived")),
        WakeReason::Stopping => Err(Code::ShutDown.because("the runtime stops")),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{UpstreamCore, lock};
    use crate::code::Code;
    use thalweg_queue::clock;
    use thalweg_wire::{Decode, message};

    #[test]
    fn timed_out_writers_are_removed_from_the_wait_list() {
        let stream = UpstreamCore::new(u64::HASH, false);
        let element = message::encode(&1u64, u64::HASH, Vec::new()).unwrap();
        while stream.send(&element, 0).is_ok() {}
        for _ in 0..3 {
            let late = stream.send(&element, clock::now() + 1).unwrap_err();
            assert_eq!(late.code, Code::TimedOut);
        }
        assert!(lock(&stream.state).writers.is_empty());
    }
}
