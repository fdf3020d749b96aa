//! What a caller sends up: a stream, or a future, that is a parameter. A queue of messages, one for each element.
//!
//! 1. It is bounded: 256 elements, and 1 MiB of their messages. A larger one waits until it can be there alone.
//! 2. It ends once, with the first ending. What was sent before is still read, unless the reader is gone.
//! 3. The writer ends it. Dropped without that, it is `cancelled`: half a stream is not taken for a whole one.
//! 4. It ends with the call that it is a parameter of: at its deadline, when it is stopped, with a panic. A call that has
//!    a result does not end it: an actor of the service may read on.
//! 5. An element that is no value of its type ends it as `argument`, for both.
//! 6. The reader wakes writers when half of the room is there, so that they do not go to sleep for each element.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};

use thalweg_queue::quiet::lock;
use thalweg_runtime::{WakeReason, wait};
use thalweg_wire::evolve::{Conversion, Unconverted};
use thalweg_wire::{Decode, message};

use crate::call::CallCore;
use crate::code::{Code, Failure, append, no_memory, would_park};
use crate::completion::Port;
use crate::instance::Instance;
use crate::parcel::close_unread_handle;
use crate::service::LARGEST_RECORD;
use crate::stream::sending::too_large;
use crate::stream::waking::announcing;

/// Rule 1. As many as a segment has, and as many bytes as a batch of large ones.
const ELEMENTS: usize = 256;
const BYTES: usize = 1 << 20;

/// What is ended with a call, or with its client.
pub(crate) trait Ends: Send + Sync {
    fn end(&self, why: Failure);
}

/// What is sent up, whatever its elements are.
#[derive(Debug)]
pub struct UpCore {
    layout: u64,
    /// Of elements of a caller of another version.
    conversion: Option<Conversion<'static>>,
    /// It has one element and ends with it.
    is_future: bool,
    state: Mutex<State>,
    /// Whose parameter it is, once that was read.
    call: OnceLock<Arc<CallCore>>,
}

#[derive(Debug, Default)]
struct State {
    elements: VecDeque<Vec<u8>>,
    bytes: usize,
    ending: Option<Failure>,
    reader: Option<Waker>,
    writers: Vec<Waker>,
    /// Who asked to be told of room, one at a time.
    announce: Option<Waker>,
    /// Bytes of the element for which there was no room.
    refused: usize,
}

impl State {
    /// Rule 1.
    fn fits(&self, size: usize) -> bool {
        self.elements.is_empty() || (self.elements.len() < ELEMENTS && self.bytes + size <= BYTES)
    }

    /// A writer waits no more, or is about to do so again.
    fn forget(&mut self, waker: &Waker) {
        self.writers.retain(|writer| !writer.will_wake(waker));
    }

    /// Who waits for room.
    fn waiting(&mut self) -> Vec<Waker> {
        let mut waiting = std::mem::take(&mut self.writers);
        waiting.extend(self.announce.take());
        waiting
    }
}

impl UpCore {
    /// For elements of this layout. `is_future`: for one.
    pub fn new(layout: u64, is_future: bool) -> Arc<Self> {
        Self::converting(layout, is_future, None)
    }

    fn converting(
        layout: u64,
        is_future: bool,
        conversion: Option<Conversion<'static>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            layout,
            conversion,
            is_future,
            state: Mutex::default(),
            call: OnceLock::new(),
        })
    }

    pub(crate) fn layout(&self) -> u64 {
        self.layout
    }

    /// Rule 4.
    pub(crate) fn belongs_to(&self, call: &Arc<CallCore>) {
        // It is taken out of the table once.
        let _ = self.call.set(Arc::clone(call));
    }

    /// Of the call that it belongs to; 0: none yet.
    pub(super) fn call_handle(&self) -> u64 {
        self.call.get().map_or(0, |call| call.handle())
    }

    /// Sends one element, a message, and waits for room until `deadline` ([`clock`](thalweg_queue::clock); 0: not at all).
    ///
    /// # Errors
    /// `argument`: it is of another layout, or larger than 64 MiB. `would_park` and `timed_out`: there is no room. `overloaded`: there is no memory, and
    /// the stream goes on. `interrupted`. How it ended, if
    /// it has: `closed` where the service reads no more.
    pub fn send(&self, element: &[u8], deadline: u64) -> Result<(), Failure> {
        let refused = |error: &dyn Display| Code::Argument.because(format!("the element: {error}"));
        match &self.conversion {
            None => {
                message::open(element, self.layout).map_err(|error| refused(&error))?;
                self.send_message(element, deadline)
            }
            Some(conversion) => {
                let converted = conversion.convert(element).map_err(|error| match error {
                    Unconverted::Memory(bytes) => no_memory(bytes),
                    error => refused(&error),
                })?;
                // As with arguments that nobody reads.
                converted.dropped.into_iter().for_each(close_unread_handle);
                self.send_message(&converted.message, deadline)
            }
        }
    }

    pub(super) fn send_message(&self, element: &[u8], deadline: u64) -> Result<(), Failure> {
        if element.len() > LARGEST_RECORD as usize {
            return Err(too_large("element", element.len() as u64, LARGEST_RECORD));
        }
        let mut waits = None;
        loop {
            let reader = {
                let mut state = lock(&self.state);
                if let Some(why) = &state.ending {
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
                        state.ending = Some(ended());
                    }
                    Some(state.reader.take())
                } else if deadline == 0 || !wait::can_park() {
                    state.refused = element.len();
                    return Err(match deadline {
                        0 => Code::WouldPark.because("there is no room"),
                        _ => would_park(),
                    });
                } else {
                    let waker = waits.get_or_insert_with(wait::waker);
                    state.forget(waker);
                    state.writers.push(waker.clone());
                    None
                }
            };
            if let Some(reader) = reader {
                reader.into_iter().for_each(Waker::wake);
                return Ok(());
            }
            let late = || Code::TimedOut.because("there was no room until the deadline");
            if let (Err(why), Some(waker)) = (parked(wait::park(Some(deadline)), late), &waits) {
                lock(&self.state).forget(waker);
                return Err(why);
            }
        }
    }

    /// Nothing more comes.
    ///
    /// # Errors
    /// How it ended, if it has: `closed` where the service reads no more.
    pub fn finish(&self) -> Result<(), Failure> {
        let reader = {
            let mut state = lock(&self.state);
            match &state.ending {
                // With its value.
                Some(why) if self.is_future && *why == ended() => return Ok(()),
                Some(why) => return Err(why.clone()),
                None if self.is_future => state.ending = Some(unfinished()),
                None => state.ending = Some(ended()),
            }
            state.reader.take()
        };
        reader.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// The writer is gone: rule 3.
    pub fn abandon(&self) {
        self.end(unfinished());
    }

    /// The reader is gone.
    pub fn close(&self) {
        self.end_now(
            Code::Closed.because("the service has closed the stream"),
            true,
        );
    }

    pub(super) fn end_now(&self, why: Failure, drops: bool) {
        let (dropped, reader, waiting) = {
            let mut state = lock(&self.state);
            state.ending.get_or_insert(why);
            let mut dropped = VecDeque::new();
            if drops {
                state.bytes = 0;
                dropped = std::mem::take(&mut state.elements);
            }
            (dropped, state.reader.take(), state.waiting())
        };
        drop(dropped);
        reader.into_iter().chain(waiting).for_each(Waker::wake);
    }

    /// The next element, if there is one; `None`: nothing more comes.
    ///
    /// # Errors
    /// How else it ended. `would_park`: there is none yet.
    fn try_take(&self, waker: Option<Waker>) -> Result<Option<Vec<u8>>, Failure> {
        let (element, waiting) = {
            let mut state = lock(&self.state);
            match state.elements.pop_front() {
                Some(element) => {
                    state.bytes -= element.len();
                    // Rule 6.
                    let half = state.elements.len() <= ELEMENTS / 2 && state.bytes <= BYTES / 2;
                    let waiting = if half { state.waiting() } else { Vec::new() };
                    (element, waiting)
                }
                None => match &state.ending {
                    Some(why) if *why == ended() => return Ok(None),
                    Some(why) => return Err(why.clone()),
                    None => {
                        state.reader = waker;
                        return Err(Code::WouldPark.because("nothing there yet"));
                    }
                },
            }
        };
        waiting.into_iter().for_each(Waker::wake);
        Ok(Some(element))
    }

    /// The same, read.
    pub(super) fn try_read<T: Decode>(&self, waker: Option<Waker>) -> Result<Option<T>, Failure> {
        let Some(element) = self.try_take(waker)? else {
            return Ok(None);
        };
        let read = message::open(&element, self.layout).and_then(|message| message.owned::<T>());
        read.map(Some).map_err(|error| {
            let why = Code::Argument.because(format!("an element is malformed: {error}"));
            self.end_malformed(why.clone());
            why
        })
    }

    /// Rule 5. Also where the writer has ended it.
    fn end_malformed(&self, why: Failure) {
        lock(&self.state).ending = Some(why.clone());
        self.end_now(why, true);
    }

    pub(super) fn read<T: Decode>(&self, deadline: u64) -> Result<Option<T>, Failure> {
        loop {
            let may_park = deadline != 0 && wait::can_park();
            match self.try_read(may_park.then(wait::waker)) {
                Err(why) if why.code == Code::WouldPark && may_park => {
                    parked(wait::park(Some(deadline)), || {
                        Code::TimedOut.because("nothing came until the deadline")
                    })?;
                }
                result => return result,
            }
        }
    }

    /// Has `waker` woken when there is room. `true`: there is now, or it has ended, and nothing was asked.
    fn ask_for_room(&self, waker: Waker) -> bool {
        let before = {
            let mut state = lock(&self.state);
            if state.ending.is_some() || state.fits(state.refused) {
                return true;
            }
            state.announce.replace(waker)
        };
        // Without the lock: it may give back a place of a port.
        drop(before);
        false
    }

    pub(super) fn poll_room(&self, context: &Context<'_>) -> Poll<Result<(), Failure>> {
        if !self.ask_for_room(context.waker().clone()) {
            return Poll::Pending;
        }
        Poll::Ready(match &lock(&self.state).ending {
            Some(why) => Err(why.clone()),
            None => Ok(()),
        })
    }

    /// Has a [`StreamReady`](crate::Kind::StreamReady) come to `port` when there is room for what was refused last, or it has ended. `true`: so it is now, and nothing
    /// was armed.
    ///
    /// # Errors
    /// `overloaded`, `closed`: the port takes no more.
    pub fn announce(&self, port: &Arc<Port>, token: u64, handle: u64) -> Result<bool, Failure> {
        Ok(self.ask_for_room(announcing(port, token, handle)?))
    }
}

impl Instance {
    /// A stream or a future for a parameter of a method, by their numbers. It ends with the client.
    ///
    /// # Errors
    /// `argument`: there is no such method, or its parameter is no stream. `closed`, `forked`.
    pub fn upstream(&self, method: u32, parameter: u32) -> Result<Arc<UpCore>, Failure> {
        let method = self.method(method)?;
        self.admit(method)?;
        let described = &self.package.methods[method as usize];
        let (layout, is_future) = described.sent_up(parameter).ok_or_else(|| {
            let name = described.name;
            Code::Argument.because(format!("parameter {parameter} of {name} is no stream"))
        })?;
        let stream = UpCore::converting(layout, is_future, self.sent_up(method, parameter));
        let ends: Arc<dyn Ends> = Arc::clone(&stream) as _;
        self.watch(&ends);
        // One that closed before has not seen it.
        self.check_open()
            .inspect_err(|why| stream.end(why.clone()))?;
        Ok(stream)
    }
}

impl Ends for UpCore {
    fn end(&self, why: Failure) {
        self.end_now(why, false);
    }
}

impl Drop for UpCore {
    fn drop(&mut self) {
        if let Some(call) = self.call.get() {
            call.forget_timer_if_done();
        }
    }
}

/// Regularly.
fn ended() -> Failure {
    Code::Closed.because("the stream has ended")
}

fn unfinished() -> Failure {
    Code::Cancelled.because("the caller dropped it without ending it")
}

fn parked(woke: WakeReason, late: impl FnOnce() -> Failure) -> Result<(), Failure> {
    match woke {
        WakeReason::Woken => Ok(()),
        WakeReason::TimedOut => Err(late()),
        WakeReason::Interrupted => Err(Code::Interrupted.because("a signal arrived")),
        WakeReason::Stopping => Err(Code::ShutDown.because("the runtime stops")),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{UpCore, lock};
    use crate::code::Code;
    use thalweg_queue::clock;
    use thalweg_wire::{Decode, message};

    #[test]
    fn writers_that_gave_up_are_forgotten() {
        let stream = UpCore::new(u64::HASH, false);
        let element = message::encode(&1u64, u64::HASH, Vec::new()).unwrap();
        while stream.send(&element, 0).is_ok() {}
        for _ in 0..3 {
            let late = stream.send(&element, clock::now() + 1).unwrap_err();
            assert_eq!(late.code, Code::TimedOut);
        }
        assert!(lock(&stream.state).writers.is_empty());
    }
}
