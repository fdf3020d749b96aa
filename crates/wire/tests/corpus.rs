//! The fuzz targets' corpus, without a fuzzer: every input passes its target's check, and takes memory in proportion.

#[path = "../../../fuzz/src/lib.rs"]
mod targets;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// Notes the largest piece that this thread asked for.
struct Noting;

// SAFETY: all of it is the system's allocator.
unsafe impl GlobalAlloc for Noting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.with(|largest| largest.set(largest.get().max(layout.size())));
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static NOTING: Noting = Noting;

/// What a target may take for an input that is shorter: a result is within the targets' limit of 64 KiB, in a buffer that doubles.
const MOST: usize = 1 << 17;

fn run(corpus: &str, target: fn(&[u8])) {
    let mut count = 0;
    for line in corpus.lines() {
        let bytes: Vec<u8> = (0..line.len() / 2)
            .map(|i| u8::from_str_radix(&line[2 * i..2 * i + 2], 16).expect("hex"))
            .collect();
        LARGEST.with(|largest| largest.set(0));
        target(&bytes);
        let largest = LARGEST.with(Cell::get);
        assert!(largest <= MOST, "{largest} bytes for {line}");
        count += 1;
    }
    assert!(count > 10, "the corpus has {count} inputs");
}

#[test]
fn messages() {
    run(
        include_str!("../../../fuzz/corpus/message.hex"),
        targets::message,
    );
}

#[test]
fn items_of_cbor() {
    run(include_str!("../../../fuzz/corpus/cbor.hex"), targets::cbor);
}

#[test]
fn items_of_one_type_by_both_readers() {
    run(
        include_str!("../../../fuzz/corpus/typed.hex"),
        targets::typed,
    );
}

#[test]
fn descriptions() {
    run(
        include_str!("../../../fuzz/corpus/description.hex"),
        targets::description,
    );
}
