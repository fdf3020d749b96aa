//! How loom explores the models of this crate and of the crates above it.
//!
//! The environment sets the bounds: `LOOM_MAX_PREEMPTIONS`, and `LOOM_MAX_DURATION` in seconds per
//! exploration. loom ends an exploration that takes longer as if it were complete. This module
//! reports it on standard error, which the test harness does not capture:
//!
//! ```text
//! model select::value_in_either_channel_wakes_select: CUT OFF at 3 preemptions after 1204000 executions in 90.1 s
//! ```

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use loom::model::Builder;

/// Executions between two checks of the clock. loom's default of 20,000 takes minutes in the
/// largest models.
const BETWEEN_LOOKS: usize = 500;

/// Explores a model of two threads.
pub fn model(f: impl Fn() + Send + Sync + 'static) {
    explore(Builder::new(), f);
}

/// Explores a model of three or more threads, with a preemption bound that is lower by one.
pub fn large_model(f: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.map(|bound| bound - 1);
    explore(builder, f);
}

/// Explores a model within the bounds of `builder`. If the duration is bounded, reports how the
/// exploration ended.
pub fn explore(mut builder: Builder, f: impl Fn() + Send + Sync + 'static) {
    let Some(cap) = builder.max_duration else {
        return builder.check(f);
    };
    builder.checkpoint_interval = BETWEEN_LOOKS;
    let executions = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    builder.check({
        let executions = executions.clone();
        move || {
            executions.fetch_add(1, Relaxed);
            f();
        }
    });
    let took = began.elapsed();
    // loom does not distinguish the two. An exploration that completes just before the limit counts
    // as cut off.
    let ending = if took < cap { "complete" } else { "CUT OFF" };
    let bound = match builder.preemption_bound {
        Some(bound) => format!("{bound} preemptions"),
        None => "any number of preemptions".into(),
    };
    let line = format!(
        "model {}: {ending} at {bound} after {} executions in {:.1} s\n",
        std::thread::current().name().unwrap_or("without a name"),
        executions.load(Relaxed),
        took.as_secs_f64(),
    );
    // If standard error is closed, nobody needs the line.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
