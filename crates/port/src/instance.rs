//! One instance of a service, and the actor that runs it.
//!
//! Hosts push into its mailbox; whoever finds it unscheduled schedules a turn. A turn serves up to 64 calls, then lets others
//! have theirs; between two calls, too, where its time slice is over.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use thalweg_queue::quiet::lock;
use thalweg_runtime::{Handle, Run};

use crate::call::{Call, CallCore, CallRef, To};
use crate::code::{self, Code, Failure};
use crate::completion::Port;
use crate::handles::{self, Object};
use crate::host::HostPlace;
use crate::incoming::Incoming;
use crate::inline::Inline;
use crate::life::Life;
use crate::nested::{REPLACED, caught};
use crate::own::{Apart, Places, Roll};
use crate::pace::Pace;
use crate::parcel::{Ending, Parcel, close_unread};
use crate::resource::{Resource, Unnamed, Value};
use crate::room::Room;
use crate::service::{Dispatch, Package, Service};
use crate::stream::{AllBooks, Ends};
use crate::versions::Versions;
use crate::weight::Weight;

pub(crate) mod submit;

/// Calls in a turn, so that a flood does not starve the other actors of a worker.
const CALLS_A_TURN: usize = 64;
/// Calls whose memory is kept for the next ones.
const MOST_SPARE: usize = 4096;

struct Seat {
    make: Box<dyn Fn() -> Box<dyn Dispatch> + Send>,
    service: Option<Box<dyn Dispatch>>,
    /// Taken out of the mailbox for this turn.
    batch: VecDeque<Parcel>,
}

#[derive(Default)]
struct Mailbox {
    calls: VecDeque<Parcel>,
    /// Resources that nobody names any more.
    unnamed: Vec<Unnamed>,
    /// The owner word: while it is set there is one turn, running or to come, so the service is never entered twice.
    scheduled: bool,
}

impl Mailbox {
    /// Whether the caller is to schedule a turn.
    fn is_to_be_scheduled(&mut self) -> bool {
        !std::mem::replace(&mut self.scheduled, true)
    }
}

/// The memory of a call and of its parcel.
type Spare = (Arc<CallCore>, Box<Ending>);

/// An instance of a service: a mailbox, and an actor behind it.
pub struct Instance {
    pub(crate) package: &'static Package,
    pub(crate) runtime: Handle,
    epoch: u64,
    life: Life,
    /// The service panicked: the next turn drops it, and the next call finds a fresh one.
    replaced: AtomicBool,
    incarnation: AtomicU64,
    streams: Mutex<Roll<dyn Ends>>,
    /// Who answers what the service asks.
    pub(crate) host: HostPlace,
    /// What serves inline methods, once one was called.
    pub(crate) inline: OnceLock<Option<Box<dyn Inline>>>,
    /// Of a caller of another version.
    pub(crate) versions: OnceLock<Versions>,
    pub(crate) make_inline: fn() -> Option<Box<dyn Inline>>,
    /// What its streams did.
    pub(crate) books: AllBooks,
    /// All places for calls that are its own.
    calls: Mutex<Places<Weak<CallCore>>>,
    mailbox: Apart<Mutex<Mailbox>>,
    /// Something that has ended may be in it.
    has_stopped: AtomicBool,
    /// A port of its calls has had more results than it may: each call looks, until the mailbox is empty.
    met_full_port: AtomicBool,
    /// Who waits for a place in it.
    room: Room,
    /// Of the arguments in it, and of those that a turn took out and has not served.
    waiting: Weight,
    /// Of calls that ended, for the next ones.
    spare: Apart<Mutex<Vec<Spare>>>,
    seat: Apart<Mutex<Seat>>,
    /// Turns that those who submit asked for.
    #[cfg(test)]
    schedules: AtomicU64,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance")
            .field("package", &self.package.name)
            .field("incarnation", &self.incarnation)
            .finish_non_exhaustive()
    }
}

impl Instance {
    /// An instance that makes its service with `make`, at its first call and after every panic.
    ///
    /// # Errors
    /// `overloaded`: the runtime found no threads.
    pub fn open<S: Service>(make: impl Fn() -> S + Send + 'static, runtime: Handle) -> Arc<Self> {
        Arc::new(Self {
            package: S::PACKAGE,
            runtime,
            epoch: handles::epoch(),
            life: Life::new(),
            replaced: AtomicBool::new(false),
            incarnation: AtomicU64::new(1),
            streams: Mutex::default(),
            host: HostPlace::default(),
            inline: OnceLock::new(),
            versions: OnceLock::new(),
            make_inline: S::inline,
            books: AllBooks::default(),
            calls: Mutex::default(),
            mailbox: Apart::default(),
            has_stopped: AtomicBool::new(false),
            met_full_port: AtomicBool::new(false),
            room: Room::default(),
            waiting: Weight::default(),
            spare: Apart::default(),
            seat: Apart(Mutex::new(Seat {
                make: Box::new(move || Box::new(make())),
                service: None,
                batch: VecDeque::new(),
            })),
            #[cfg(test)]
            schedules: AtomicU64::new(0),
        })
    }

    /// The process's runtime, for an instance.
    ///
    /// # Errors
    /// `overloaded`: no threads; `argument`: the environment has a bad setting.
    pub fn runtime() -> Result<Handle, Failure> {
        use thalweg_runtime::{Runtime, StartError};
        Runtime::global().map_err(|error| match error {
            StartError::Setting(..) | StartError::Abort => {
                Code::Argument.because(error.to_string())
            }
            StartError::Thread(_) => Code::Overloaded.because(error.to_string()),
        })
    }

    /// What it offers.
    pub fn package(&self) -> &'static Package {
        self.package
    }

    pub(crate) fn check_open(&self) -> Result<(), Failure> {
        if self.is_forked() {
            return Err(Code::Forked.because("the client was made before fork()"));
        }
        if self.life.is_closed() {
            return Err(Code::Closed.because("the client is closed"));
        }
        Ok(())
    }

    pub(crate) fn admit(&self, method: u32) -> Result<(), Failure> {
        self.check_open()?;
        if method as usize >= self.package.methods.len() {
            return Err(Code::Argument.because(format!(
                "{} has {} methods, none with the number {method}",
                self.package.name,
                self.package.methods.len()
            )));
        }
        Ok(())
    }

    /// A call was stopped, perhaps one that waits in the mailbox.
    pub(crate) fn one_was_stopped(&self) {
        self.has_stopped.store(true, Ordering::Release);
        self.make_room();
    }

    /// Checks a port before a result of `bytes` bytes is put into it.
    #[inline]
    pub(crate) fn look_at(&self, port: &Port, bytes: usize) {
        if port.unreaped_bytes() + bytes as u64 >= self.package.bounds.most_unreaped() {
            self.met_full_port.store(true, Ordering::Relaxed);
        }
    }

    /// Ends a call that has not begun where its port has no room for a result: otherwise whatever was accepted before the first result would make the port as
    /// large as it likes.
    #[cold]
    fn refuse_for_full_port(&self, call: &CallRef) {
        let most = self.package.bounds.most_unreaped();
        if call
            .port()
            .is_some_and(|port| port.unreaped_bytes() >= most)
        {
            call.stop(Code::Overloaded.because(format!(
                "results of more than {most} bytes were not reaped, and the call has not begun"
            )));
        }
    }

    fn make_room(&self) {
        if self.package.bounds.waits {
            self.room.is_there();
        }
    }

    /// Takes out of the mailbox what has ended there, where something may have: it waits for nothing, and others want its place. Whether it was worth it.
    #[cold]
    fn sweep(&self) -> bool {
        if !self.has_stopped.swap(false, Ordering::AcqRel) {
            return false;
        }
        let ended: Vec<Parcel> = {
            let mut mailbox = lock(&self.mailbox.0);
            let has_ended = |parcel: &Parcel| parcel.call().core.has_ended();
            let mut ended = Vec::new();
            // Each once around. Without memory they are left for a later sweep.
            for _ in 0..mailbox.calls.len() {
                match mailbox.calls.pop_front() {
                    Some(parcel) if has_ended(&parcel) && ended.try_reserve(1).is_ok() => {
                        ended.push(parcel);
                    }
                    parcel => mailbox.calls.extend(parcel),
                }
            }
            ended
        };
        // Without the lock: it closes what it holds.
        for parcel in &ended {
            self.waiting.remove(&parcel.data);
            close_unread(&parcel.data);
        }
        if !ended.is_empty() {
            self.make_room();
        }
        !ended.is_empty()
    }

    /// Has a resource dropped, in a turn.
    pub(crate) fn discard(self: &Arc<Self>, unnamed: Unnamed) {
        if self.is_forked() {
            // It is the parent's, and so are the locks.
            std::mem::forget(unnamed);
            return;
        }
        let idle = {
            let mut mailbox = lock(&self.mailbox.0);
            mailbox.unnamed.push(unnamed);
            mailbox.is_to_be_scheduled()
        };
        if idle {
            self.schedule();
        }
    }

    /// Unless one is to come, or is under way: that one looks again.
    fn have_a_turn(self: &Arc<Self>) {
        if lock(&self.mailbox.0).is_to_be_scheduled() {
            self.schedule();
        }
    }

    fn schedule(self: &Arc<Self>) {
        self.runtime.schedule(Arc::clone(self) as Arc<dyn Run>);
    }

    /// Whether this process is a child of the one that made it.
    pub(crate) fn is_forked(&self) -> bool {
        self.epoch != handles::epoch()
    }

    /// A place for a call, and memory for its parcel.
    pub(crate) fn spare(self: &Arc<Self>) -> Result<Spare, Failure> {
        let spare = lock(&self.spare.0).pop();
        match spare {
            Some(spare) => Ok(spare),
            None => Ok((CallCore::make(self)?, Ending::new())),
        }
    }

    /// For the next call.
    pub(crate) fn keep(&self, calls: Arc<CallCore>, mut ending: Box<Ending>) {
        ending.clear();
        let refused = {
            let mut spare = lock(&self.spare.0);
            // Who closes takes out what is there after it said so. Without memory for the list there is none for the next call either.
            if self.life.is_closed()
                || calls.life.is_used_up()
                || spare.len() >= MOST_SPARE
                || spare.try_reserve(1).is_err()
            {
                Some((calls, ending))
            } else {
                spare.push((calls, ending));
                None
            }
        };
        if let Some((calls, _)) = refused {
            calls.retire();
        }
    }

    /// A place for calls is its own from now on. Where it is in the list.
    ///
    /// # Errors
    /// `overloaded`: there is no memory for the list.
    pub(crate) fn enlist(&self, calls: &Arc<CallCore>) -> Result<usize, Failure> {
        lock(&self.calls).insert(Arc::downgrade(calls))
    }

    /// It is not any more.
    pub(crate) fn delist(&self, place: usize) {
        lock(&self.calls).remove(place);
    }

    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation.load(Ordering::Acquire)
    }

    /// Rule 3: its resources are stale from now on, and it is dropped in a turn, with what it kept; the next call finds a fresh one.
    pub(crate) fn replace(self: &Arc<Self>) {
        self.replaced.store(true, Ordering::Release);
        self.incarnation.fetch_add(1, Ordering::AcqRel);
        self.have_a_turn();
    }

    /// Drops the service, if it is to be replaced: what it kept of other calls ends as panicked.
    #[inline]
    fn drop_replaced(&self, seat: &mut Seat) {
        if self.replaced.load(Ordering::Acquire) {
            self.drop_for_another(seat);
        }
    }

    #[cold]
    fn drop_for_another(&self, seat: &mut Seat) {
        if self.replaced.swap(false, Ordering::AcqRel) {
            let service = seat.service.take();
            // That it is broken is known.
            let _ = caught(REPLACED, || drop(service));
        }
    }

    /// Has a resource's async destructor called, if it has one; or drops it: the service's code.
    fn end_unnamed(self: &Arc<Self>, seat: &mut Seat, unnamed: Unnamed) {
        let Unnamed {
            value,
            incarnation,
            is_ending,
        } = unnamed;
        let is_current = incarnation == self.incarnation();
        if is_current
            && !is_ending
            && let Some(service) = &seat.service
            && let Some(method) = service.destructor(&*value)
        {
            self.destroy(seat, method, value);
            return;
        }
        let whose = if is_current { 0 } else { REPLACED };
        if caught(whose, || drop(value)).is_err() {
            self.replace();
        }
    }

    /// Has a resource's async destructor called in this turn. Nobody waits for it, so it takes no place in the mailbox.
    #[cold]
    fn destroy(self: &Arc<Self>, seat: &mut Seat, method: u32, value: Value) {
        // Where the tables are full, what was not called is dropped in a later turn.
        let Ok(handle) = handles::insert(Object::Resource(Resource::ending(self, value))) else {
            return;
        };
        let Ok((calls, mut ending)) = self.spare() else {
            let _ = handles::close_handle(handle);
            return;
        };
        let layout = self.package.methods[method as usize].params;
        ending.answer(Code::Ok, layout, &(thalweg_wire::Handle(handle),));
        // Small enough not to be weighed.
        match calls.begin(method, To::Waiter, u64::MAX) {
            Ok(core) => seat.batch.push_front(Parcel::new(ending, Call { core })),
            Err((calls, _)) => {
                let _ = handles::close_handle(handle);
                self.keep(calls, ending);
            }
        }
    }

    /// Streams that end when the instance is closed.
    pub(crate) fn watch(&self, stream: &Arc<dyn Ends>) {
        lock(&self.streams).push(stream);
    }

    /// Of a client that is closed. Again and beside another is harmless.
    fn end_streams(&self) {
        let streams = lock(&self.streams).all();
        streams
            .iter()
            .for_each(|stream| stream.end(code::client_closed()));
    }

    /// Ends its calls and streams as cancelled, and drops the service, on its actor.
    pub fn close(self: &Arc<Self>) {
        if self.is_forked() || !self.life.close() {
            return;
        }
        // Before a writer hears that it is to stop: a stream whose last writer went first would have ended well.
        self.end_streams();
        let spare = std::mem::take(&mut *lock(&self.spare.0));
        for (calls, _) in spare {
            calls.retire();
        }
        let (unused, calls) = {
            let calls = lock(&self.calls);
            (calls.is_new(), calls.iter().cloned().collect::<Vec<_>>())
        };
        for call in calls.iter().filter_map(Weak::upgrade) {
            if let Some(call) = CallRef::enter_any(&call) {
                call.stop(code::client_closed());
            }
        }
        // Those of a call that was answered meanwhile.
        self.end_streams();
        drop(self.host.replace(None));
        self.incarnation.fetch_add(1, Ordering::AcqRel);
        // Without a call there was no service.
        if !unused {
            self.have_a_turn();
        }
    }

    fn serve(self: &Arc<Self>, seat: &mut Seat, mut parcel: Parcel) {
        self.drop_replaced(seat);
        let call = &parcel.call().core;
        if self.life.is_closed() {
            // It came in beside the close.
            call.stop(code::client_closed());
        }
        if self.met_full_port.load(Ordering::Relaxed) {
            self.refuse_for_full_port(call);
        }
        if call.has_ended() {
            close_unread(&parcel.data);
            return;
        }
        let method = call.method();
        if self.package.methods[method as usize].options.is_inline {
            let args = std::mem::take(&mut parcel.data);
            self.answer_inline(method, &args, parcel.contents());
            parcel.deliver();
            return;
        }
        if seat.service.is_none() {
            match catch_unwind(AssertUnwindSafe(|| (seat.make)())) {
                Ok(service) => seat.service = Some(service),
                Err(payload) => {
                    drop_quietly(payload);
                    call.stop(Code::GuestLost.because("the service panicked while it was made"));
                    return;
                }
            }
        }
        if let Some(service) = &mut seat.service {
            // Nothing of the call is kept beside: who gets the answer is the last in it.
            let handle = call.handle();
            call.serve_by(self.incarnation());
            if let Err(why) = caught(handle, || service.dispatch(Incoming::new(parcel))) {
                self.replace();
                if let Ok(Object::Call(call)) = handles::find(handle) {
                    call.stop(why);
                }
            }
        }
    }
}

/// Drops what may panic when it is dropped.
fn drop_quietly<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        std::mem::forget(payload);
    }
}

impl Run for Instance {
    fn run(self: Arc<Self>) {
        let mut seat = self.seat.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut left, mut pace) = (CALLS_A_TURN, Pace::new());
        while left > 0 {
            let unnamed = {
                let mut mailbox = lock(&self.mailbox.0);
                if mailbox.calls.len() <= left {
                    std::mem::swap(&mut seat.batch, &mut mailbox.calls);
                } else {
                    seat.batch.extend(mailbox.calls.drain(..left));
                }
                // Who closes, or replaces it, sets that before it takes the lock.
                let closes = self.life.is_closed() && seat.service.is_some();
                let goes = closes || self.replaced.load(Ordering::Acquire);
                if seat.batch.is_empty() && mailbox.unnamed.is_empty() && !goes {
                    mailbox.scheduled = false;
                    self.met_full_port.store(false, Ordering::Relaxed);
                    return;
                }
                std::mem::take(&mut mailbox.unnamed)
            };
            left -= seat.batch.len();
            self.make_room();
            self.drop_replaced(&mut seat);
            // What was let go of before a call is gone when it is served.
            for unnamed in unnamed {
                self.end_unnamed(&mut seat, unnamed);
            }
            if seat.batch.is_empty() && self.life.is_closed() {
                // Who closes may not have come so far.
                self.end_streams();
                drop_quietly(seat.service.take());
            }
            while let Some(parcel) = seat.batch.pop_front() {
                if let Some(next) = seat.batch.front() {
                    next.fetch_contents();
                }
                if let Some(behind) = seat.batch.get(1) {
                    behind.fetch();
                }
                self.waiting.remove(&parcel.data);
                self.make_room();
                self.serve(&mut seat, parcel);
                pace.call_was_served();
            }
        }
        drop(seat);
        self.schedule();
    }

    /// No stack came for a turn: the calls that wait for it did not begin, and end as `overloaded`.
    /// All other work of a turn waits for the next turn.
    fn refuse(self: Arc<Self>) {
        let (calls, has_more) = {
            let mut mailbox = lock(&self.mailbox.0);
            let has_more = !mailbox.unnamed.is_empty()
                || self.life.is_closed()
                || self.replaced.load(Ordering::Acquire);
            mailbox.scheduled = has_more;
            (std::mem::take(&mut mailbox.calls), has_more)
        };
        for mut parcel in calls {
            self.waiting.remove(&parcel.data);
            close_unread(&parcel.data);
            parcel.fail(Code::Overloaded.because("no stack was free for a turn of the service"));
            parcel.deliver();
        }
        self.make_room();
        if has_more {
            self.schedule();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
