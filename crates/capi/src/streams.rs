//! Streams, as C sees them.

use std::sync::Arc;

use thalweg_port::stream::StreamCore;
use thalweg_port::{Failure, Object, Reason, find, remove};

use crate::abi::{
    TW_BATCH_ENDED, TW_GAP_CONFLATED, TW_GAP_DROPPED_NEWEST, TW_GAP_DROPPED_OLDEST, TW_GAP_HELD,
    TW_GAP_WRITER, TwBatch, TwError, TwHandle,
};
use crate::error::{enter, out};
use crate::library::wrong;
use crate::ports::find_port;

fn find_stream(handle: TwHandle) -> Result<Arc<StreamCore>, Failure> {
    match find(handle)? {
        Object::Stream(stream) => Ok(stream),
        other => Err(wrong(handle, &other, "a stream")),
    }
}

const NOTHING: TwBatch = TwBatch {
    base: std::ptr::null(),
    slots: std::ptr::null(),
    count: 0,
    stride: 0,
    first_seq: 0,
    lost_before: 0,
    gap_reason: 0,
    flags: 0,
    size: 0,
};

fn number_of(reason: Option<Reason>) -> u32 {
    match reason {
        None => 0,
        Some(Reason::Conflated) => TW_GAP_CONFLATED,
        Some(Reason::DroppedNewest) => TW_GAP_DROPPED_NEWEST,
        Some(Reason::DroppedOldest) => TW_GAP_DROPPED_OLDEST,
        Some(Reason::Held) => TW_GAP_HELD,
        Some(Reason::Writer) => TW_GAP_WRITER,
    }
}

pub(crate) unsafe extern "C" fn acquire(
    stream: TwHandle,
    max: u32,
    deadline_ns: u64,
    batch: *mut TwBatch,
    error: *mut TwError,
) -> u32 {
    // SAFETY: the header demands of the caller what `enter` and `out` demand; so in every function here.
    unsafe {
        enter(error, || {
            let batch = out(batch, "out")?;
            *batch = NOTHING;
            let stream = find_stream(stream)?;
            let open = stream
                .acquire(max, deadline_ns)
                .map_err(|(failure, ended)| {
                    if ended {
                        let (lost, reason) = stream.lost_at_end();
                        batch.flags = TW_BATCH_ENDED;
                        batch.lost_before = lost;
                        batch.gap_reason = number_of(reason);
                    }
                    failure
                })?;
            *batch = TwBatch {
                base: open.base(),
                // The first record lies inside of what the batch holds.
                slots: open.base().add(open.first() as usize),
                count: open.count,
                stride: open.stride(),
                first_seq: open.first_sequence,
                lost_before: open.lost_before,
                gap_reason: number_of(open.reason),
                flags: 0,
                size: open.size().into(),
            };
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn release(stream: TwHandle, count: u32, error: *mut TwError) -> u32 {
    // SAFETY: see `acquire`.
    unsafe { enter(error, || find_stream(stream)?.release(count)) }
}

pub(crate) unsafe extern "C" fn arm(
    stream: TwHandle,
    port: TwHandle,
    token: u64,
    ready: *mut u32,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `acquire`.
    unsafe {
        enter(error, || {
            let ready = out(ready, "ready")?;
            let core = find_stream(stream)?;
            *ready = core.announce(&find_port(port)?, token, stream)?.into();
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn close(stream: TwHandle, error: *mut TwError) -> u32 {
    // SAFETY: see `acquire`.
    unsafe {
        enter(error, || {
            find_stream(stream)?.close();
            remove(stream).map(drop)
        })
    }
}
