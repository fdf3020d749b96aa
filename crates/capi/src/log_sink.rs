//! Log records for the caller: by a callback, or as completions of a port.

use std::ffi::c_void;
use std::time::UNIX_EPOCH;

use thalweg_port::Failure;
use thalweg_port::log::{self, Level, Record};

use crate::abi::{
    TW_LOG_ERROR, TW_LOG_INFO, TW_LOG_WARNING, TwDropCtx, TwError, TwHandle, TwLogCallback,
    TwLogRecord,
};
use crate::error::{argument, enter};
use crate::handles::find_port;

/// A callback and its context.
struct LogSink {
    callback: unsafe extern "C" fn(*mut c_void, *const TwLogRecord),
    ctx: *mut c_void,
    drop_ctx: TwDropCtx,
}

// SAFETY: thalweg.h states that both functions are called on any thread.
unsafe impl Send for LogSink {}
// SAFETY: thalweg.h states that the callback is called on several threads at the same time.
unsafe impl Sync for LogSink {}

impl LogSink {
    fn call(&self, record: &Record<'_>) {
        let since = record.at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let record = TwLogRecord {
            time_ns: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX),
            level: match record.level {
                Level::Error => TW_LOG_ERROR,
                Level::Warning => TW_LOG_WARNING,
                Level::Info => TW_LOG_INFO,
            },
            target_size: record.target.len() as u32,
            target: record.target.as_ptr().cast(),
            message: record.message.as_ptr().cast(),
            message_size: record.message.len() as u64,
        };
        // SAFETY: the caller's function with its own `ctx`; the record lives until it returns.
        unsafe { (self.callback)(self.ctx, &raw const record) };
    }
}

impl Drop for LogSink {
    fn drop(&mut self) {
        if let Some(drop_ctx) = self.drop_ctx {
            // SAFETY: the caller's function with its own `ctx`, after the last call.
            unsafe { drop_ctx(self.ctx) };
        }
    }
}

fn to_level(level: u32) -> Result<Level, Failure> {
    match level {
        TW_LOG_ERROR => Ok(Level::Error),
        TW_LOG_WARNING => Ok(Level::Warning),
        TW_LOG_INFO => Ok(Level::Info),
        other => Err(argument(format!("level {other} is unknown"))),
    }
}

pub(crate) unsafe extern "C" fn set_sink(
    callback: TwLogCallback,
    ctx: *mut c_void,
    drop_ctx: TwDropCtx,
    level: u32,
    error: *mut TwError,
) -> u32 {
    // SAFETY: thalweg.h requires of the caller what `enter` requires.
    unsafe {
        enter(error, || {
            let Some(callback) = callback else {
                log::take_sink();
                return Ok(());
            };
            let level = to_level(level)?;
            let sink = LogSink {
                callback,
                ctx,
                drop_ctx,
            };
            log::set_sink(level, move |record| sink.call(record));
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn set_port(
    port: TwHandle,
    token: u64,
    level: u32,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `set_sink`.
    unsafe {
        enter(error, || {
            if port == 0 {
                log::take_sink();
                return Ok(());
            }
            let level = to_level(level)?;
            find_port(port)?.receive_log(token, level);
            Ok(())
        })
    }
}
