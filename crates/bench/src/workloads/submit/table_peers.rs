//! The peers of `port_submit`: mutex-protected queues and one consumer thread, behind the C
//! signatures of `thalweg.h`.
//!
//! | peer | queues |
//! | --- | --- |
//! | `one_mutex` | one |
//! | `mutex_shards` | 16; a port always uses the same one |
//! | `global_lock` | one slot behind one lock, which a submission holds until the consumer has accepted the call |
//!
//! They do what a call through the library does at least: `submit` copies the arguments, the
//! consumer evaluates the method and puts the completion into the queue of the call's port, and both
//! queues wake their reader only if it sleeps. They wait like the library, with its own building
//! blocks ([`AdaptiveSpin`], [`AtomicWaker`], [`Parker`]). They do less than the library: a call has
//! no handle, no deadline and no cancellation, nothing is checked, and the consumer takes a port's
//! lock once for all of its completions in a row.

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

/// A call in a queue.
struct Record {
    port: *const Port,
    token: u64,
    args: [u8; ARGS],
}

// SAFETY: a port lives until the client, and with it the consumer, was closed, and may be used on
// every thread.
unsafe impl Send for Record {}

/// A message that is a `bool`, aligned as the header requires.
#[repr(C, align(8))]
struct Answer([u8; 24]);

/// Both results of the method. A completion refers to one of them, so nothing is allocated.
static ANSWERS: [Answer; 2] = [answer(0), answer(1)];

const fn answer(value: u8) -> Answer {
    let mut bytes = [0; 24];
    bytes[16] = value;
    Answer(bytes)
}

impl Record {
    fn complete(&self) -> TwCompletion {
        let word = |at: usize| {
            let bytes = self.args[at..].first_chunk().expect("there are 40 bytes");
            u64::from_ne_bytes(*bytes)
        };
        let (a, b) = (word(16).cast_signed(), word(24).cast_signed());
        let answer = &ANSWERS[usize::from(predicates::parity(a, b, f64::from_bits(word(32))))];
        TwCompletion {
            token: self.token,
            call: 0,
            kind: TW_COMPLETION_CALL,
            code: TW_OK,
            data: answer.0.as_ptr(),
            data_size: answer.0.len() as u64,
            message: std::ptr::null(),
            message_size: 0,
            retryable: 0,
            owner: 0,
        }
    }
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
        let number = unsafe { &*(port as *const Port) }.number;
        self.shards[number % self.shards.len()].with(|queue| {
            let room = (DEEP_CALLS as usize).saturating_sub(queue.len());
            let taken = calls.len().min(room);
            queue.extend(calls[..taken].iter().map(|call| {
                let mut args = [0; ARGS];
                // SAFETY: the caller passes a message of this size.
                unsafe { args.as_mut_ptr().copy_from_nonoverlapping(call.args, ARGS) };
                Record {
                    port: port as *const Port,
                    token: call.token,
                    args,
                }
            }));
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
            completions.push_back(Completion(first.complete()));
            while let Some(next) = records.next_if(|next| next.port == first.port) {
                completions.push_back(Completion(next.complete()));
            }
        });
        port.waker.signal();
    }
}

struct Completion(TwCompletion);

// SAFETY: it points to statics.
unsafe impl Send for Completion {}

/// The completion queue of one thread.
struct Port {
    number: usize,
    completions: Queue<Completion>,
    waker: AtomicWaker,
    spin: Mutex<AdaptiveSpin>,
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

unsafe extern "C" fn port_open(_capacity: u32, port: *mut TwHandle, _error: *mut TwError) -> u32 {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let new = Port {
        number: NUMBER.fetch_add(1, Ordering::Relaxed),
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
            for (at, Completion(completion)) in completions.drain(..taken).enumerate() {
                out.add(at).write(completion);
            }
            *count = taken as u32;
        });
    }
    TW_OK
}

unsafe extern "C" fn release(_completion: *mut TwCompletion) {}

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
