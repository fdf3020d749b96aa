//! The table behind the numbers that hosts hold.
//!
//! A handle is `generation u32 | index u32`. The index names a slot.
//!
//! 1. A slot's generation grows with each object that the slot gets. A slot with the last generation is retired, so no
//!    two objects of a process ever have the same handle.
//! 2. A forked child begins a table of its own. Its first index is past all that its parent had given out, so a handle
//!    from before the fork has a smaller index and is refused as `forked`, however deep the forks are nested.
//! 3. Free slots are a list through the slots themselves, first in, first out: giving one back needs no memory.
//! 4. The list's lock may be held while memory is allocated, and never together with the lock of a slot.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use thalweg_queue::quiet::lock;

use crate::call::{CallCore, CallRef};
use crate::code::{Code, Failure, no_memory};
use crate::completion::Port;
use crate::instance::Instance;
use crate::parcel::Ending;
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
/// Handles that may be open at once: 2^24.
const MOST: usize = 1 << 24;
/// No slot has this index.
const NONE: u32 = u32::MAX;

/// What lies in a slot.
#[derive(Default)]
enum Held {
    #[default]
    Nothing,
    Object(Object),
    /// A client's place for calls, for one after the other: its [`Life`](crate::life::Life) has the generation.
    Calls(Arc<CallCore>),
    /// A completion that a host has reaped and not released.
    Completion(Box<Ending>),
}

#[derive(Default)]
struct Contents {
    generation: u32,
    held: Held,
}

struct Slot {
    contents: Mutex<Contents>,
    /// The next free slot; under the list's lock.
    next: AtomicU32,
}

type Chunk = Box<[Slot]>;

struct Table {
    made_in: u64,
    /// The index of the first slot: a multiple of [`CHUNK`].
    first: u32,
    /// Indices that were given out, from the first on. It changes under the list's lock; a forked child reads it without.
    used: AtomicU32,
    chunks: Box<[OnceLock<Chunk>]>,
    free: Mutex<Free>,
}

/// The ends of the list of free slots.
struct Free {
    first: u32,
    last: u32,
}

static TABLE: AtomicPtr<Table> = AtomicPtr::new(std::ptr::null_mut());

/// Grows by one in every forked child.
pub fn epoch() -> u64 {
    thalweg_runtime::epoch()
}

/// This process's table, if it has one.
fn known_table() -> Option<&'static Table> {
    let known = TABLE.load(Ordering::Acquire);
    // SAFETY: tables are leaked: what was stored here lives for ever.
    let table = unsafe { known.as_ref() };
    table.filter(|table| table.made_in == epoch())
}

#[inline]
fn table() -> Result<&'static Table, Failure> {
    match known_table() {
        Some(table) => Ok(table),
        None => new_table(),
    }
}

/// At the first use, and at the first in a forked child: the parent's table may be locked by a thread that does not exist
/// here, so it is left alone.
#[cold]
fn new_table() -> Result<&'static Table, Failure> {
    thalweg_runtime::watch_forks();
    let known = TABLE.load(Ordering::Acquire);
    // SAFETY: as in `known_table`.
    let first = match unsafe { known.as_ref() } {
        Some(table) if table.made_in == epoch() => return Ok(table),
        Some(parent) => parent.end(),
        None => 0,
    };
    let fresh = Box::into_raw(Box::new(Table::new(first, MOST)?));
    match TABLE.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: it is leaked.
        Ok(_) => Ok(unsafe { &*fresh }),
        Err(other) => {
            // SAFETY: nobody else has seen `fresh`.
            drop(unsafe { Box::from_raw(fresh) });
            // SAFETY: it was leaked by the thread that stored it.
            Ok(unsafe { &*other })
        }
    }
}

#[cfg(test)]
thread_local! {
    /// Slots that this thread looked at.
    pub(crate) static LOOKED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Table {
    /// For `most` handles with indices from `first` on, or for as many indices as are left.
    fn new(first: u64, most: usize) -> Result<Self, Failure> {
        let left = u64::from(NONE).saturating_sub(first) / CHUNK as u64;
        let chunks = (most / CHUNK).min(left as usize);
        let mut places = Vec::new();
        let bytes = chunks * size_of::<OnceLock<Chunk>>();
        places
            .try_reserve_exact(chunks)
            .map_err(|_| no_memory(bytes))?;
        places.extend((0..chunks).map(|_| OnceLock::new()));
        Ok(Self {
            made_in: epoch(),
            // Without a slot the index does not matter.
            first: u32::try_from(first).unwrap_or(NONE),
            used: AtomicU32::new(0),
            chunks: places.into_boxed_slice(),
            free: Mutex::new(Free {
                first: NONE,
                last: NONE,
            }),
        })
    }

    /// Rule 2: where a child's indices begin.
    fn end(&self) -> u64 {
        let used = u64::from(self.used.load(Ordering::Relaxed));
        u64::from(self.first) + used.next_multiple_of(CHUNK as u64)
    }

    fn slot(&self, index: u32) -> Option<&Slot> {
        #[cfg(test)]
        LOOKED.set(LOOKED.get() + 1);
        // An index before the first one is past the last chunk: there are no more chunks than indices from the first one on.
        let at = index.wrapping_sub(self.first) as usize;
        self.chunks.get(at / CHUNK)?.get()?.get(at % CHUNK)
    }

    /// A slot that nobody has.
    fn take_free(&self) -> Result<(u32, &Slot), Failure> {
        let mut free = lock(&self.free);
        if let Some(slot) = self.slot(free.first) {
            let index = free.first;
            free.first = slot.next.load(Ordering::Relaxed);
            return Ok((index, slot));
        }
        let used = self.used.load(Ordering::Relaxed);
        let Some(chunk) = self.chunks.get(used as usize / CHUNK) else {
            return Err(Code::Overloaded.because(format!(
                "{} handles are open, or were used up",
                self.chunks.len() * CHUNK
            )));
        };
        if chunk.get().is_none() {
            // Under the lock nobody else sets it.
            let _ = chunk.set(new_chunk()?);
        }
        self.used.store(used + 1, Ordering::Relaxed);
        let index = self.first + used;
        let slot = self.slot(index).expect("its chunk is there");
        Ok((index, slot))
    }

    /// Rule 1 and 3: after the object of `generation` has left the slot.
    fn give_back(&self, index: u32, slot: &Slot, generation: u32) {
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
    let reserved = slots.try_reserve_exact(CHUNK);
    reserved.map_err(|_| no_memory(CHUNK * size_of::<Slot>()))?;
    slots.extend((0..CHUNK).map(|_| Slot {
        contents: Mutex::default(),
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

/// Puts an object in and names it.
///
/// # Errors
/// `overloaded`: 16,777,216 handles are open, or there is no memory for more.
pub fn insert(object: Object) -> Result<u64, Failure> {
    let (index, slot) = table()?.take_free()?;
    let mut contents = lock(&slot.contents);
    // Rule 1. Generation 0 is never used, so no handle is 0.
    contents.generation += 1;
    contents.held = Held::Object(object);
    Ok(handle_of(contents.generation, index))
}

/// Puts in a place for calls. `make` is given the lower half of their handles, and the generation that was the slot's last.
///
/// # Errors
/// As [`insert`], and those of `make`.
pub(crate) fn insert_calls(
    make: impl FnOnce(u32, u32) -> Result<Arc<CallCore>, Failure>,
) -> Result<Arc<CallCore>, Failure> {
    let table = table()?;
    let (index, slot) = table.take_free()?;
    let last = lock(&slot.contents).generation;
    let calls = make(index, last).inspect_err(|_| table.give_back(index, slot, last))?;
    lock(&slot.contents).held = Held::Calls(Arc::clone(&calls));
    Ok(calls)
}

/// Takes such a place out, after its last call.
pub(crate) fn remove_calls(calls: &CallCore) {
    let Some(table) = known_table() else {
        return;
    };
    let index = calls.name();
    if let Some(slot) = table.slot(index) {
        let generation = calls.life.generation();
        let held = {
            let mut contents = lock(&slot.contents);
            contents.generation = generation;
            std::mem::take(&mut contents.held)
        };
        drop(held);
        table.give_back(index, slot, generation);
    }
}

/// The table, and the slot in it.
fn place_of(handle: u64) -> Result<(&'static Table, &'static Slot), Failure> {
    if handle == 0 {
        return Err(Code::Argument.because("0 is no handle"));
    }
    let (table, index) = (table()?, handle as u32);
    match table.slot(index) {
        Some(slot) => Ok((table, slot)),
        None => Err(not_here(table, index)),
    }
}

fn slot_of(handle: u64) -> Result<&'static Slot, Failure> {
    place_of(handle).map(|(_, slot)| slot)
}

#[cold]
fn not_here(table: &Table, index: u32) -> Failure {
    if index < table.first {
        Code::Forked.because("the handle was made before fork()")
    } else {
        Code::Argument.because("no such handle was ever given out")
    }
}

fn stale() -> Failure {
    Code::Stale.because("what the handle named is closed")
}

/// What a handle names.
///
/// # Errors
/// `argument`, `stale`, `forked`.
pub fn find(handle: u64) -> Result<Object, Failure> {
    let generation = generation_of(handle);
    let contents = lock(&slot_of(handle)?.contents);
    match &contents.held {
        Held::Object(object) if contents.generation == generation => Ok(object.clone()),
        Held::Calls(calls) => CallRef::enter(calls, generation)
            .map(Object::Call)
            .ok_or_else(stale),
        _ => Err(stale()),
    }
}

/// The place of a call, which may have ended, and the call's generation there.
pub(crate) fn find_calls(handle: u64) -> Option<(Arc<CallCore>, u32)> {
    let contents = lock(&slot_of(handle).ok()?.contents);
    match &contents.held {
        Held::Calls(calls) => Some((Arc::clone(calls), generation_of(handle))),
        _ => None,
    }
}

/// Takes an object out; from now on the handle is stale. A call stays there until it ends.
///
/// # Errors
/// As [`find`].
pub fn remove(handle: u64) -> Result<Object, Failure> {
    let generation = generation_of(handle);
    let (table, slot) = place_of(handle)?;
    let object = {
        let mut contents = lock(&slot.contents);
        match std::mem::take(&mut contents.held) {
            Held::Object(object) if contents.generation == generation => object,
            other => {
                contents.held = other;
                drop(contents);
                return match find(handle)? {
                    call @ Object::Call(_) => Ok(call),
                    _ => Err(stale()),
                };
            }
        }
    };
    table.give_back(handle as u32, slot, generation);
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

/// The slot that an [`Ending`] keeps for the times when a host has it: as long as its memory is used, so that handing it
/// out takes and frees none.
#[derive(Debug)]
pub(crate) struct Place(u32);

impl Place {
    pub(crate) const fn none() -> Self {
        Self(NONE)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // In a forked child the slot is the parent's.
        if self.0 != NONE
            && let Some(table) = known_table()
            && let Some(slot) = table.slot(self.0)
        {
            let generation = lock(&slot.contents).generation;
            table.give_back(self.0, slot, generation);
        }
    }
}

/// Puts a completion in that a host has from now on, until [`take_back`].
///
/// # Errors
/// As [`insert`]; the completion comes back.
pub(crate) fn lend(mut ending: Box<Ending>) -> Result<u64, (Box<Ending>, Failure)> {
    let table = match table() {
        Ok(table) => table,
        Err(failure) => return Err((ending, failure)),
    };
    let slot = match table.slot(ending.place.0) {
        Some(slot) => slot,
        None => match table.take_free() {
            Ok((index, slot)) => {
                // A place from before a fork is the parent's.
                ending.place.0 = index;
                slot
            }
            Err(failure) => return Err((ending, failure)),
        },
    };
    let index = ending.place.0;
    let mut contents = lock(&slot.contents);
    contents.generation += 1;
    contents.held = Held::Completion(ending);
    Ok(handle_of(contents.generation, index))
}

/// Does something with a completion that a host has.
///
/// # Errors
/// `stale`: it was released; `argument`, `forked`.
pub(crate) fn with_lent<R>(number: u64, f: impl FnOnce(&mut Ending) -> R) -> Result<R, Failure> {
    let mut contents = lock(&slot_of(number)?.contents);
    let is_current = contents.generation == generation_of(number);
    match &mut contents.held {
        Held::Completion(ending) if is_current => Ok(f(ending)),
        _ => Err(released()),
    }
}

/// Takes a completion back that a host had: once.
///
/// # Errors
/// As [`with_lent`].
pub(crate) fn take_back(number: u64) -> Result<Box<Ending>, Failure> {
    let generation = generation_of(number);
    let mut ending = {
        let mut contents = lock(&slot_of(number)?.contents);
        match std::mem::take(&mut contents.held) {
            Held::Completion(ending) if contents.generation == generation => ending,
            other => {
                contents.held = other;
                return Err(released());
            }
        }
    };
    if generation == u32::MAX {
        // Rule 1: the next time it gets another slot.
        ending.place = Place::none();
    }
    Ok(ending)
}

fn released() -> Failure {
    Code::Stale.because("the completion was released")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{
        CHUNK, Ending, Object, Table, close_handle, find, insert, lend, lock, remove, slot_of,
        take_back, with_lent,
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
    fn handle_after_its_slot_is_used_up_stays_stale() {
        let port = || Object::Port(Port::open(1).unwrap());
        let first = insert(port()).unwrap();
        close_handle(first).unwrap();
        // As if the slot had been used 2^32 - 3 times since.
        lock(&slot_of(first).unwrap().contents).generation = u32::MAX - 2;
        let mut last = Vec::new();
        // Free slots are used in turn, so each is used again after `CHUNK` others. That takes Miri ten
        // minutes, so it tries only a few.
        let uses = if cfg!(miri) { 16 } else { 3 * CHUNK };
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
    fn a_full_table_takes_one_for_each_that_leaves() {
        let table = Table::new(0, 2 * CHUNK).unwrap();
        let take = || table.take_free().map(|(index, _)| index);
        let all: Vec<u32> = (0..2 * CHUNK).map(|_| take().unwrap()).collect();
        // Miri needs milliseconds for each turn.
        let turns = if cfg!(miri) { 100 } else { 10_000 };
        for turn in 0..turns {
            assert_eq!(take().unwrap_err().code, Code::Overloaded);
            let leaves = all[turn * 7 % all.len()];
            table.give_back(leaves, table.slot(leaves).unwrap(), 1);
            assert_eq!(take().unwrap(), leaves);
        }
    }

    #[test]
    fn slot_given_back_is_used_after_those_before_it() {
        let table = Table::new(0, CHUNK).unwrap();
        let take = || table.take_free().map(|(index, _)| index).unwrap();
        let all: Vec<u32> = (0..4).map(|_| take()).collect();
        for index in &all {
            table.give_back(*index, table.slot(*index).unwrap(), 1);
        }
        assert_eq!((0..4).map(|_| take()).collect::<Vec<_>>(), all);
        assert_eq!(take(), 4);
    }

    #[test]
    fn table_at_the_last_index_refuses_more_and_gives_none_out_twice() {
        let first = u64::from(u32::MAX) - CHUNK as u64;
        let table = Table::new(first - first % CHUNK as u64, 4 * CHUNK).unwrap();
        let all: Vec<u32> = std::iter::from_fn(|| Some(table.take_free().ok()?.0)).collect();
        assert_eq!(all.len(), CHUNK);
        assert!(all.is_sorted() && table.slot(0).is_none());
        let child = Table::new(table.end(), CHUNK).unwrap();
        assert_eq!(
            child.take_free().map(|_| ()).unwrap_err().code,
            Code::Overloaded
        );
        assert!(all.iter().all(|index| child.slot(*index).is_none()));
    }

    fn completion() -> Box<Ending> {
        let mut ending = Ending::new();
        ending.data.extend_from_slice(b"result");
        ending
    }

    #[test]
    fn completion_taken_back_twice_is_stale() {
        let number = lend(completion()).unwrap();
        assert_eq!(with_lent(number, |ending| ending.data.len()).unwrap(), 6);
        assert_eq!(find(number).unwrap_err().code, Code::Stale);
        assert_eq!(close_handle(number).unwrap_err().code, Code::Stale);
        let ending = take_back(number).unwrap();
        assert_eq!(ending.data, b"result");
        assert_eq!(take_back(number).unwrap_err().code, Code::Stale);
        // Its memory is used again, for another completion.
        let next = lend(ending).unwrap();
        assert_eq!(next as u32, number as u32);
        assert_eq!(take_back(number).unwrap_err().code, Code::Stale);
        assert!(with_lent(number, |_| ()).is_err());
        drop(take_back(next).unwrap());
    }

    #[test]
    fn completion_after_its_slot_is_used_up_has_another_one() {
        let first = lend(completion()).unwrap();
        lock(&slot_of(first).unwrap().contents).generation = u32::MAX;
        let last = u64::from(u32::MAX) << 32 | u64::from(first as u32);
        let ending = take_back(last).unwrap();
        let next = lend(ending).unwrap();
        assert_ne!(next as u32, first as u32);
        assert!(take_back(first).is_err() && take_back(last).is_err());
        drop(take_back(next).unwrap());
    }

    #[test]
    fn numbers_that_were_never_given_out_are_refused() {
        assert_eq!(find(0).unwrap_err().code, Code::Argument);
        assert_eq!(
            find(1 << 32 | 0x00ff_fff0).unwrap_err().code,
            Code::Argument
        );
        assert_eq!(find(u64::MAX).unwrap_err().code, Code::Argument);
    }
}
