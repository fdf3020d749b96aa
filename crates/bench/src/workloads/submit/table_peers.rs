//! The peers of `port_submit`: mutex-protected queues and one consumer thread, behind the C
//! signatures of `thalweg.h`.
//!
//! | peer | queues |
//! | --- | --- |
//! | `one_mutex` | one |
//! | `mutex_shards` | 16; a port always uses the same one |
//! | `global_lock` | one slot behind one lock, which a submission holds until the consumer has accepted the call |
//!
//! They do what a call through the library does at least: `submit` reserves a slot of the port and
//! copies the arguments into a message, the consumer evaluates the method, builds the result's message
//! and puts the completion into the queue of the call's port, and both queues wake their reader only if
//! it sleeps. They wait like the library, with its own building blocks ([`AdaptiveSpin`],
//! [`AtomicWaker`], [`Parker`]). They do less than the library: a call has no handle, no deadline and no
//! cancellation, nothing is checked, and the consumer takes a port's lock once for all of its
//! completions in a row.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use thalweg_capi::abi::{
    TW_COMPLETION_CALL, TW_FOREVER, TW_OK, TW_OVERLOADED, TW_TIMED_OUT, TwCompletion, TwError,
    TwHandle, TwSubmission,
};
use thalweg_lab::{DEEP_CALLS, predicates};
use thalweg_queue::{AdaptiveSpin, AtomicWaker, CachePadded, Parker, clock};

use super::table::Functions;

/// `one_mutex`.
pub const ONE_MUTEX: Functions = functions::<1, false>();
/// `mutex_shards`.
pub const MUTEX_SHARDS: Functions = functions::<16, false>();
/// `global_lock`.
pub const GLOBAL_LOCK: Functions = functions::<1, true>();

const fn functions<const SHARDS: usize, const HANDSHAKE: bool>() -> Functions {
    Functions {
        client_open: client_open::<SHARDS, HANDSHAKE>,
        client_close,
        port_open,
        port_close,
        port_wait,
        port_reap,
        release,
        submit,
        method: 0,
        threads: CONSUMER,
    }
}

const CONSUMER: &str = "peer-consumer";

/// Size of the arguments of the one method: a header of 16 bytes, then `a`, `b` and `x`.
const ARGS: usize = 40;

/// The memory of a call's arguments and, later, of its result.
#[repr(C, align(8))]
struct Message([u8; ARGS]);

/// Size of the result's message: a header of 16 bytes, then a `bool`, and padding.
const RESULT: usize = 24;

/// A call in a queue.
struct Record {
    port: *const Port,
    token: u64,
    message: Box<Message>,
}

// SAFETY: a port lives until the client, and with it the consumer, was closed, and may be used on
// every thread.
unsafe impl Send for Record {}

impl Record {
    fn complete(mut self) -> Completion {
        let word = |at: usize| {
            let bytes = self.message.0[at..]
                .first_chunk()
                .expect("there are 40 bytes");
            u64::from_ne_bytes(*bytes)
        };
        let (a, b) = (word(16).cast_signed(), word(24).cast_signed());
        let value = predicates::parity(a, b, f64::from_bits(word(32)));
        let message = &mut self.message.0;
        message.fill(0);
        message[..4].copy_from_slice(&(RESULT as u32).to_le_bytes());
        message[12..16].copy_from_slice(&16_u32.to_le_bytes());
        message[16] = u8::from(value);
        let data = Box::into_raw(self.message);
        Completion(TwCompletion {
            token: self.token,
            call: 0,
            kind: TW_COMPLETION_CALL,
            code: TW_OK,
            data: data.cast::<u8>(),
            data_size: RESULT as u64,
            message: std::ptr::null(),
            message_size: 0,
            retryable: 0,
            owner: 0,
        })
    }
}

thread_local! {
    /// The calls of one submission, so that their messages are not built under the lock.
    static RECORDS: RefCell<Vec<Record>> = const { RefCell::new(Vec::new()) };
}

/// A queue behind a mutex.
struct Queue<T> {
    entries: Mutex<VecDeque<T>>,
    /// Whether there is an entry; written under the lock.
    filled: AtomicBool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            entries: Mutex::default(),
            filled: AtomicBool::new(false),
        }
    }
}

impl<T> Queue<T> {
    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.entries.lock().expect("no thread panics with the lock")
    }

    fn is_filled(&self) -> bool {
        self.filled.load(Ordering::Acquire)
    }

    /// Runs `change` under the lock.
    fn with<R>(&self, change: impl FnOnce(&mut VecDeque<T>) -> R) -> R {
        let mut entries = self.lock();
        let result = change(&mut entries);
        self.filled.store(!entries.is_empty(), Ordering::Release);
        result
    }
}

/// Waits until `found`, like a Thalweg caller or worker: spins, then sleeps. Returns false at the
/// deadline.
fn wait(
    waker: &AtomicWaker,
    spin: &mut AdaptiveSpin,
    deadline: u64,
    found: impl Fn() -> bool,
) -> bool {
    let parker = Parker::current();
    loop {
        if spin.until(&found) {
            return true;
        }
        waker.arm(parker.waker());
        if found() {
            waker.disarm();
            return true;
        }
        spin.sleep(|| parker.park(Some(deadline)));
        if !found() && clock::now() >= deadline {
            waker.disarm();
            return false;
        }
    }
}

/// An instance: the queues and their consumer.
struct Client {
    shards: Box<[CachePadded<Queue<Record>>]>,
    waker: AtomicWaker,
    stopped: AtomicBool,
    /// `global_lock`: held until the call is accepted.
    handshake: Option<Mutex<()>>,
    accepted: Queue<()>,
    accepted_waker: AtomicWaker,
}

impl Client {
    /// Adds calls and returns how many there was room for. Does not wake the consumer.
    fn push(&self, port: TwHandle, calls: &[TwSubmission]) -> usize {
        // SAFETY: the caller passes a port that is open.
        let port = unsafe { &*(port as *const Port) };
        let reserved = port.reserve(calls.len());
        let record = |call: &TwSubmission| {
            let mut message = Box::new(Message([0; ARGS]));
            // SAFETY: the caller passes a message of this size.
            unsafe {
                message
                    .0
                    .as_mut_ptr()
                    .copy_from_nonoverlapping(call.args, ARGS)
            };
            Record {
                port,
                token: call.token,
                message,
            }
        };
        RECORDS.with_borrow_mut(|records| {
            // Not under the lock.
            records.extend(calls[..reserved].iter().map(record));
            let taken = self.shards[port.number % self.shards.len()].with(|queue| {
                let room = (DEEP_CALLS as usize).saturating_sub(queue.len());
                let taken = records.len().min(room);
                queue.extend(records.drain(..taken));
                taken
            });
            records.clear();
            port.free(reserved - taken);
            taken
        })
    }

    fn submit(&self, port: TwHandle, calls: &[TwSubmission]) -> usize {
        let Some(handshake) = &self.handshake else {
            let taken = self.push(port, calls);
            self.waker.signal();
            return taken;
        };
        for call in calls {
            let _held = handshake.lock().expect("no thread panics with the lock");
            self.push(port, std::slice::from_ref(call));
            self.waker.signal();
            let accepted = || self.accepted.is_filled();
            let parker = Parker::current();
            while !accepted() {
                self.accepted_waker.arm(parker.waker());
                if accepted() {
                    self.accepted_waker.disarm();
                } else {
                    parker.park(None);
                }
            }
            self.accepted.with(VecDeque::clear);
        }
        calls.len()
    }

    /// Serves calls until the client is closed.
    fn serve(&self) {
        let (mut spin, mut taken) = (AdaptiveSpin::new(), VecDeque::new());
        let is_filled = |shard: &&CachePadded<Queue<Record>>| shard.is_filled();
        loop {
            let stopped = self.stopped.load(Ordering::Acquire);
            for shard in self.shards.iter().filter(is_filled) {
                shard.with(|queue| std::mem::swap(queue, &mut taken));
                if self.handshake.is_some() {
                    self.accepted.with(|accepted| accepted.push_back(()));
                    self.accepted_waker.signal();
                }
                complete_all(&mut taken);
            }
            let found = || {
                self.stopped.load(Ordering::Acquire) || self.shards.iter().any(|s| s.is_filled())
            };
            if stopped {
                return;
            }
            wait(&self.waker, &mut spin, TW_FOREVER, found);
        }
    }
}

/// Evaluates the calls, and completes those of one port in a row together.
fn complete_all(taken: &mut VecDeque<Record>) {
    let mut records = taken.drain(..).peekable();
    while let Some(first) = records.next() {
        // SAFETY: as for `Send` of a record.
        let port = unsafe { &*first.port };
        port.completions.with(|completions| {
            let own = first.port;
            completions.push_back(first.complete());
            while let Some(next) = records.next_if(|next| next.port == own) {
                completions.push_back(next.complete());
            }
        });
        port.waker.signal();
    }
}

/// A completion that owns its message.
struct Completion(TwCompletion);

// SAFETY: the completion owns its message.
unsafe impl Send for Completion {}

impl Completion {
    /// Gives the completion to the caller, which releases it.
    fn into_raw(self) -> TwCompletion {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: it is moved out once.
        unsafe { std::ptr::read(&raw const this.0) }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        // SAFETY: `Record::complete` leaked the message.
        drop(unsafe { Box::from_raw(self.0.data.cast::<Message>().cast_mut()) });
    }
}

/// The completion queue of one thread.
struct Port {
    number: usize,
    /// Maximum number of calls that are running or not yet reaped.
    capacity: usize,
    /// Number of those calls.
    reserved: CachePadded<AtomicUsize>,
    completions: Queue<Completion>,
    waker: AtomicWaker,
    spin: Mutex<AdaptiveSpin>,
}

impl Port {
    /// Reserves up to `wanted` slots. Returns their number.
    fn reserve(&self, wanted: usize) -> usize {
        let mut reserved = self.reserved.load(Ordering::Relaxed);
        loop {
            let more = wanted.min(self.capacity - reserved);
            let exchanged = self.reserved.compare_exchange_weak(
                reserved,
                reserved + more,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match exchanged {
                Ok(_) => return more,
                Err(now) => reserved = now,
            }
        }
    }

    fn free(&self, slots: usize) {
        if slots > 0 {
            self.reserved.fetch_sub(slots, Ordering::Release);
        }
    }
}

/// A client's handle points to this.
struct Running {
    client: Arc<Client>,
    consumer: JoinHandle<()>,
}

unsafe extern "C" fn client_open<const SHARDS: usize, const HANDSHAKE: bool>(
    handle: *mut TwHandle,
    _error: *mut TwError,
) -> u32 {
    let client = Arc::new(Client {
        shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
        waker: AtomicWaker::new(),
        stopped: AtomicBool::new(false),
        handshake: HANDSHAKE.then(Mutex::default),
        accepted: Queue::default(),
        accepted_waker: AtomicWaker::new(),
    });
    let of_consumer = Arc::clone(&client);
    let consumer = thread::Builder::new().name(CONSUMER.to_owned());
    let Ok(consumer) = consumer.spawn(move || of_consumer.serve()) else {
        return TW_OVERLOADED;
    };
    // SAFETY: as in all functions here, the driver passes valid pointers and open handles.
    unsafe { *handle = Box::into_raw(Box::new(Running { client, consumer })) as TwHandle };
    TW_OK
}

unsafe extern "C" fn client_close(client: TwHandle, _error: *mut TwError) -> u32 {
    // SAFETY: see `client_open`; the handle is closed once.
    let Running { client, consumer } = *unsafe { Box::from_raw(client as *mut Running) };
    client.stopped.store(true, Ordering::Release);
    client.waker.signal();
    consumer.join().expect("the consumer does not panic");
    TW_OK
}

unsafe extern "C" fn port_open(capacity: u32, port: *mut TwHandle, _error: *mut TwError) -> u32 {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let new = Port {
        number: NUMBER.fetch_add(1, Ordering::Relaxed),
        capacity: capacity as usize,
        reserved: CachePadded::default(),
        completions: Queue::default(),
        waker: AtomicWaker::new(),
        spin: Mutex::default(),
    };
    // SAFETY: see `client_open`.
    unsafe { *port = Box::into_raw(Box::new(new)) as TwHandle };
    TW_OK
}

unsafe extern "C" fn port_close(port: TwHandle, _error: *mut TwError) -> u32 {
    // SAFETY: see `client_open`; the handle is closed once, after the client.
    drop(unsafe { Box::from_raw(port as *mut Port) });
    TW_OK
}

unsafe extern "C" fn port_wait(port: TwHandle, deadline: u64, _error: *mut TwError) -> u32 {
    // SAFETY: see `client_open`.
    let port = unsafe { &*(port as *const Port) };
    let mut spin = port.spin.lock().expect("no thread panics with the lock");
    let found = || port.completions.is_filled();
    if wait(&port.waker, &mut spin, deadline, found) {
        TW_OK
    } else {
        TW_TIMED_OUT
    }
}

unsafe extern "C" fn port_reap(
    port: TwHandle,
    out: *mut TwCompletion,
    max: u32,
    count: *mut u32,
    _error: *mut TwError,
) -> u32 {
    // SAFETY: see `client_open`; `out` has room for `max`.
    unsafe {
        let port = &*(port as *const Port);
        port.completions.with(|completions| {
            let taken = completions.len().min(max as usize);
            for (at, completion) in completions.drain(..taken).enumerate() {
                out.add(at).write(completion.into_raw());
            }
            *count = taken as u32;
        });
        port.free(*count as usize);
    }
    TW_OK
}

unsafe extern "C" fn release(completion: *mut TwCompletion) {
    // SAFETY: see `client_open`; the completion came from `port_reap` and is released once.
    drop(Completion(unsafe { completion.read() }));
}

unsafe extern "C" fn submit(
    port: TwHandle,
    batch: *mut TwSubmission,
    count: u32,
    accepted: *mut u32,
    _error: *mut TwError,
) -> u32 {
    // SAFETY: see `client_open`; the batch has `count` calls of one client.
    unsafe {
        let calls = std::slice::from_raw_parts(batch, count as usize);
        let running = &*(calls[0].client as *const Running);
        *accepted = running.client.submit(port, calls) as u32;
        if *accepted == count {
            TW_OK
        } else {
            TW_OVERLOADED
        }
    }
}

/// Adds calls without waking the consumer: a lost wake-up, for tests.
#[cfg(test)]
pub(super) unsafe extern "C" fn submit_without_wake(
    port: TwHandle,
    batch: *mut TwSubmission,
    count: u32,
    accepted: *mut u32,
    _error: *mut TwError,
) -> u32 {
    // SAFETY: see `submit`.
    unsafe {
        let calls = std::slice::from_raw_parts(batch, count as usize);
        *accepted = (*(calls[0].client as *const Running))
            .client
            .push(port, calls) as u32;
    }
    TW_OK
}
