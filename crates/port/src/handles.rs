//! The table of the handles that hosts hold.
//!
//! A handle is `generation u32 | index u32`. The index selects a slot.
//!
//! 1. The generation of a slot grows with each object that the slot receives. A slot with the last
//!    generation is retired, so no two objects of a process ever have the same handle.
//! 2. A forked child begins a new table. Its first index is greater than all indices that the
//!    parent had allocated. A handle from before the fork therefore has a smaller index and is
//!    refused as `forked`, however deeply forks are nested.
//! 3. Free slots are linked through the slots themselves, first in, first out. Freeing a slot
//!    allocates no memory.
//! 4. Memory may be allocated while the lock of the free list is held. The lock of the list and the
//!    lock of a slot are never held together.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use thalweg_queue::no_preempt::lock;

use crate::call::{CallCore, CallRef};
use crate::code::{Code, Failure, no_memory};
use crate::completion::Outcome;
use crate::instance::Instance;
use crate::port::Port;
use crate::resource::Resource;
use crate::stream::{KeptBatch, StreamCore, UpstreamCore};

/// What a handle can refer to.
#[derive(Clone)]
pub enum Object {
    /// A completion queue.
    Port(Arc<Port>),
    /// A client's instance of a service.
    Client(Arc<Instance>),
    /// A call that has not ended.
    Call(CallRef),
    /// The reading end of a stream.
    Stream(Arc<StreamCore>),
    /// A resource: an object of the service.
    Resource(Resource),
    /// The memory of a batch.
    KeptBatch(Arc<KeptBatch>),
    /// The reading end of a stream that the caller sends to a service.
    Upstream(Arc<UpstreamCore>),
    /// The caller's writing end of such a stream.
    UpstreamWriter(Arc<UpstreamCore>),
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind())
    }
}

impl Object {
    /// The kind of object for error messages: `a port`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Port(_) => "a port",
            Self::Client(_) => "a client",
            Self::Call(_) => "a call",
            Self::Stream(_) => "a stream",
            Self::Resource(_) => "a resource",
            Self::KeptBatch(_) => "a kept batch",
            Self::Upstream(_) => "a stream for a service",
            Self::UpstreamWriter(_) => "a stream's writer",
        }
    }
}

/// Slots in a chunk. Chunks are allocated on demand and never move.
const SLOTS_PER_CHUNK: usize = 1024;
/// Maximum number of open handles: 2^24.
const MAX_HANDLES: usize = 1 << 24;
/// An index that no slot has.
const NONE: u32 = u32::MAX;

/// The contents of a slot.
#[derive(Default)]
enum SlotContent {
    #[default]
    Nothing,
    Object(Object),
    /// The memory of a client's successive calls. Its [`OpenState`](crate::open_state::OpenState)
    /// holds the generation.
    Calls(Arc<CallCore>),
    /// A completion that a host has reaped and not released.
    Completion(Box<Outcome>),
    /// A call that foreign code serves and has not answered.
    Incoming(Box<Outcome>),
}

/// What is lent by number to code that cannot own it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lent {
    Completion,
    Incoming,
}

impl SlotContent {
    fn lent(kind: Lent, outcome: Box<Outcome>) -> Self {
        match kind {
            Lent::Completion => Self::Completion(outcome),
            Lent::Incoming => Self::Incoming(outcome),
        }
    }
}

#[derive(Default)]
struct SlotState {
    generation: u32,
    entry: SlotContent,
}

struct Slot {
    state: Mutex<SlotState>,
    /// The next free slot. Protected by the lock of the free list.
    next: AtomicU32,
}

type Chunk = Box<[Slot]>;

struct Table {
    epoch: u64,
    /// The index of the first slot: a multiple of [`SLOTS_PER_CHUNK`].
    first: u32,
    /// Number of allocated indices, counted from `first`. It changes under the lock of the free
    /// list. A forked child reads it without the lock.
    used: AtomicU32,
    chunks: Box<[OnceLock<Chunk>]>,
    free: Mutex<Free>,
}

/// Head and tail of the list of free slots.
struct Free {
    first: u32,
    last: u32,
}

static TABLE: AtomicPtr<Table> = AtomicPtr::new(std::ptr::null_mut());

/// A number that grows by one in every forked child.
pub fn epoch() -> u64 {
    thalweg_runtime::epoch()
}

/// This process's table, if it already exists.
fn current_table() -> Option<&'static Table> {
    let known = TABLE.load(Ordering::Acquire);
    // SAFETY: tables are leaked, so a table that was stored here lives for ever.
    let table = unsafe { known.as_ref() };
    table.filter(|table| table.epoch == epoch())
}

#[inline]
fn table() -> Result<&'static Table, Failure> {
    match current_table() {
        Some(table) => Ok(table),
        None => new_table(),
    }
}

/// Creates the table at the first use, and at the first use in a forked child. The parent's table
/// may be locked by a thread that does not exist in the child, so it is left alone.
#[cold]
fn new_table() -> Result<&'static Table, Failure> {
    thalweg_runtime::watch_forks();
    let known = TABLE.load(Ordering::Acquire);
    // SAFETY: as in `current_table`.
    let first = match unsafe { known.as_ref() } {
        Some(table) if table.epoch == epoch() => return Ok(table),
        Some(parent) => parent.end(),
        None => 0,
    };
    let fresh = Box::into_raw(Box::new(Table::new(first, MAX_HANDLES)?));
    match TABLE.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: it is leaked.
        Ok(_) => Ok(unsafe { &*fresh }),
        Err(other) => {
            // SAFETY: `fresh` was not shared with another thread.
            drop(unsafe { Box::from_raw(fresh) });
            // SAFETY: the thread that stored it leaked it.
            Ok(unsafe { &*other })
        }
    }
}

#[cfg(test)]
thread_local! {
    /// Number of slots that this thread looked up.
    pub(crate) static LOOKUPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Table {
    /// A table for `capacity` handles with indices from `first` on, or for the indices that are
    /// left.
    fn new(first: u64, capacity: usize) -> Result<Self, Failure> {
        let left = u64::from(NONE).saturating_sub(first) / SLOTS_PER_CHUNK as u64;
        let chunks = (capacity / SLOTS_PER_CHUNK).min(left as usize);
        let mut chunk_list = Vec::new();
        let bytes = chunks * size_of::<OnceLock<Chunk>>();
        chunk_list
            .try_reserve_exact(chunks)
            .map_err(|_| no_memory(bytes))?;
        chunk_list.extend((0..chunks).map(|_| OnceLock::new()));
        Ok(Self {
            epoch: epoch(),
            // Without a slot the index does not matter.
            first: u32::try_from(first).unwrap_or(NONE),
            used: AtomicU32::new(0),
            chunks: chunk_list.into_boxed_slice(),
            free: Mutex::new(Free {
                first: NONE,
                last: NONE,
            }),
        })
    }

    /// Rule 2: the first index of a child's table.
    fn end(&self) -> u64 {
        let used = u64::from(self.used.load(Ordering::Relaxed));
        u64::from(self.first) + used.next_multiple_of(SLOTS_PER_CHUNK as u64)
    }

    fn slot(&self, index: u32) -> Option<&Slot> {
        #[cfg(test)]
        LOOKUPS.set(LOOKUPS.get() + 1);
        // An index below the first one wraps to a value beyond the last chunk, because there are no
        // more chunks than indices from the first one on.
        let at = index.wrapping_sub(self.first) as usize;
        self.chunks
            .get(at / SLOTS_PER_CHUNK)?
            .get()?
            .get(at % SLOTS_PER_CHUNK)
    }

    /// A free slot.
    fn allocate(&self) -> Result<(u32, &Slot), Failure> {
        let mut free = lock(&self.free);
        if let Some(slot) = self.slot(free.first) {
            let index = free.first;
            free.first = slot.next.load(Ordering::Relaxed);
            return Ok((index, slot));
        }
        let used = self.used.load(Ordering::Relaxed);
        let Some(chunk) = self.chunks.get(used as usize / SLOTS_PER_CHUNK) else {
            return Err(Code::Overloaded.because(format!(
                "{} handles are open or retired",
                self.chunks.len() * SLOTS_PER_CHUNK
            )));
        };
        if chunk.get().is_none() {
            // No other thread sets it while the lock is held.
            let _ = chunk.set(new_chunk()?);
        }
        self.used.store(used + 1, Ordering::Relaxed);
        let index = self.first + used;
        let slot = self.slot(index).expect("the chunk was allocated");
        Ok((index, slot))
    }

    /// Rules 1 and 3. Called after the object of `generation` was removed from the slot.
    fn free(&self, index: u32, slot: &Slot, generation: u32) {
        if generation == u32::MAX {
            return;
        }
        let mut free = lock(&self.free);
        slot.next.store(NONE, Ordering::Relaxed);
        if free.first == NONE {
            free.first = index;
        } else if let Some(last) = self.slot(free.last) {
            last.next.store(index, Ordering::Relaxed);
        }
        free.last = index;
    }
}

fn new_chunk() -> Result<Chunk, Failure> {
    let mut slots = Vec::new();
    let reserved = slots.try_reserve_exact(SLOTS_PER_CHUNK);
    reserved.map_err(|_| no_memory(SLOTS_PER_CHUNK * size_of::<Slot>()))?;
    slots.extend((0..SLOTS_PER_CHUNK).map(|_| Slot {
        state: Mutex::default(),
        next: AtomicU32::new(NONE),
    }));
    Ok(slots.into_boxed_slice())
}

fn handle_of(generation: u32, index: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(index)
}

fn generation_of(handle: u64) -> u32 {
    (handle >> 32) as u32
}

/// Inserts an object and returns its handle.
///
/// # Errors
/// `overloaded`: 16,777,216 handles are open, or there is not enough memory for more.
pub fn insert(object: Object) -> Result<u64, Failure> {
    let (index, slot) = table()?.allocate()?;
    let mut state = lock(&slot.state);
    // Rule 1. Generation 0 is never used, so no handle is 0.
    state.generation += 1;
    state.entry = SlotContent::Object(object);
    Ok(handle_of(state.generation, index))
}

/// Inserts the memory for calls. `make` receives the lower half of their handles and the last
/// generation of the slot.
///
/// # Errors
/// The errors of [`insert`] and of `make`.
pub(crate) fn insert_call_core(
    make: impl FnOnce(u32, u32) -> Result<Arc<CallCore>, Failure>,
) -> Result<Arc<CallCore>, Failure> {
    let table = table()?;
    let (index, slot) = table.allocate()?;
    let last = lock(&slot.state).generation;
    let calls = make(index, last).inspect_err(|_| table.free(index, slot, last))?;
    lock(&slot.state).entry = SlotContent::Calls(Arc::clone(&calls));
    Ok(calls)
}

/// Removes the memory for calls after its last call.
pub(crate) fn remove_call_core(calls: &CallCore) {
    let Some(table) = current_table() else {
        return;
    };
    let index = calls.handle_index();
    if let Some(slot) = table.slot(index) {
        let generation = calls.open_state.generation();
        let entry = {
            let mut state = lock(&slot.state);
            state.generation = generation;
            std::mem::take(&mut state.entry)
        };
        drop(entry);
        table.free(index, slot, generation);
    }
}

/// The table and the slot of a handle.
fn locate(handle: u64) -> Result<(&'static Table, &'static Slot), Failure> {
    if handle == 0 {
        return Err(Code::Argument.because("0 is not a handle"));
    }
    let (table, index) = (table()?, handle as u32);
    match table.slot(index) {
        Some(slot) => Ok((table, slot)),
        None => Err(unknown_handle(table, index)),
    }
}

fn find_slot(handle: u64) -> Result<&'static Slot, Failure> {
    locate(handle).map(|(_, slot)| slot)
}

#[cold]
fn unknown_handle(table: &Table, index: u32) -> Failure {
    if index < table.first {
        Code::Forked.because("the handle was made before fork()")
    } else {
        Code::Argument.because("no such handle was ever issued")
    }
}

fn stale() -> Failure {
    Code::Stale.because("the object of this handle is closed")
}

/// The object of a handle.
///
/// # Errors
/// `argument`, `stale`, `forked`.
pub fn find(handle: u64) -> Result<Object, Failure> {
    let generation = generation_of(handle);
    let state = lock(&find_slot(handle)?.state);
    match &state.entry {
        SlotContent::Object(object) if state.generation == generation => Ok(object.clone()),
        SlotContent::Calls(calls) => CallRef::enter(calls, generation)
            .map(Object::Call)
            .ok_or_else(stale),
        _ => Err(stale()),
    }
}

/// The memory of a call, which may have ended, and the call's generation.
pub(crate) fn find_call_core(handle: u64) -> Option<(Arc<CallCore>, u32)> {
    let state = lock(&find_slot(handle).ok()?.state);
    match &state.entry {
        SlotContent::Calls(calls) => Some((Arc::clone(calls), generation_of(handle))),
        _ => None,
    }
}

/// Removes an object. The handle is stale afterwards. A call stays in the table until it ends.
///
/// # Errors
/// The errors of [`find`].
pub fn remove(handle: u64) -> Result<Object, Failure> {
    let generation = generation_of(handle);
    let (table, slot) = locate(handle)?;
    let object = {
        let mut state = lock(&slot.state);
        match std::mem::take(&mut state.entry) {
            SlotContent::Object(object) if state.generation == generation => object,
            other => {
                state.entry = other;
                drop(state);
                return match find(handle)? {
                    call @ Object::Call(_) => Ok(call),
                    _ => Err(stale()),
                };
            }
        }
    };
    table.free(handle as u32, slot, generation);
    Ok(object)
}

/// Removes the object of a handle and closes it.
///
/// # Errors
/// The errors of [`find`].
pub fn close_handle(handle: u64) -> Result<(), Failure> {
    match remove(handle)? {
        Object::Port(port) => port.close(),
        Object::Client(instance) => instance.close(),
        Object::Call(call) => call.cancel(),
        Object::Stream(stream) => stream.close(),
        Object::Resource(resource) => drop(resource),
        Object::KeptBatch(batch) => drop(batch),
        Object::Upstream(stream) => stream.close(),
        Object::UpstreamWriter(stream) => stream.abandon(),
    }
    Ok(())
}

/// Numbers of open handles, by the kind of object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandleCounts {
    /// Ports.
    pub ports: u64,
    /// Clients.
    pub clients: u64,
    /// Calls that have not ended.
    pub calls: u64,
    /// Calls of these clients that their service has not begun.
    pub queued_calls: u64,
    /// Streams to read, and both ends of streams that are parameters.
    pub streams: u64,
    /// Resources.
    pub resources: u64,
    /// Retained batches.
    pub batches: u64,
    /// Completions that were reaped and not released.
    pub completions: u64,
}

/// Counts the open handles. The numbers are not those of one moment, because handles may be opened
/// and closed meanwhile. It looks at every slot of the table, of which there are as many as handles
/// have been open at the same time.
///
/// ```
/// use thalweg_port::{Object, Port, close_handle, handle_counts, insert};
///
/// let port = insert(Object::Port(Port::open(4)?))?;
/// assert!(handle_counts().ports >= 1);
/// close_handle(port)?;
/// # Ok::<(), thalweg_port::Failure>(())
/// ```
pub fn handle_counts() -> HandleCounts {
    let mut counts = HandleCounts::default();
    let Some(table) = current_table() else {
        return counts;
    };
    for used in 0..table.used.load(Ordering::Relaxed) {
        let Some(slot) = table.slot(table.first + used) else {
            continue;
        };
        let client = match &lock(&slot.state).entry {
            SlotContent::Object(Object::Client(client)) => Some(Arc::clone(client)),
            entry => {
                entry.count(&mut counts);
                None
            }
        };
        // Not under the slot's lock.
        if let Some(client) = client {
            counts.clients += 1;
            counts.queued_calls += client.queued_calls() as u64;
        }
    }
    counts
}

impl SlotContent {
    /// Adds the content, which is not a client.
    fn count(&self, counts: &mut HandleCounts) {
        let number = match self {
            Self::Nothing | Self::Object(Object::Client(_) | Object::Call(_)) => return,
            Self::Calls(call) if call.has_ended() => return,
            Self::Calls(_) => &mut counts.calls,
            Self::Completion(_) => &mut counts.completions,
            // Its call is counted until it ends.
            Self::Incoming(_) => return,
            Self::Object(Object::Port(_)) => &mut counts.ports,
            Self::Object(Object::Stream(_) | Object::Upstream(_) | Object::UpstreamWriter(_)) => {
                &mut counts.streams
            }
            Self::Object(Object::Resource(_)) => &mut counts.resources,
            Self::Object(Object::KeptBatch(_)) => &mut counts.batches,
        };
        *number += 1;
    }
}

/// The slot that an [`Outcome`] reserves for the time when a host holds it. The outcome keeps the
/// slot as long as its memory is reused, so that lending it allocates and frees no slot.
#[derive(Debug)]
pub(crate) struct LentSlot(u32);

impl LentSlot {
    pub(crate) const fn none() -> Self {
        Self(NONE)
    }
}

impl Drop for LentSlot {
    fn drop(&mut self) {
        // In a forked child the slot belongs to the parent.
        if self.0 != NONE
            && let Some(table) = current_table()
            && let Some(slot) = table.slot(self.0)
        {
            let generation = lock(&slot.state).generation;
            table.free(self.0, slot, generation);
        }
    }
}

/// Inserts an outcome that foreign code holds until [`take_back`].
///
/// # Errors
/// The errors of [`insert`]. The outcome is returned.
#[inline]
pub(crate) fn lend(kind: Lent, mut outcome: Box<Outcome>) -> Result<u64, (Box<Outcome>, Failure)> {
    let table = match table() {
        Ok(table) => table,
        Err(failure) => return Err((outcome, failure)),
    };
    let slot = match table.slot(outcome.slot.0) {
        Some(slot) => slot,
        None => match table.allocate() {
            Ok((index, slot)) => {
                // A slot from before a fork belongs to the parent, so it is overwritten.
                outcome.slot.0 = index;
                slot
            }
            Err(failure) => return Err((outcome, failure)),
        },
    };
    let index = outcome.slot.0;
    let mut state = lock(&slot.state);
    state.generation += 1;
    state.entry = SlotContent::lent(kind, outcome);
    Ok(handle_of(state.generation, index))
}

/// Calls `f` with an outcome that foreign code holds.
///
/// # Errors
/// `stale`: it was taken back. `argument`, `forked`.
pub(crate) fn with_lent<R>(
    kind: Lent,
    number: u64,
    f: impl FnOnce(&mut Outcome) -> R,
) -> Result<R, Failure> {
    let mut state = lock(&find_slot(number)?.state);
    let is_current = state.generation == generation_of(number);
    match (&mut state.entry, kind) {
        (SlotContent::Completion(outcome), Lent::Completion)
        | (SlotContent::Incoming(outcome), Lent::Incoming)
            if is_current =>
        {
            Ok(f(outcome))
        }
        _ => Err(released()),
    }
}

/// Takes back an outcome from foreign code. Succeeds once.
///
/// # Errors
/// The errors of [`with_lent`].
#[inline]
pub(crate) fn take_back(kind: Lent, number: u64) -> Result<Box<Outcome>, Failure> {
    let generation = generation_of(number);
    let mut outcome = {
        let mut state = lock(&find_slot(number)?.state);
        let is_current = state.generation == generation;
        match (std::mem::take(&mut state.entry), kind) {
            (SlotContent::Completion(outcome), Lent::Completion)
            | (SlotContent::Incoming(outcome), Lent::Incoming)
                if is_current =>
            {
                outcome
            }
            (other, _) => {
                state.entry = other;
                return Err(released());
            }
        }
    };
    if generation == u32::MAX {
        // Rule 1: the outcome gets another slot next time.
        outcome.slot = LentSlot::none();
    }
    Ok(outcome)
}

fn released() -> Failure {
    Code::Stale.because("it was released")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{
        Lent, Object, Outcome, SLOTS_PER_CHUNK, Table, close_handle, find, find_slot, insert, lend,
        lock, remove, take_back, with_lent,
    };
    use crate::code::Code;
    use crate::port::Port;

    #[test]
    fn closed_handle_stays_stale_after_its_slot_is_reused() {
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
    fn handle_after_its_slot_is_used_up_stays_stale() {
        let port = || Object::Port(Port::open(1).unwrap());
        let first = insert(port()).unwrap();
        close_handle(first).unwrap();
        // As if the slot had been used 2^32 - 3 times.
        lock(&find_slot(first).unwrap().state).generation = u32::MAX - 2;
        let mut last = Vec::new();
        // Free slots are used in turn, so each is reused after `SLOTS_PER_CHUNK` others. That takes
        // Miri ten minutes, so it tries only a few.
        let uses = if cfg!(miri) { 16 } else { 3 * SLOTS_PER_CHUNK };
        for _ in 0..uses {
            let next = insert(port()).unwrap();
            assert_ne!(next, first, "a number comes again");
            assert_eq!(find(first).unwrap_err().code, Code::Stale);
            close_handle(next).unwrap();
            if next as u32 == first as u32 {
                last.push(next);
            }
        }
        assert!(
            last.iter()
                .all(|handle| find(*handle).unwrap_err().code == Code::Stale)
        );
    }

    #[test]
    fn full_table_accepts_one_object_per_freed_slot() {
        let table = Table::new(0, 2 * SLOTS_PER_CHUNK).unwrap();
        let take = || table.allocate().map(|(index, _)| index);
        let all: Vec<u32> = (0..2 * SLOTS_PER_CHUNK).map(|_| take().unwrap()).collect();
        // Each round takes Miri milliseconds.
        let turns = if cfg!(miri) { 100 } else { 10_000 };
        for callback_slot in 0..turns {
            assert_eq!(take().unwrap_err().code, Code::Overloaded);
            let leaves = all[callback_slot * 7 % all.len()];
            table.free(leaves, table.slot(leaves).unwrap(), 1);
            assert_eq!(take().unwrap(), leaves);
        }
    }

    #[test]
    fn slot_given_back_is_used_after_those_before_it() {
        let table = Table::new(0, SLOTS_PER_CHUNK).unwrap();
        let take = || table.allocate().map(|(index, _)| index).unwrap();
        let all: Vec<u32> = (0..4).map(|_| take()).collect();
        for index in &all {
            table.free(*index, table.slot(*index).unwrap(), 1);
        }
        assert_eq!((0..4).map(|_| take()).collect::<Vec<_>>(), all);
        assert_eq!(take(), 4);
    }

    #[test]
    fn table_at_the_last_index_refuses_more_and_gives_none_out_twice() {
        let first = u64::from(u32::MAX) - SLOTS_PER_CHUNK as u64;
        let table =
            Table::new(first - first % SLOTS_PER_CHUNK as u64, 4 * SLOTS_PER_CHUNK).unwrap();
        let all: Vec<u32> = std::iter::from_fn(|| Some(table.allocate().ok()?.0)).collect();
        assert_eq!(all.len(), SLOTS_PER_CHUNK);
        assert!(all.is_sorted() && table.slot(0).is_none());
        let child = Table::new(table.end(), SLOTS_PER_CHUNK).unwrap();
        assert_eq!(
            child.allocate().map(|_| ()).unwrap_err().code,
            Code::Overloaded
        );
        assert!(all.iter().all(|index| child.slot(*index).is_none()));
    }

    fn completion() -> Box<Outcome> {
        let mut outcome = Outcome::new();
        outcome.data.extend_from_slice(b"result");
        outcome
    }

    #[test]
    fn completion_taken_back_twice_is_stale() {
        let number = lend(Lent::Completion, completion()).unwrap();
        assert_eq!(
            with_lent(Lent::Completion, number, |outcome| outcome.data.len()).unwrap(),
            6
        );
        assert_eq!(find(number).unwrap_err().code, Code::Stale);
        assert_eq!(close_handle(number).unwrap_err().code, Code::Stale);
        let outcome = take_back(Lent::Completion, number).unwrap();
        assert_eq!(outcome.data, b"result");
        assert_eq!(
            take_back(Lent::Completion, number).unwrap_err().code,
            Code::Stale
        );
        // The memory is reused for another completion.
        let next = lend(Lent::Completion, outcome).unwrap();
        assert_eq!(next as u32, number as u32);
        assert_eq!(
            take_back(Lent::Completion, number).unwrap_err().code,
            Code::Stale
        );
        assert!(with_lent(Lent::Completion, number, |_| ()).is_err());
        // It is a completion, and not a call to answer.
        assert!(with_lent(Lent::Incoming, next, |_| ()).is_err());
        assert!(take_back(Lent::Incoming, next).is_err());
        drop(take_back(Lent::Completion, next).unwrap());
    }

    #[test]
    fn completion_after_its_slot_is_used_up_has_another_one() {
        let first = lend(Lent::Completion, completion()).unwrap();
        lock(&find_slot(first).unwrap().state).generation = u32::MAX;
        let last = u64::from(u32::MAX) << 32 | u64::from(first as u32);
        let outcome = take_back(Lent::Completion, last).unwrap();
        let next = lend(Lent::Completion, outcome).unwrap();
        assert_ne!(next as u32, first as u32);
        assert!(
            take_back(Lent::Completion, first).is_err()
                && take_back(Lent::Completion, last).is_err()
        );
        drop(take_back(Lent::Completion, next).unwrap());
    }

    #[test]
    fn handle_that_was_never_issued_is_refused() {
        assert_eq!(find(0).unwrap_err().code, Code::Argument);
        assert_eq!(
            find(1 << 32 | 0x00ff_fff0).unwrap_err().code,
            Code::Argument
        );
        assert_eq!(find(u64::MAX).unwrap_err().code, Code::Argument);
    }
}
