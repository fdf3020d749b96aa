//! How this crate's models, and those of the crates above it, are explored by loom.
//!
//! Bounds come from the environment: `LOOM_MAX_PREEMPTIONS`, and `LOOM_MAX_DURATION` in seconds for each exploration. loom ends one that
//! takes longer as if it were complete. Here it says so on the standard error, which the test harness does not capture:
//!
//! ```text
//! model select::a_value_in_either_channel_wakes_it: CUT OFF at 3 preemptions after 1204000 executions in 90.1 s
//! ```

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use loom::model::Builder;

/// The clock is looked at after so many executions; loom's own 20,000 would be minutes of the largest models.
const BETWEEN_LOOKS: usize = 500;

/// Explores a model of two threads.
pub fn model(f: impl Fn() + Send + Sync + 'static) {
    explore(Builder::new(), f);
}

/// Explores a model of three threads or more, with one preemption less than the others have.
pub fn large_model(f: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.map(|bound| bound - 1);
    explore(builder, f);
}

/// Explores a model within the bounds of `builder`, and says how it ended if its time has a bound.
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
    // loom does not tell the two apart. One that was complete in the last moments counts as cut off.
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
    // Where nobody reads it nobody misses it.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
