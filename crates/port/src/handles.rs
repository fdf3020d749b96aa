//! The table of the handles that hosts hold. It knows objects only by the traits [`HandleObject`] and
//! [`Lendable`].
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
//! 4. All objects of one kind have the same type.
//! 5. Memory may be allocated while the lock of the free list is held. The lock of the list and the
//!    lock of a slot are never held together.

use std::any::Any;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use thalweg_queue::no_preempt::lock;

use crate::code::{Code, Failure, no_memory};

/// What a handle refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Port,
    Client,
    Call,
    Stream,
    Resource,
    KeptBatch,
    Upstream,
    UpstreamWriter,
    RecordWriter,
    GuestPort,
    ElementReader,
    ImportCall,
}

impl Kind {
    /// The kind for error messages: `a port`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Port => "a port",
            Self::Client => "a client",
            Self::Call => "a call",
            Self::Stream => "a stream",
            Self::Resource => "a resource",
            Self::KeptBatch => "a kept batch",
            Self::Upstream => "a stream for a service",
            Self::UpstreamWriter => "a stream's writer",
            Self::RecordWriter => "a guest's writer of a stream",
            Self::GuestPort => "a guest's port",
            Self::ElementReader => "a guest's reader of a stream",
            Self::ImportCall => "a guest's call of its host",
        }
    }
}

/// An object that a handle can refer to.
///
/// # Safety
/// For rule 4: no kind belongs to two types.
pub(crate) unsafe trait HandleObject: Send + Sync + 'static {
    /// Whether objects of this kind have this type.
    fn has_kind(kind: Kind) -> bool
    where
        Self: Sized;

    /// Closes the object of a handle of this kind and generation.
    fn close_handle(self: Arc<Self>, kind: Kind, generation: u32);

    /// For memory that is used again with another generation each time, and counts its generations
    /// itself: whether this one is running. The table counts them for all other objects.
    fn is_running(&self, generation: u32) -> bool {
        let _ = generation;
        true
    }

    /// Called when a progress notice of this generation was taken out of its port. Returns whether
    /// the notice's slot is free.
    fn on_notice_reaped(&self, generation: u32) -> bool {
        let _ = generation;
        true
    }

    /// Called when the port has closed whose host was to answer this generation.
    fn on_answerer_closed(self: Arc<Self>, generation: u32) {
        let _ = generation;
    }
}

/// An object in the table.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    object: Arc<dyn HandleObject>,
}

impl Entry {
    /// The object, if it is of this kind.
    ///
    /// # Errors
    /// The kind of the object.
    #[inline]
    pub(crate) fn get<T: HandleObject>(&self, kind: Kind) -> Result<Arc<T>, Kind> {
        if self.kind != kind || !T::has_kind(kind) {
            return Err(self.kind);
        }
        let object: *const T = Arc::as_ptr(&self.object).cast();
        // SAFETY: rule 4. `object` is borrowed, so there is a reference to count from.
        unsafe {
            Arc::increment_strong_count(object);
            Ok(Arc::from_raw(object))
        }
    }

    pub(crate) fn into_object(self) -> Arc<dyn HandleObject> {
        self.object
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
    Object(Entry),
    Lent(Lent, Box<dyn Any + Send>),
}

/// What is lent by number to code that cannot own it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lent {
    /// A completion that a host has reaped and not released.
    Completion,
    /// A call that foreign code serves and has not answered.
    Incoming,
}

/// A value that can be lent by number.
pub(crate) trait Lendable: Any + Send {
    fn slot(&mut self) -> &mut LentSlot;
}

#[derive(Default)]
struct SlotState {
    generation: u32,
    entry: SlotContent,
}

impl SlotState {
    /// The object of this generation.
    #[inline]
    fn object(&self, generation: u32) -> Option<&Entry> {
        let SlotContent::Object(entry) = &self.entry else {
            return None;
        };
        let is_current = match entry.kind {
            Kind::Call => entry.object.is_running(generation),
            _ => self.generation == generation,
        };
        is_current.then_some(entry)
    }
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
#[inline(always)]
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

    #[inline(always)]
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

/// The generation of a handle.
pub(crate) fn generation_of(handle: u64) -> u32 {
    (handle >> 32) as u32
}

/// Inserts an object and returns its handle.
///
/// # Errors
/// `overloaded`: 16,777,216 handles are open, or there is not enough memory for more.
pub(crate) fn insert<T: HandleObject>(kind: Kind, object: Arc<T>) -> Result<u64, Failure> {
    // Rule 4.
    assert!(T::has_kind(kind), "{kind:?} is the kind of another type");
    let (index, slot) = table()?.allocate()?;
    let mut state = lock(&slot.state);
    // Rule 1. Generation 0 is never used, so no handle is 0.
    state.generation += 1;
    state.entry = SlotContent::Object(Entry { kind, object });
    Ok(handle_of(state.generation, index))
}

/// Inserts memory for calls. `make` receives the lower half of their handles and the last
/// generation of the slot.
///
/// # Errors
/// The errors of [`insert`] and of `make`.
pub(crate) fn insert_reused<T: HandleObject>(
    make: impl FnOnce(u32, u32) -> Result<Arc<T>, Failure>,
) -> Result<Arc<T>, Failure> {
    assert!(T::has_kind(Kind::Call), "calls have another type");
    let table = table()?;
    let (index, slot) = table.allocate()?;
    let last = lock(&slot.state).generation;
    let calls = make(index, last).inspect_err(|_| table.free(index, slot, last))?;
    lock(&slot.state).entry = SlotContent::Object(Entry {
        kind: Kind::Call,
        object: Arc::clone(&calls) as _,
    });
    Ok(calls)
}

/// Removes memory for calls after its last call. `index` is the lower half of their handles.
pub(crate) fn remove_reused(index: u32, generation: u32) {
    let Some(table) = current_table() else {
        return;
    };
    if let Some(slot) = table.slot(index) {
        let entry = {
            let mut state = lock(&slot.state);
            state.generation = generation;
            std::mem::take(&mut state.entry)
        };
        drop(entry);
        table.free(index, slot, generation);
    }
}

/// The slot of a handle. Generation 0 is never used, so 0 is the handle of no object.
#[inline(always)]
fn known_slot(handle: u64) -> Option<&'static Slot> {
    current_table()?.slot(handle as u32).filter(|_| handle != 0)
}

#[inline(always)]
fn find_slot(handle: u64) -> Result<&'static Slot, Failure> {
    known_slot(handle).ok_or_else(|| unknown_handle(handle))
}

#[cold]
#[inline(never)]
fn unknown_handle(handle: u64) -> Failure {
    if handle == 0 {
        return Code::Argument.because("0 is not a handle");
    }
    let table = match table() {
        Ok(table) => table,
        Err(failure) => return failure,
    };
    if (handle as u32) < table.first {
        Code::Forked.because("the handle was made before fork()")
    } else {
        Code::Argument.because("no such handle was ever issued")
    }
}

#[cold]
pub(crate) fn stale() -> Failure {
    Code::Stale.because("the object of this handle is closed")
}

/// Calls `f` with the object of a handle. `f` must not access the table, because the slot is
/// locked, and must not allocate memory, because the actor could be preempted there.
///
/// # Errors
/// `argument`, `stale`, `forked`. `stale` also if `f` returns `None`.
#[inline]
pub(crate) fn with<R>(handle: u64, f: impl FnOnce(&Entry) -> Option<R>) -> Result<R, Failure> {
    let slot = find_slot(handle)?;
    let found = {
        let state = slot.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.object(generation_of(handle)).and_then(f)
    };
    found.ok_or_else(stale)
}

/// The object of a handle, if it is of this kind.
///
/// # Errors
/// The errors of [`with`]. `argument`: the handle is that of another kind of object.
#[inline]
pub(crate) fn find_as<T: HandleObject>(handle: u64, kind: Kind) -> Result<Arc<T>, Failure> {
    if let Some(slot) = known_slot(handle) {
        let state = slot.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = state.object(generation_of(handle))
            && let Ok(object) = entry.get(kind)
        {
            return Ok(object);
        }
    }
    Err(not_found(handle, kind))
}

#[cold]
#[inline(never)]
fn not_found(handle: u64, wanted: Kind) -> Failure {
    match with(handle, |entry| Some(entry.kind)) {
        Ok(kind) => {
            let (is, wanted) = (kind.name(), wanted.name());
            Code::Argument.because(format!("handle {handle:#x} is {is}, not {wanted}"))
        }
        Err(failure) => failure,
    }
}

/// The object of a handle.
///
/// # Errors
/// The errors of [`with`].
pub(crate) fn find(handle: u64) -> Result<Entry, Failure> {
    with(handle, |entry| Some(entry.clone()))
}

/// The memory of a call, which may have ended, and the call's generation.
pub(crate) fn find_reused<T: HandleObject>(handle: u64) -> Option<(Arc<T>, u32)> {
    let state = lock(&find_slot(handle).ok()?.state);
    match &state.entry {
        SlotContent::Object(entry) => Some((entry.get(Kind::Call).ok()?, generation_of(handle))),
        _ => None,
    }
}

/// Like [`find_reused`], of an unknown type.
pub(crate) fn find_reused_object(handle: u64) -> Option<Arc<dyn HandleObject>> {
    match &lock(&find_slot(handle).ok()?.state).entry {
        SlotContent::Object(entry) => Some(Arc::clone(&entry.object)),
        _ => None,
    }
}

/// Removes an object. The handle is stale afterwards. A call stays in the table until it ends.
///
/// # Errors
/// The errors of [`with`].
pub(crate) fn remove(handle: u64) -> Result<Entry, Failure> {
    let generation = generation_of(handle);
    let (table, slot) = (table()?, find_slot(handle)?);
    let entry = {
        let mut state = lock(&slot.state);
        match state.object(generation) {
            None => return Err(stale()),
            Some(call) if call.kind == Kind::Call => return Ok(call.clone()),
            Some(_) => {}
        }
        match std::mem::take(&mut state.entry) {
            SlotContent::Object(entry) => entry,
            _ => return Err(stale()),
        }
    };
    table.free(handle as u32, slot, generation);
    Ok(entry)
}

/// Removes the object of a handle and closes it.
///
/// # Errors
/// The errors of [`find`](crate::find).
pub fn close_handle(handle: u64) -> Result<(), Failure> {
    let Entry { kind, object } = remove(handle)?;
    object.close_handle(kind, generation_of(handle));
    Ok(())
}

/// Something in the table.
pub(crate) enum Content<'a> {
    Object(&'a Entry),
    Lent(Lent),
}

/// Calls `f` for each slot that is in use. It must not access the table, because the slot is
/// locked. It looks at every slot of the table. Their number is the largest number of handles that
/// were open at the same time.
pub(crate) fn for_each(mut f: impl FnMut(Content<'_>)) {
    let Some(table) = current_table() else {
        return;
    };
    for used in 0..table.used.load(Ordering::Relaxed) {
        let Some(slot) = table.slot(table.first + used) else {
            continue;
        };
        match &lock(&slot.state).entry {
            SlotContent::Nothing => {}
            SlotContent::Object(entry) => f(Content::Object(entry)),
            SlotContent::Lent(kind, _) => f(Content::Lent(*kind)),
        }
    }
}

/// The slot that a [`Lendable`] value reserves for the time when foreign code holds it. The value
/// keeps the slot as long as its memory is reused, so that lending it allocates and frees no slot.
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

/// Inserts a value that foreign code holds until [`take_back`].
///
/// # Errors
/// The errors of [`insert`]. The value is returned.
#[inline]
pub(crate) fn lend<T: Lendable>(kind: Lent, mut value: Box<T>) -> Result<u64, (Box<T>, Failure)> {
    let table = match table() {
        Ok(table) => table,
        Err(failure) => return Err((value, failure)),
    };
    let slot = match table.slot(value.slot().0) {
        Some(slot) => slot,
        None => match table.allocate() {
            Ok((index, slot)) => {
                // A slot from before a fork belongs to the parent, so it is overwritten.
                value.slot().0 = index;
                slot
            }
            Err(failure) => return Err((value, failure)),
        },
    };
    let index = value.slot().0;
    let mut state = lock(&slot.state);
    state.generation += 1;
    state.entry = SlotContent::Lent(kind, value);
    Ok(handle_of(state.generation, index))
}

/// Calls `f` with a value that foreign code holds.
///
/// # Errors
/// `stale`: it was taken back. `argument`, `forked`.
pub(crate) fn with_lent<T: Lendable, R>(
    kind: Lent,
    number: u64,
    f: impl FnOnce(&mut T) -> R,
) -> Result<R, Failure> {
    let mut state = lock(&find_slot(number)?.state);
    let is_current = state.generation == generation_of(number);
    match &mut state.entry {
        SlotContent::Lent(lent, value) if is_current && *lent == kind => {
            value.downcast_mut().map(f).ok_or_else(released)
        }
        _ => Err(released()),
    }
}

/// Takes back a value from foreign code. Succeeds once.
///
/// # Errors
/// The errors of [`with_lent`].
#[inline]
pub(crate) fn take_back<T: Lendable>(kind: Lent, number: u64) -> Result<Box<T>, Failure> {
    let generation = generation_of(number);
    let value = {
        let mut state = lock(&find_slot(number)?.state);
        let is_current = state.generation == generation;
        match std::mem::take(&mut state.entry) {
            SlotContent::Lent(lent, value) if is_current && lent == kind => value,
            other => {
                state.entry = other;
                return Err(released());
            }
        }
    };
    let mut value: Box<T> = value.downcast().map_err(|_| released())?;
    if generation == u32::MAX {
        // Rule 1: the value gets another slot next time.
        *value.slot() = LentSlot::none();
    }
    Ok(value)
}

fn released() -> Failure {
    Code::Stale.because("it was released")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::{
        HandleObject, Kind, Lendable, Lent, LentSlot, SLOTS_PER_CHUNK, Table, close_handle, find,
        find_slot, insert, lend, lock, remove, take_back, with_lent,
    };
    use crate::code::{Code, Failure};

    struct Port;

    // SAFETY: these tests use no other ports.
    unsafe impl HandleObject for Port {
        fn has_kind(kind: Kind) -> bool {
            kind == Kind::Port
        }

        fn close_handle(self: Arc<Self>, _: Kind, _: u32) {}
    }

    fn code_of(stale: u64) -> Code {
        find(stale).map(drop).unwrap_err().code
    }

    fn insert_port() -> Result<u64, Failure> {
        insert(Kind::Port, Arc::new(Port))
    }

    #[test]
    fn closed_handle_stays_stale_after_its_slot_is_reused() {
        let first = insert_port().unwrap();
        close_handle(first).unwrap();
        let others: Vec<u64> = (0..8).map(|_| insert_port().unwrap()).collect();
        assert_eq!(code_of(first), Code::Stale);
        assert_eq!(remove(first).map(drop).unwrap_err().code, Code::Stale);
        for other in others {
            assert!(find(other).is_ok());
            close_handle(other).unwrap();
        }
    }

    #[test]
    fn handle_after_its_slot_is_used_up_stays_stale() {
        let first = insert_port().unwrap();
        close_handle(first).unwrap();
        // As if the slot had been used 2^32 - 3 times.
        lock(&find_slot(first).unwrap().state).generation = u32::MAX - 2;
        let mut last = Vec::new();
        // Free slots are used in turn, so each is reused after `SLOTS_PER_CHUNK` others. That takes
        // Miri ten minutes, so it tries only a few.
        let uses = if cfg!(miri) { 16 } else { 3 * SLOTS_PER_CHUNK };
        for _ in 0..uses {
            let next = insert_port().unwrap();
            assert_ne!(next, first, "a number comes again");
            assert_eq!(code_of(first), Code::Stale);
            close_handle(next).unwrap();
            if next as u32 == first as u32 {
                last.push(next);
            }
        }
        assert!(last.iter().all(|handle| code_of(*handle) == Code::Stale));
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

    struct Completion {
        data: &'static [u8],
        slot: LentSlot,
    }

    impl Lendable for Completion {
        fn slot(&mut self) -> &mut LentSlot {
            &mut self.slot
        }
    }

    fn lend_completion() -> u64 {
        let slot = LentSlot::none();
        let completion = Completion {
            data: b"result",
            slot,
        };
        let lent = lend(Lent::Completion, Box::new(completion));
        lent.map_err(|(_, failure)| failure).unwrap()
    }

    fn lend_again(completion: Box<Completion>) -> u64 {
        let lent = lend(Lent::Completion, completion);
        lent.map_err(|(_, failure)| failure).unwrap()
    }

    fn take(kind: Lent, number: u64) -> Result<Box<Completion>, Code> {
        take_back(kind, number).map_err(|failure| failure.code)
    }

    fn size_of_lent(kind: Lent, number: u64) -> Result<usize, Failure> {
        with_lent(kind, number, |completion: &mut Completion| {
            completion.data.len()
        })
    }

    #[test]
    fn completion_taken_back_twice_is_stale() {
        let number = lend_completion();
        assert_eq!(size_of_lent(Lent::Completion, number).unwrap(), 6);
        assert_eq!(code_of(number), Code::Stale);
        assert_eq!(close_handle(number).unwrap_err().code, Code::Stale);
        let completion = take(Lent::Completion, number).ok().unwrap();
        assert_eq!(completion.data, b"result");
        assert_eq!(take(Lent::Completion, number).err(), Some(Code::Stale));
        // The memory is reused for another completion.
        let next = lend_again(completion);
        assert_eq!(next as u32, number as u32);
        assert_eq!(take(Lent::Completion, number).err(), Some(Code::Stale));
        assert!(size_of_lent(Lent::Completion, number).is_err());
        // It is a completion, and not a call to answer.
        assert!(size_of_lent(Lent::Incoming, next).is_err());
        assert!(take(Lent::Incoming, next).is_err());
        drop(take(Lent::Completion, next).ok().unwrap());
    }

    #[test]
    fn completion_after_its_slot_is_used_up_has_another_one() {
        let first = lend_completion();
        lock(&find_slot(first).unwrap().state).generation = u32::MAX;
        let last = u64::from(u32::MAX) << 32 | u64::from(first as u32);
        let completion = take(Lent::Completion, last).ok().unwrap();
        let next = lend_again(completion);
        assert_ne!(next as u32, first as u32);
        assert!(take(Lent::Completion, first).is_err() && take(Lent::Completion, last).is_err());
        drop(take(Lent::Completion, next).ok().unwrap());
    }

    #[test]
    fn handle_that_was_never_issued_is_refused() {
        assert_eq!(code_of(0), Code::Argument);
        assert_eq!(code_of(1 << 32 | 0x00ff_fff0), Code::Argument);
        assert_eq!(code_of(u64::MAX), Code::Argument);
    }
}
