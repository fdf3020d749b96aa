//! Writing and reading events allocates no memory.
//!
//! A binary of its own: it replaces the allocator of the whole process.

#[path = "integration/pair/mod.rs"]
mod pair;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use pair::{POLICIES, Record, pair};
use thalweg_port::{StreamReader, StreamWriter};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all calls are forwarded to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ROUNDS: u64 = if cfg!(miri) { 3 } else { 100 };

/// Writes 900 events, in batches and alone, with and without text, and reads the available ones.
fn round(writer: &StreamWriter<Record>, reader: &mut StreamReader<Record>, texts: &[Record; 2]) {
    let mut batch = writer.batch(64);
    for i in 0..450 {
        batch.send(&texts[i % 2]).unwrap();
    }
    drop(batch);
    for i in 0..450 {
        writer.send(&texts[i % 2]).unwrap();
    }
    read(reader);
}

/// Reads the available events.
fn read(reader: &mut StreamReader<Record>) {
    let counts = reader.counts();
    let mut left = counts.undelivered;
    while left > 0 {
        let batch = reader.next_batch(50, 0).unwrap().unwrap();
        let texts: usize = batch.iter().map(|(_, _, text)| text.len()).sum();
        assert!(texts <= 60 * batch.len() as usize);
        left = left.saturating_sub(u64::from(batch.len()));
    }
}

#[test]
fn event_write_and_read_allocate_nothing() {
    let texts = [(1, 2, String::new()), (3, 4, "y".repeat(60))];
    for policy in POLICIES {
        let (writer, mut reader) = pair(policy);
        for _ in 0..3 {
            round(&writer, &mut reader, &texts);
        }
        let before = ALLOCATIONS.get();
        for _ in 0..ROUNDS {
            round(&writer, &mut reader, &texts);
        }
        let events = 900 * ROUNDS;
        assert_eq!(ALLOCATIONS.get() - before, 0, "{policy:?}, {events} events");
    }
}

#[test]
fn additional_reader_allocates_nothing_for_an_event() {
    let texts = [(1, 2, String::new()), (3, 4, "y".repeat(60))];
    let (writer, mut first) = pair(POLICIES[0]);
    let mut second = first.tee().unwrap();
    let mut rounds = |count: u64| {
        for _ in 0..count {
            round(&writer, &mut first, &texts);
            read(&mut second);
        }
    };
    rounds(3);
    let before = ALLOCATIONS.get();
    rounds(ROUNDS);
    assert_eq!(ALLOCATIONS.get() - before, 0);
}
