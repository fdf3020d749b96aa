//! Kept batches: their memory stays unchanged, and is reused after the last owner drops it.

use std::sync::Arc;

use thalweg_port::stream::{OpenBatch, StreamCore};
use thalweg_port::{Code, Overflow, StreamWriter};

use crate::pair::{Record, core};

fn fill(writer: &StreamWriter<Record>, count: u64) {
    for number in 0..count {
        writer.send(&(0u64, number, String::from("text"))).unwrap();
    }
}

/// The bytes of an open or kept batch.
fn bytes(batch: &OpenBatch) -> Vec<u8> {
    let size = (batch.count * batch.stride()) as usize;
    // SAFETY: the caller has the batch open or keeps it.
    unsafe { std::slice::from_raw_parts(batch.base().add(batch.first() as usize), size) }.to_vec()
}

/// Reads the available records batch by batch, and returns the address of each batch.
fn drain(core: &Arc<StreamCore>) -> Vec<*const u8> {
    let mut places = Vec::new();
    while let Ok(batch) = core.try_acquire(u32::MAX) {
        places.push(batch.base());
        core.release(batch.count).unwrap();
    }
    places
}

#[test]
fn kept_batch_stays_unchanged_while_the_stream_continues_and_after_close() {
    let (writer, core, _own) = core(Overflow::Block);
    fill(&writer, 32);
    let batch = core.try_acquire(8).unwrap();
    let (place, before) = (batch.base(), bytes(&batch));
    let kept = core.keep().unwrap();
    core.release(8).unwrap();
    // A clone of the batch would itself keep the memory.
    let stride = batch.stride();
    drop(batch);
    drain(&core);
    for _ in 0..100 {
        fill(&writer, 64);
        assert!(!drain(&core).contains(&place), "the segment is in use");
    }
    core.close();
    drop((writer, core));
    // SAFETY: the memory is kept.
    let after = unsafe { std::slice::from_raw_parts(place, (8 * stride) as usize) };
    assert_eq!(after, before);
    drop(kept);
}

#[test]
fn kept_memory_is_reused_after_the_last_owner_drops_it() {
    let (writer, core, _own) = core(Overflow::Block);
    fill(&writer, 32);
    let batch = core.try_acquire(32).unwrap();
    let place = batch.base();
    let (first, second) = (core.keep().unwrap(), core.keep().unwrap());
    core.release(32).unwrap();
    drop(batch);
    let used = |times: u32| {
        (0..times).any(|_| {
            fill(&writer, 64);
            drain(&core).contains(&place)
        })
    };
    assert!(!used(20));
    drop(first);
    assert!(!used(20), "one owner is left");
    drop(second);
    assert!(used(20));
}

#[test]
fn kept_batch_uses_no_credit() {
    let (writer, core, _own) = core(Overflow::Block);
    let mut kept = Vec::new();
    for _ in 0..200 {
        fill(&writer, 32);
        while let Ok(batch) = core.try_acquire(u32::MAX) {
            kept.push(core.keep().unwrap());
            core.release(batch.count).unwrap();
        }
    }
    assert!(kept.len() >= 200);
}

#[test]
fn keep_without_an_open_batch_is_refused() {
    let (writer, core, _own) = core(Overflow::Block);
    assert_eq!(core.keep().unwrap_err().code, Code::Argument);
    fill(&writer, 1);
    let batch = core.try_acquire(1).unwrap();
    core.release(batch.count).unwrap();
    assert_eq!(core.keep().unwrap_err().code, Code::Argument);
}
