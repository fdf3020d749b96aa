//! A port: the completion queue that one event loop or one thread reaps.

use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
use std::task::{Wake, Waker};

use thalweg_queue::no_preempt::lock;
use thalweg_queue::spin::{self, Spun};
use thalweg_queue::{AdaptiveSpin, AtomicWaker, CachePadded, EventFd, Ring, clock};
use thalweg_runtime::log::{self, Level, Limit};
use thalweg_runtime::{WakeReason, wait};

use crate::code::{Code, Failure, no_memory, would_park};
use crate::completion::{Completion, Kind};
use crate::handles::{self, HandleObject, Kind as HandleKind};
use crate::open_state::{EnterError, OpenState};
use crate::queued_bytes::QueuedBytes;
use crate::slab::Slab;
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::wake_fd::WakeFd;
use crate::wake_target::WakeTarget;

/// Maximum number of slots of one port.
const MAX_CAPACITY: u32 = 65_536;

/// A completion queue with an eventfd. Any thread may submit and close. One thread at a time may
/// reap.
#[derive(Debug)]
pub struct Port {
    ring: Ring<Completion>,
    capacity: u32,
    number: u32,
    /// Its users are the slots that are reserved for running calls and for completions that were
    /// not reaped. It changes with each call, so it has its own cache line. A thread that completes
    /// a call reads only the other fields.
    open_state: CachePadded<OpenState>,
    /// A copy of the closed state of `open_state` for threads that complete calls.
    is_closed: AtomicBool,
    gate: AtomicWaker,
    wake_target: Arc<WakeTarget>,
    /// Wakes `wake_target`.
    target_waker: Waker,
    /// Those whose completions come to this port.
    users: Mutex<Slab<Weak<dyn PortUser>>>,
    /// Size of the results in the ring.
    unreaped: QueuedBytes,
    /// Handles of host calls that were sent to this port and may not be answered yet.
    host_calls: Mutex<Vec<u64>>,
    /// A [`Reap`] exists.
    reaping: AtomicBool,
    /// Adaptive spinning of the reaping thread.
    spin: Mutex<AdaptiveSpin>,
    /// When a spin of [`spin_or_arm`](Self::spin_or_arm) ended without a completion, or 0.
    missed_at: AtomicU64,
}

/// A call whose completion comes to a port.
pub(crate) trait PortUser: Send + Sync {
    /// Called when the port closes. The completion would be dropped.
    fn on_port_closed(self: Arc<Self>, port: &Port);
}

fn closed() -> Failure {
    Code::Closed.because("the port is closed")
}

/// A port with completions that were not announced. Dropping this announces them.
#[derive(Debug, Default)]
pub(crate) struct Unannounced(Option<Arc<Port>>);

impl Unannounced {
    /// Adds a completion of this port. Those of another port are announced now.
    pub(crate) fn add(&mut self, port: Arc<Port>) {
        match &self.0 {
            Some(same) if Arc::ptr_eq(same, &port) => {}
            _ => {
                let before = self.0.replace(port);
                before.into_iter().for_each(|port| port.announce());
            }
        }
    }
}

impl Drop for Unannounced {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|port| port.announce());
    }
}

/// Number of slots that are released together.
const RELEASE_BATCH: u32 = 64;

/// Reaps a port: an iterator over its completions. At most one exists per port.
#[derive(Debug)]
pub struct Reap<'a> {
    port: &'a Port,
    /// Reaped slots that are not released yet.
    reaped: u32,
}

impl Reap<'_> {
    fn give_back(&mut self) {
        self.port.open_state.leave(std::mem::take(&mut self.reaped));
    }

    fn note_reaped(&mut self, completion: &Completion) {
        self.reaped += u32::from(self.port.on_reaped(completion));
        if self.reaped == RELEASE_BATCH {
            self.give_back();
        }
    }

    /// Fills `completions` from the beginning with available completions. It prefetches the memory
    /// of each completion before it reads the first one.
    pub fn fill(&mut self, completions: &mut [Option<Completion>]) {
        let mut filled = 0;
        for place in &mut *completions {
            let Some(completion) = self.port.ring.pop() else {
                break;
            };
            completion.0.prefetch();
            *place = Some(completion);
            filled += 1;
        }
        for completion in completions[..filled].iter().flatten() {
            self.note_reaped(completion);
            completion.0.prefetch_contents();
        }
    }
}

impl Iterator for Reap<'_> {
    type Item = Completion;

    fn next(&mut self) -> Option<Completion> {
        let completion = self.port.ring.pop()?;
        self.note_reaped(&completion);
        Some(completion)
    }
}

impl Drop for Reap<'_> {
    fn drop(&mut self) {
        self.give_back();
        self.port.reaping.store(false, Ordering::Release);
    }
}

impl Port {
    /// Opens a port with `capacity` slots: the maximum number of calls that are running or not yet
    /// reaped.
    ///
    /// # Errors
    /// `argument`: the capacity is 0 or greater than 65,536. `overloaded`: there is no file
    /// descriptor, or not enough memory for that many completions.
    pub fn open(capacity: u32) -> Result<Arc<Self>, Failure> {
        if capacity == 0 || capacity > MAX_CAPACITY {
            return Err(Code::Argument.because(format!(
                "a port's capacity is 1 to {MAX_CAPACITY}, not {capacity}"
            )));
        }
        static OPENED: AtomicU32 = AtomicU32::new(0);
        let ring = Ring::new(capacity as usize)
            .map_err(|_| no_memory(capacity as usize * size_of::<Completion>()))?;
        let event = EventFd::new()
            .map_err(|error| Code::Overloaded.because(format!("no eventfd: {error}")))?;
        let wake_target = Arc::new(WakeTarget::new(event));
        Ok(Arc::new(Self {
            ring,
            capacity,
            number: OPENED.fetch_add(1, Ordering::Relaxed),
            open_state: CachePadded::new(OpenState::new()),
            is_closed: AtomicBool::new(false),
            gate: AtomicWaker::new(),
            target_waker: Waker::from(Arc::clone(&wake_target)),
            wake_target,
            users: Mutex::default(),
            unreaped: QueuedBytes::default(),
            host_calls: Mutex::default(),
            reaping: AtomicBool::new(false),
            spin: Mutex::default(),
            missed_at: AtomicU64::new(0),
        }))
    }

    /// The number of ports that the process had opened before this one.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Checks that the unreaped results have fewer than `bytes` bytes. A completion with a reserved
    /// slot is always accepted, whatever its size.
    ///
    /// # Errors
    /// `overloaded`.
    #[inline]
    pub(crate) fn check_unreaped(&self, bytes: u64) -> Result<(), Failure> {
        if self.unreaped.bytes() >= bytes {
            return Err(Code::Overloaded
                .because(format!("more than {bytes} bytes of results are unreaped")));
        }
        Ok(())
    }

    /// Rule 1: reserves a slot.
    ///
    /// # Errors
    /// `overloaded` or `closed`.
    pub(crate) fn reserve(&self) -> Result<(), Failure> {
        self.reserve_up_to(1).map(drop)
    }

    /// Rule 1: reserves up to `wanted` slots, and at least one. Returns their number.
    ///
    /// # Errors
    /// `overloaded` or `closed`.
    #[inline]
    pub(crate) fn reserve_up_to(&self, wanted: u32) -> Result<u32, Failure> {
        self.open_state
            .enter_up_to(wanted, self.capacity)
            .map_err(|why| match why {
                EnterError::Full => self.full(),
                _ => closed(),
            })
    }

    #[cold]
    fn full(&self) -> Failure {
        static FULL: Limit = Limit::new();
        let why = format!(
            "all {} slots of the port are in use: reap first",
            self.capacity
        );
        FULL.write(
            Level::Warning,
            "port",
            format_args!("a call is refused: {why}"),
        );
        Code::Overloaded.because(why)
    }

    /// Releases a reserved slot that was not used.
    pub(crate) fn unreserve(&self) {
        self.unreserve_all(1);
    }

    /// Releases reserved slots that were not used.
    pub(crate) fn unreserve_all(&self, slots: u32) {
        self.open_state.leave(slots);
    }

    /// Number of reserved slots.
    #[cfg(all(test, loom))]
    pub(crate) fn reserved(&self) -> u32 {
        self.open_state.entered()
    }

    /// Puts a completion into its reserved slot. If the port is closed, the completion is dropped.
    pub(crate) fn complete(&self, completion: Completion) {
        self.put(completion);
        self.announce();
    }

    /// The first half of [`complete`](Self::complete). It takes no lock.
    #[inline]
    pub(crate) fn put(&self, completion: Completion) {
        self.unreaped.add(&completion.data);
        // Rule 1: there is a free slot.
        let refused = self.ring.push(completion);
        debug_assert!(refused.is_ok(), "more completions than reservations");
    }

    /// The second half of [`complete`](Self::complete).
    pub(crate) fn announce(&self) {
        // The fences here and in `close` ensure that either the closing thread finds the
        // completion, or this thread sees that the port is closed.
        self.gate.signal();
        if self.is_closed.load(Ordering::Relaxed) {
            self.clear();
        }
    }

    /// Registers something that completes here. Returns its key.
    ///
    /// # Errors
    /// `overloaded`: there is not enough memory for the list.
    pub(crate) fn add_user(&self, user: Weak<dyn PortUser>) -> Result<usize, Failure> {
        lock(&self.users).insert(user)
    }

    /// Removes what was registered with [`add_user`](Self::add_user).
    pub(crate) fn remove_user(&self, key: usize) {
        lock(&self.users).remove(key);
    }

    /// Drops the unreaped completions of a closed port.
    fn clear(&self) {
        while let Some(completion) = self.ring.pop() {
            if self.on_reaped(&completion) {
                self.unreserve();
            }
        }
    }

    /// Called when a completion was taken out of the ring. Returns whether its slot is free.
    fn on_reaped(&self, completion: &Completion) -> bool {
        self.unreaped.remove(&completion.data);
        completion.kind != Kind::StillRunning
            || handles::find_reused_object(completion.handle)
                .is_none_or(|call| call.on_notice_reaped(handles::generation_of(completion.handle)))
    }

    pub(crate) fn check_open(&self) -> Result<(), Failure> {
        if self.open_state.is_closed() {
            Err(closed())
        } else {
            Ok(())
        }
    }

    /// Reaps available completions. One thread at a time may reap.
    ///
    /// # Errors
    /// `argument`: another thread is reaping.
    pub fn reap(&self) -> Result<Reap<'_>, Failure> {
        if self.reaping.swap(true, Ordering::Acquire) {
            return Err(Code::Argument.because("another thread is reaping this port"));
        }
        Ok(Reap {
            port: self,
            reaped: 0,
        })
    }

    /// Size in bytes of the unreaped results. Results of up to 512 bytes are not counted.
    pub fn unreaped_bytes(&self) -> u64 {
        self.unreaped.bytes()
    }

    /// Whether there is no completion to reap.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// The port's eventfd. It becomes readable with the next completion after [`arm`](Self::arm)
    /// returned `false`, unless another descriptor is woken instead
    /// ([`set_wake_fd`](Self::set_wake_fd)).
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wake_target.as_fd()
    }

    /// Wakes `fd` instead of the port's eventfd, for an event loop that cannot watch an eventfd of
    /// another library. `None`: the eventfd again. In effect at once, also for an armed port. If
    /// there are completions to reap, `fd` is woken now.
    ///
    /// `fd` is a connected socket, the writing end of a pipe, or an eventfd. A socket and a pipe
    /// receive one byte per wake-up, and an eventfd the number 1; the caller reads them. The port
    /// keeps a duplicate until `fd` is replaced or the port is closed, so the caller may close `fd`.
    /// No write blocks or raises SIGPIPE, and a write that fails is ignored.
    ///
    /// ```
    /// use std::io::Read;
    /// use std::os::fd::AsRawFd;
    /// use thalweg_port::Port;
    ///
    /// let port = Port::open(16)?;
    /// let (mut reader, writer) = std::io::pipe().expect("two descriptors");
    /// port.set_wake_fd(Some(writer.as_raw_fd()))?;
    /// drop(writer);
    /// assert!(!port.arm()?);
    /// port.close(); // wakes the armed descriptor and closes the duplicate
    /// let mut bytes = Vec::new();
    /// reader.read_to_end(&mut bytes).expect("it is open");
    /// assert_eq!(bytes, [1]);
    /// # Ok::<(), thalweg_port::Failure>(())
    /// ```
    ///
    /// # Errors
    /// `argument`: `fd` is not open, is of another kind, is not connected or has no reader.
    /// `overloaded`: no file descriptor. The earlier descriptor then stays. `closed`.
    pub fn set_wake_fd(&self, fd: Option<RawFd>) -> Result<(), Failure> {
        self.check_open()?;
        let descriptor = fd.map(WakeFd::new).transpose()?;
        self.wake_target.set(descriptor);
        if self.open_state.is_closed() {
            // Closed at the same time: `close` may have run before.
            self.wake_target.set(None);
            return Err(closed());
        }
        // Rule 2 of `wake_target`.
        if fd.is_some() && !self.ring.is_empty() {
            self.wake_target.wake_by_ref();
        }
        Ok(())
    }

    /// Arms the port for one wake-up: its eventfd becomes readable with the next completion, or the
    /// descriptor of [`set_wake_fd`](Self::set_wake_fd) is woken. Returns `true`, and arms nothing,
    /// if there is already a completion to reap.
    ///
    /// # Errors
    /// `closed`.
    pub fn arm(&self) -> Result<bool, Failure> {
        self.check_open()?;
        self.wake_target.reset();
        if !self.ring.is_empty() {
            return Ok(true);
        }
        self.gate.arm(self.target_waker.clone());
        if self.ring.is_empty() && !self.open_state.is_closed() {
            return Ok(false);
        }
        self.gate.disarm();
        Ok(true)
    }

    /// Like [`arm`](Self::arm), but first waits a moment, without sleeping, for a completion to reap.
    ///
    /// On several processors, it spins for at most `max_ns` nanoseconds, limited to 1 ms, and less
    /// if spinning did not help lately. From the first call with a `max_ns` above 0, all threads of
    /// this process may spin for up to `max_ns` before they sleep. Threads that are pinned to one
    /// processor spin too, if the threads of the process may together use several. On one processor,
    /// it does not spin, but yields the processor once, and less often if that did not help.
    ///
    /// # Errors
    /// `argument`: another thread is waiting on this port. `closed`.
    pub fn spin_or_arm(&self, max_ns: u64) -> Result<bool, Failure> {
        self.check_open()?;
        if max_ns > 0 {
            spin::let_threads_spin(max_ns);
        }
        let mut spin = self.lock_spin()?;
        // A thread that completes a call meanwhile need not wake the target.
        self.gate.disarm();
        let found = || !self.ring.is_empty() || self.open_state.is_closed();
        let since = self.missed_at.swap(0, Ordering::Relaxed);
        if since > 0 {
            spin.record_sleep(clock::now().saturating_sub(since));
        }
        if spin.spin(max_ns, found) == Spun::Found {
            return Ok(true);
        }
        self.missed_at.store(clock::now(), Ordering::Relaxed);
        self.arm()
    }

    /// # Errors
    /// `argument`: another thread is waiting on this port.
    fn lock_spin(&self) -> Result<MutexGuard<'_, AdaptiveSpin>, Failure> {
        match self.spin.try_lock() {
            Ok(spin) => Ok(spin),
            Err(TryLockError::Poisoned(spin)) => Ok(spin.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(Code::Argument.because("another thread is waiting on this port"))
            }
        }
    }

    /// Waits until there is a completion to reap.
    ///
    /// # Errors
    /// `timed_out` at the deadline ([`thalweg_queue::clock`]; 0: do not wait), `interrupted` by a
    /// signal, `closed`. `would_park` where an actor must not wait, as in
    /// [`native`](thalweg_runtime::native).
    pub fn wait(&self, deadline: u64) -> Result<(), Failure> {
        let found = || !self.ring.is_empty() || self.open_state.is_closed();
        let mut spin = self.lock_spin()?;
        loop {
            if found() {
                break;
            }
            if deadline == 0 {
                return Err(Code::TimedOut.because("nothing has completed yet"));
            }
            if spin.until(found) {
                break;
            }
            if !wait::can_park() {
                return Err(would_park());
            }
            self.gate.arm(wait::waker());
            if found() {
                self.gate.disarm();
                break;
            }
            let woke = spin.sleep(|| wait::park(Some(deadline)));
            if woke != WakeReason::Woken {
                self.gate.disarm();
            }
            match woke {
                _ if found() => break,
                WakeReason::Woken => {}
                WakeReason::TimedOut => {
                    return Err(Code::TimedOut.because("nothing completed before the deadline"));
                }
                WakeReason::Interrupted => {
                    return Err(Code::Interrupted.because("a signal arrived"));
                }
                WakeReason::Stopping => return Err(Code::ShutDown.because("the runtime stops")),
            }
        }
        self.check_open()
    }

    /// Ends the running calls as `cancelled` and wakes a waiting thread. Unreaped completions are
    /// dropped.
    pub fn close(&self) {
        if !self.open_state.close() {
            return;
        }
        self.is_closed.store(true, Ordering::Relaxed);
        let users = std::mem::take(&mut *lock(&self.users));
        for user in users.iter().filter_map(Weak::upgrade) {
            user.on_port_closed(self);
        }
        let host_calls = std::mem::take(&mut *lock(&self.host_calls));
        for call in host_calls {
            if let Ok(found) = handles::find(call) {
                found
                    .into_object()
                    .on_answerer_closed(handles::generation_of(call));
            }
        }
        self.gate.signal();
        self.wake_target.set(None);
        self.clear();
    }

    /// Sets a sink ([`log::set_sink`]) that sends the records up to `level` to this port, as
    /// completions with `token`. Each record uses a slot until it is reaped. If there is no slot, or
    /// the port is closed, the record is dropped.
    ///
    /// ```
    /// use thalweg_port::log::{self, Level};
    /// use thalweg_port::{Kind, Port};
    ///
    /// let port = Port::open(16)?;
    /// port.receive_log(7, Level::Warning);
    /// log::write(Level::Warning, "cache", format_args!("{} entries are stale", 3));
    /// let record = port.reap()?.next().expect("it was written");
    /// assert_eq!((record.token, record.kind), (7, Kind::LogRecord));
    /// assert_eq!(record.message, "cache: 3 entries are stale");
    /// log::take_sink();
    /// # Ok::<(), thalweg_port::Failure>(())
    /// ```
    pub fn receive_log(self: &Arc<Self>, token: u64, level: Level) {
        let port = Arc::downgrade(self);
        log::set_sink(level, move |record| {
            if let Some(port) = port.upgrade()
                && port.reserve().is_ok()
            {
                let text = format!("{}: {}", record.target, record.message);
                port.complete(Completion::log_record(token, record.level as u32, text));
            }
        });
    }

    /// Registers a host call that is sent to this port.
    pub(crate) fn add_host_call(&self, call: u64) {
        let prune = {
            let mut host_calls = lock(&self.host_calls);
            host_calls.push(call);
            let is_due = host_calls.len() >= 16 && host_calls.len().is_power_of_two();
            is_due.then(|| std::mem::take(&mut *host_calls))
        };
        if let Some(mut prune) = prune {
            // Not under the lock, under which no other lock may be taken.
            prune.retain(|call| handles::with(*call, |_| Some(())).is_ok());
            lock(&self.host_calls).append(&mut prune);
        }
    }
}

// SAFETY: ports have no other type.
unsafe impl HandleObject for Port {
    fn has_kind(kind: HandleKind) -> bool {
        kind == HandleKind::Port
    }

    fn close_handle(self: Arc<Self>, _: HandleKind, _: u32) {
        self.close();
    }
}
