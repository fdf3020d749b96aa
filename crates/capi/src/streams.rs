//! Reading streams: batches, callbacks, counters.

use std::ffi::{c_int, c_void};
use std::ops::ControlFlow::{self, Break, Continue};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use thalweg_port::stream::{CallbackEvent, OpenBatch};
use thalweg_port::{Object, Reason, Stats, close_handle, find, insert, native, remove};

use crate::abi::{
    TW_BATCH_CONTROL, TW_BATCH_END, TW_GAP_BATCH_OPEN, TW_GAP_CONFLATED, TW_GAP_DROPPED_NEWEST,
    TW_GAP_DROPPED_OLDEST, TW_GAP_SERVICE, TwBatch, TwDropCtx, TwError, TwHandle, TwStats,
    TwStreamCallback,
};
use crate::error::{argument, enter, to_tw_error};
use crate::handles::{find_port, find_stream, wrong_kind};
use crate::pointers::{out, write_sized};

const EMPTY_BATCH: TwBatch = TwBatch {
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

fn gap_number(reason: Option<Reason>) -> u32 {
    match reason {
        None => 0,
        Some(Reason::Conflated) => TW_GAP_CONFLATED,
        Some(Reason::DroppedNewest) => TW_GAP_DROPPED_NEWEST,
        Some(Reason::DroppedOldest) => TW_GAP_DROPPED_OLDEST,
        Some(Reason::BatchOpen) => TW_GAP_BATCH_OPEN,
        Some(Reason::Writer) => TW_GAP_SERVICE,
    }
}

fn to_tw_batch(open: &OpenBatch) -> TwBatch {
    TwBatch {
        base: open.base(),
        // The first record may be after the base.
        slots: open.base().wrapping_add(open.first() as usize),
        count: open.count,
        stride: open.stride(),
        first_seq: open.first_sequence,
        lost_before: open.lost_before,
        gap_reason: gap_number(open.reason),
        flags: if open.control { TW_BATCH_CONTROL } else { 0 },
        size: open.size().into(),
    }
}

/// The batch at the end of a stream.
fn end_batch(lost: u64, reason: Option<Reason>) -> TwBatch {
    TwBatch {
        lost_before: lost,
        gap_reason: gap_number(reason),
        flags: TW_BATCH_END,
        ..EMPTY_BATCH
    }
}

pub(crate) unsafe extern "C" fn acquire(
    stream: TwHandle,
    max: u32,
    deadline_ns: u64,
    batch: *mut TwBatch,
    error: *mut TwError,
) -> u32 {
    // SAFETY: thalweg.h requires of the caller what `enter` and `out` require; also in all
    // functions below.
    unsafe {
        enter(error, || {
            let batch = out(batch, "out")?;
            *batch = EMPTY_BATCH;
            let stream = find_stream(stream)?;
            let open = stream
                .acquire(max, deadline_ns)
                .map_err(|(failure, is_ending)| {
                    if is_ending {
                        let (lost, reason) = stream.lost_at_end();
                        *batch = end_batch(lost, reason);
                    }
                    failure
                })?;
            *batch = to_tw_batch(&open);
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
            *ready = match (find(stream)?, port) {
                (Object::Stream(core), 0) => core.arm_fd()?,
                (Object::Stream(core), port) => core.arm_port(&find_port(port)?, token, stream)?,
                (Object::UpstreamWriter(_), 0) => {
                    return Err(argument(
                        "a stream's writer has no file descriptor: name a port",
                    ));
                }
                (Object::UpstreamWriter(core), port) => {
                    core.arm_port(&find_port(port)?, token, stream)?
                }
                (other, _) => return Err(wrong_kind(stream, &other, "a stream")),
            }
            .into();
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn close(stream: TwHandle, error: *mut TwError) -> u32 {
    // SAFETY: see `acquire`.
    unsafe {
        enter(error, || match find(stream)? {
            Object::Stream(core) => {
                remove(stream)?;
                core.close_and_wait();
                Ok(())
            }
            Object::Upstream(_) | Object::UpstreamWriter(_) => close_handle(stream),
            other => Err(wrong_kind(stream, &other, "a stream")),
        })
    }
}

/// A callback and its context.
struct Subscriber {
    callback: unsafe extern "C" fn(*mut c_void, *const TwBatch, *const TwError) -> u32,
    ctx: *mut c_void,
    drop_ctx: TwDropCtx,
}

// SAFETY: thalweg.h states that both functions are called on threads of the service, one call at a
// time.
unsafe impl Send for Subscriber {}

impl Subscriber {
    fn call(&mut self, delivered: &CallbackEvent<'_>) -> ControlFlow<()> {
        let (batch, ending) = match delivered {
            CallbackEvent::Records(open) => (to_tw_batch(open), None),
            CallbackEvent::Ended {
                why, lost, reason, ..
            } => (end_batch(*lost, *reason), Some(to_tw_error(why))),
        };
        let ending = ending.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // Code of other languages needs a larger stack than an actor has.
        // SAFETY: the caller's function with its own `ctx`; both structs live until it returns.
        let code = native(|| unsafe { (self.callback)(self.ctx, &raw const batch, ending) });
        if code == 0 { Continue(()) } else { Break(()) }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        if let Some(drop_ctx) = self.drop_ctx {
            // SAFETY: the caller's function with its own `ctx`, after the last call.
            native(|| unsafe { drop_ctx(self.ctx) });
        }
    }
}

pub(crate) unsafe extern "C" fn subscribe(
    stream: TwHandle,
    callback: TwStreamCallback,
    ctx: *mut c_void,
    drop_ctx: TwDropCtx,
    flags: u32,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `acquire`.
    unsafe {
        enter(error, || {
            let callback = callback.ok_or_else(|| argument("callback is a null pointer"))?;
            if flags != 0 {
                return Err(argument(format!("flags {flags:#x} are unknown")));
            }
            find_stream(stream)?.subscribe(|| {
                let mut subscriber = Subscriber {
                    callback,
                    ctx,
                    drop_ctx,
                };
                Box::new(move |delivered| subscriber.call(&delivered))
            })
        })
    }
}

pub(crate) unsafe extern "C" fn join(
    stream: TwHandle,
    deadline_ns: u64,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `acquire`.
    unsafe { enter(error, || find_stream(stream)?.join(deadline_ns)) }
}

pub(crate) unsafe extern "C" fn fd(stream: TwHandle, fd: *mut c_int, error: *mut TwError) -> u32 {
    // SAFETY: see `acquire`.
    unsafe {
        enter(error, || {
            *out(fd, "fd")? = find_stream(stream)?.fd()?.as_raw_fd();
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn tee(
    stream: TwHandle,
    reader: *mut TwHandle,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `acquire`.
    unsafe {
        enter(error, || {
            let reader = out(reader, "reader")?;
            let tee = find_stream(stream)?.tee()?;
            *reader = insert(Object::Stream(Arc::clone(&tee))).inspect_err(|_| tee.close())?;
            Ok(())
        })
    }
}

impl From<&Stats> for TwStats {
    fn from(stats: &Stats) -> Self {
        let mut lost = [0; 8];
        for reason in Reason::ALL {
            lost[gap_number(Some(reason)) as usize] = stats.counts.lost(reason);
        }
        Self {
            streams: stats.streams,
            published: stats.counts.published,
            delivered: stats.counts.delivered,
            undelivered: stats.counts.undelivered,
            occupancy: stats.occupancy,
            lost,
            high_water: stats.high_water,
            control: stats.control,
            wakes: stats.wakes,
            parks: stats.parks,
            waits: stats.waits,
            faults: stats.faults,
            age: stats.age,
        }
    }
}

pub(crate) unsafe extern "C" fn error(
    stream: TwHandle,
    data: *mut *const u8,
    size: *mut u64,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `acquire`.
    unsafe {
        enter(error, || {
            let (data, size) = (out(data, "data")?, out(size, "size")?);
            // The message lives as long as the stream.
            let message = find_stream(stream)?
                .error()
                .ok_or_else(|| argument("the stream did not end with an error of the service"))?;
            (*data, *size) = (message.as_ptr(), message.len() as u64);
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn stats(
    handle: TwHandle,
    method: u32,
    stats: *mut TwStats,
    size: u32,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `acquire`; `stats` has capacity for `size` bytes.
    unsafe {
        enter(error, || {
            let found = match find(handle)? {
                Object::Client(instance) => instance.stream_stats(method)?,
                Object::Stream(stream) => stream.stats(),
                other => return Err(wrong_kind(handle, &other, "a client or a stream")),
            };
            write_sized(&TwStats::from(&found), stats, size)
        })
    }
}

pub(crate) unsafe extern "C" fn retain_batch(
    stream: TwHandle,
    retained: *mut TwHandle,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `acquire`.
    unsafe {
        enter(error, || {
            let retained = out(retained, "retained")?;
            *retained = insert(Object::KeptBatch(Arc::new(find_stream(stream)?.keep()?)))?;
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn retained_batch_release(
    retained: TwHandle,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `acquire`.
    unsafe {
        enter(error, || match find(retained)? {
            Object::KeptBatch(_) => remove(retained).map(drop),
            other => Err(wrong_kind(retained, &other, "a retained batch")),
        })
    }
}
