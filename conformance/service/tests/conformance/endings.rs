//! Compares the outcome of a call with its step.

use crate::Runner;
use crate::values::{Json, same, unhex};
use serde_json::Value;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use thalweg::port::{CallError, Pending};
use thalweg::runtime::block_on;
use thalweg::wire::{Decode, Encode, message};
use thalweg_conformance::conformance::PACKAGE;

/// The difference to the expected result, if there is one.
pub(crate) type Verdict = Result<(), String>;

pub(crate) fn expect(what: &str, came: impl std::fmt::Debug, is_right: bool) -> Verdict {
    if is_right {
        Ok(())
    } else {
        Err(format!("{what}: {came:?}"))
    }
}

/// Waits for a call, and compares its outcome with the step.
pub(crate) type Called = Box<dyn FnOnce(&mut Runner) -> Verdict>;

/// Compares the encoded form of `value` with the file.
pub(crate) fn check_bytes<T: Encode + ?Sized>(
    step: &Value,
    key: &str,
    value: &T,
    layout: u64,
) -> Verdict {
    let Some(hex) = step[key].as_str() else {
        return Ok(());
    };
    let bytes = message::encode(value, layout, Vec::new()).map_err(|error| error.to_string())?;
    expect(key, &bytes, bytes == unhex(hex))
}

/// Waits for a call. `ok` checks its result.
pub(crate) fn finish<T: 'static, E: Json + Decode>(
    step: &'static Value,
    method: usize,
    pending: Pending<T, E>,
    ok: impl FnOnce(&mut Runner, T) -> Verdict + 'static,
) -> Result<Called, String> {
    Ok(Box::new(move |runner| {
        if let Some(ms) = step["cancel_after_ms"].as_u64() {
            std::thread::sleep(Duration::from_millis(ms));
            pending.cancel();
        }
        let result = match step["cancel_after_notices"].as_u64() {
            Some(most) => told(pending, most),
            None => pending.wait(),
        };
        compare(runner, step, method, result, ok)
    }))
}

/// The outcome of a call that is cancelled after `most` progress notices.
fn told<T, E: Decode>(pending: Pending<T, E>, most: u64) -> Result<T, CallError<E>> {
    let count = Arc::new(AtomicU64::new(0));
    let its = Arc::clone(&count);
    let mut pending = pin!(pending.on_notice(move |_| {
        its.fetch_add(1, Ordering::Relaxed);
    }));
    block_on(poll_fn(|context| {
        let polled = pending.as_mut().poll(context);
        if count.load(Ordering::Relaxed) >= most {
            pending.cancel();
        }
        polled
    }))
}

/// The same for a call that has ended.
pub(crate) fn ended<T: 'static, E: Json + Decode>(
    step: &'static Value,
    method: usize,
    result: Result<T, CallError<E>>,
    ok: impl FnOnce(&mut Runner, T) -> Verdict + 'static,
) -> Result<Called, String> {
    Ok(Box::new(move |runner| {
        compare(runner, step, method, result, ok)
    }))
}

/// Whether the step allows this outcome. A step has one outcome or a list of them; the default is
/// `ok`.
pub(crate) fn ends(step: &Value, name: &str) -> bool {
    match &step["ends"] {
        Value::Array(several) => several.iter().any(|one| one == name),
        one => one.as_str().unwrap_or("ok") == name,
    }
}

fn compare<T, E: Json + Encode>(
    runner: &mut Runner,
    step: &Value,
    method: usize,
    result: Result<T, CallError<E>>,
    ok: impl FnOnce(&mut Runner, T) -> Verdict,
) -> Verdict {
    match result {
        Ok(value) => {
            expect("ended", "ok", ends(step, "ok"))?;
            ok(runner, value)
        }
        Err(CallError::Service(error)) => {
            expect("ended", "error", ends(step, "error"))?;
            let right = step
                .get("error")
                .is_none_or(|expected| same(&error, expected));
            expect("error", error.show(), right)?;
            check_bytes(step, "reply", &error, PACKAGE.methods[method].error)
        }
        Err(CallError::Ended(failure)) => {
            expect("ended", &failure, ends(step, failure.code.name()))?;
            let message = step["message"].as_str().unwrap_or_default();
            expect(
                "message",
                &failure.message,
                failure.message.contains(message),
            )
        }
    }
}
