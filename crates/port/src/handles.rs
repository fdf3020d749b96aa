//! The table behind the numbers that hosts hold.
//!
//! A handle is `generation u32 | epoch u8 | index u24`. The index names a slot; the slot's generation grows whenever its object
//! leaves, so an old number finds nothing; the epoch grows in a forked child, whose table begins empty.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use thalweg_queue::quiet::lock;

use crate::call::{CallCore, CallRef};
use crate::code::{Code, Failure};
use crate::completion::Port;
use crate::instance::Instance;
use crate::resource::Resource;
use crate::stream::{Kept, StreamCore, UpCore};

/// What a handle can name.
#[derive(Clone)]
pub enum Object {
    /// A completion queue.
    Port(Arc<Port>),
    /// A client's instance of a service.
    Client(Arc<Instance>),
    /// A call that has not ended.
    Call(CallRef),
    /// A stream's reading end.
    Stream(Arc<StreamCore>),
    /// An object of the service.
    Resource(Resource),
    /// The memory of a batch.
    Kept(Arc<Kept>),
    /// The end of a stream of the caller's that a service is to read.
    Upstream(Arc<UpCore>),
    /// The end of it that the caller writes.
    UpWriter(Arc<UpCore>),
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind())
    }
}

impl Object {
    /// For messages: `a port`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Port(_) => "a port",
            Self::Client(_) => "a client",
            Self::Call(_) => "a call",
            Self::Stream(_) => "a stream",
            Self::Resource(_) => "a resource",
            Self::Kept(_) => "a kept batch",
            Self::Upstream(_) => "a stream for a service",
            Self::UpWriter(_) => "a stream's writer",
        }
    }
}

/// Slots in a chunk; chunks are made as they are needed and never move.
const CHUNK: usize = 1024;
/// The index has 24 bits.
const INDEX: u32 = 0x00ff_ffff;
const CHUNKS: usize = (1 << 24) / CHUNK;

/// What lies in a slot.
#[derive(Default)]
enum Held {
    #[default]
    Nothing,
    Object(Object),
    /// A client's place for calls, for one after the other: its [`Life`](crate::life::Life) has the generation.
    Calls(Arc<CallCore>),
}

#[derive(Default)]
struct Slot {
    generation: u32,
    held: Held,
}

type Chunk = Box<[Mutex<Slot>]>;

struct Table {
    made_in: u32,
    chunks: Box<[OnceLock<Chunk>]>,
    free: Mutex<Free>,
}

#[derive(Default)]
struct Free {
    indices: Vec<u32>,
    used: u32,
}

static TABLE: AtomicPtr<Table> = AtomicPtr::new(std::ptr::null_mut());

/// Grows by one in every forked child.
pub fn epoch() -> u32 {
    thalweg_runtime::epoch()
}

fn table() -> &'static Table {
    let known = TABLE.load(Ordering::Acquire);
    // SAFETY: tables are leaked: what was stored here lives for ever.
    match unsafe { known.as_ref() } {
        Some(table) if table.made_in == epoch() => table,
        _ => new_table(known),
    }
}

/// At the first use, and at the first in a forked child: the parent's table may be locked by a thread that does not exist
/// here, so it is left alone.
#[cold]
fn new_table(known: *mut Table) -> &'static Table {
    thalweg_runtime::watch_forks();
    let fresh = Box::into_raw(Box::new(Table {
        made_in: epoch(),
        chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
        free: Mutex::default(),
    }));
    match TABLE.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: it is leaked.
        Ok(_) => unsafe { &*fresh },
        Err(other) => {
            // SAFETY: nobody else has seen `fresh`.
            drop(unsafe { Box::from_raw(fresh) });
            // SAFETY: it was leaked, by who stored it.
            unsafe { &*other }
        }
    }
}

#[cfg(test)]
thread_local! {
    /// Slots that this thread looked at.
    pub(crate) static LOOKED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Table {
    fn slot(&self, index: u32) -> Option<&Mutex<Slot>> {
        #[cfg(test)]
        LOOKED.set(LOOKED.get() + 1);
        let chunk = self.chunks.get(index as usize / CHUNK)?.get()?;
        chunk.get(index as usize % CHUNK)
    }
}

/// The index of a slot that nobody has.
fn free_slot(table: &Table) -> Result<u32, Failure> {
    let index = {
        let mut free = lock(&table.free);
        match free.indices.pop() {
            Some(index) => index,
            None if (free.used as usize) < CHUNK * table.chunks.len() => {
                let index = free.used;
                free.used += 1;
                index
            }
            None => return Err(Code::Overloaded.because("16,777,216 handles are open")),
        }
    };
    table.chunks[index as usize / CHUNK]
        .get_or_init(|| (0..CHUNK).map(|_| Mutex::default()).collect());
    Ok(index)
}

/// The lower half of the handles of a slot.
fn name(table: &Table, index: u32) -> u32 {
    (table.made_in & 0xff) << 24 | index
}

/// Puts an object in and names it.
///
/// # Errors
/// `overloaded` with 16,777,216 in it.
pub fn insert(object: Object) -> Result<u64, Failure> {
    let table = table();
    let index = free_slot(table)?;
    let mut slot = lock(table.slot(index).expect("made above"));
    // Generation 0 is never used, so that no handle is 0.
    slot.generation = slot.generation.wrapping_add(1).max(1);
    slot.held = Held::Object(object);
    Ok(u64::from(slot.generation) << 32 | u64::from(name(table, index)))
}

/// Puts in a place for calls. `make` is given the lower half of their handles, and the generation that was the slot's last.
///
/// # Errors
/// As [`insert`].
pub(crate) fn insert_calls(
    make: impl FnOnce(u32, u32) -> Arc<CallCore>,
) -> Result<Arc<CallCore>, Failure> {
    let table = table();
    let index = free_slot(table)?;
    let slot = table.slot(index).expect("made above");
    let last = lock(slot).generation;
    let calls = make(name(table, index), last);
    lock(slot).held = Held::Calls(Arc::clone(&calls));
    Ok(calls)
}

/// Takes such a place out, after its last call.
pub(crate) fn remove_calls(calls: &CallCore) {
    let table = table();
    let index = calls.name() & INDEX;
    if let Some(slot) = table.slot(index) {
        let held = {
            let mut slot = lock(slot);
            slot.generation = calls.life.generation();
            std::mem::take(&mut slot.held)
        };
        drop(held);
        lock(&table.free).indices.push(index);
    }
}

fn slot_of(handle: u64) -> Result<&'static Mutex<Slot>, Failure> {
    if handle == 0 {
        return Err(Code::Argument.because("0 is no handle"));
    }
    let table = table();
    if handle >> 24 & 0xff != u64::from(table.made_in & 0xff) {
        return Err(Code::Forked.because("the handle was made before fork()"));
    }
    table
        .slot(handle as u32 & INDEX)
        .ok_or_else(|| Code::Argument.because("no such handle was ever given out"))
}

fn stale() -> Failure {
    Code::Stale.because("what the handle named is closed")
}

/// What a handle names.
///
/// # Errors
/// `argument`, `stale`, `forked`.
pub fn find(handle: u64) -> Result<Object, Failure> {
    let generation = (handle >> 32) as u32;
    let slot = lock(slot_of(handle)?);
    match &slot.held {
        Held::Object(object) if slot.generation == generation => Ok(object.clone()),
        Held::Calls(calls) => CallRef::enter(calls, generation)
            .map(Object::Call)
            .ok_or_else(stale),
        _ => Err(stale()),
    }
}

/// The place of a call, which may have ended, and the call's generation there.
pub(crate) fn find_calls(handle: u64) -> Option<(Arc<CallCore>, u32)> {
    let slot = lock(slot_of(handle).ok()?);
    match &slot.held {
        Held::Calls(calls) => Some((Arc::clone(calls), (handle >> 32) as u32)),
        _ => None,
    }
}

/// Takes an object out; from now on the handle is stale. A call stays there until it ends.
///
/// # Errors
/// As [`find`].
pub fn remove(handle: u64) -> Result<Object, Failure> {
    let object = {
        let mut slot = lock(slot_of(handle)?);
        match std::mem::take(&mut slot.held) {
            Held::Object(object) if slot.generation == (handle >> 32) as u32 => object,
            other => {
                slot.held = other;
                drop(slot);
                return match find(handle)? {
                    call @ Object::Call(_) => Ok(call),
                    _ => Err(stale()),
                };
            }
        }
    };
    lock(&table().free).indices.push(handle as u32 & INDEX);
    Ok(object)
}

/// Takes out whatever a handle names and closes it.
///
/// # Errors
/// As [`find`].
pub fn close_handle(handle: u64) -> Result<(), Failure> {
    match remove(handle)? {
        Object::Port(port) => port.close(),
        Object::Client(instance) => instance.close(),
        Object::Call(call) => call.cancel(),
        Object::Stream(stream) => stream.close(),
        Object::Resource(resource) => drop(resource),
        Object::Kept(kept) => drop(kept),
        Object::Upstream(stream) => stream.close(),
        Object::UpWriter(stream) => stream.abandon(),
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{
        CHUNK, Mutex, Object, OnceLock, Table, close_handle, find, free_slot, insert, lock, remove,
    };
    use crate::code::Code;
    use crate::completion::Port;

    #[test]
    fn a_closed_handle_is_stale_also_when_its_slot_is_used_again() {
        let port = || Object::Port(Port::open(4).unwrap());
        let first = insert(port()).unwrap();
        close_handle(first).unwrap();
        let others: Vec<u64> = (0..8).map(|_| insert(port()).unwrap()).collect();
        assert_eq!(find(first).unwrap_err().code, Code::Stale);
        assert_eq!(remove(first).unwrap_err().code, Code::Stale);
        for other in others {
            assert!(find(other).is_ok());
            close_handle(other).unwrap();
        }
    }

    #[test]
    fn a_full_table_takes_one_for_each_that_leaves() {
        let table = Table {
            made_in: 0,
            chunks: (0..2).map(|_| OnceLock::new()).collect(),
            free: Mutex::default(),
        };
        let all: Vec<u32> = (0..2 * CHUNK).map(|_| free_slot(&table).unwrap()).collect();
        for turn in 0..10_000 {
            assert_eq!(free_slot(&table).unwrap_err().code, Code::Overloaded);
            let leaves = all[turn * 7 % all.len()];
            lock(&table.free).indices.push(leaves);
            assert_eq!(free_slot(&table).unwrap(), leaves);
        }
    }

    #[test]
    fn numbers_that_were_never_given_out_are_refused() {
        assert_eq!(find(0).unwrap_err().code, Code::Argument);
        assert_eq!(
            find(1 << 32 | 0x00ff_fff0).unwrap_err().code,
            Code::Argument
        );
        assert_eq!(find(u64::MAX).unwrap_err().code, Code::Forked);
    }
}
