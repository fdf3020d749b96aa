//! The test programs of this crate: run one operation under one shortage, and print its outcome as
//! one line.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::allocator;
use crate::census::Census;
use crate::fault::{self, Plan, Resource, Shape};
use crate::filter;
use crate::operations::{self, Problem, Step};

static PANICS: AtomicU64 = AtomicU64::new(0);

/// Rounds before the first count, to fill caches.
const WARM_UP: usize = 6;
/// Rounds between two counts.
const ROUNDS: usize = 24;
/// A leak grows in every window. New workers and caches may appear in one of them.
const WINDOWS: usize = 4;

/// The whole program. Its arguments are OPERATION RESOURCE SHAPE NTH MODE.
pub fn main() -> u8 {
    allocator::keep_to_the_heap();
    no_core_dump();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [operation, resource, shape, nth, mode] = &arguments[..] else {
        eprintln!("usage: thalweg-faults OPERATION RESOURCE SHAPE NTH cold|warm");
        return 2;
    };
    let resource = Resource::ALL.into_iter().find(|r| r.name() == resource);
    let shape = [Shape::Once, Shape::Lasting]
        .into_iter()
        .find(|s| s.name() == shape);
    let operation = operations::ALL.iter().find(|o| o.name == operation);
    let (Some(resource), Some(shape), Some(operation), Ok(nth)) =
        (resource, shape, operation, nth.parse())
    else {
        eprintln!("no such operation, resource, shape or number: {arguments:?}");
        return 2;
    };
    if std::env::var_os("THALWEG_FAULTS_TRACE").is_some() {
        allocator::trace();
    }
    let known = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        fault::disarm();
        PANICS.fetch_add(1, Ordering::SeqCst);
        known(panic);
    }));
    fault::plan(Plan {
        resource,
        shape,
        nth,
    });
    if let Err(error) = filter::install(resource) {
        println!("unavailable {error}");
        return 0;
    }
    let mut step = (operation.setup)();
    let outcome = match mode.as_str() {
        "cold" => cold(&mut step),
        _ => warm(&mut step),
    };
    println!(
        "refused={} panics={} largest={} {outcome}",
        fault::refused(),
        PANICS.load(Ordering::SeqCst),
        fault::largest(),
    );
    0
}

/// Many runs abort on purpose.
fn no_core_dump() {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the limit is a local variable.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
}

/// The shortage occurs when the process runs the operation for the first time.
fn cold(step: &mut Step) -> String {
    fault::enable(true);
    let first = step();
    fault::enable(false);
    let again = step();
    describe(&BTreeSet::from([shown(&first)]), &again, "")
}

/// The shortage occurs repeatedly, in a process that has already run the operation.
fn warm(step: &mut Step) -> String {
    let mut outcomes = BTreeSet::new();
    let again = step();
    if again.is_err() {
        return describe(&outcomes, &again, "");
    }
    let mut leak = Ok(());
    for window in 0..=WINDOWS {
        let before = Census::take();
        let rounds = if window == 0 { WARM_UP } else { ROUNDS };
        for _ in 0..rounds {
            fault::enable(true);
            let ended = step();
            fault::enable(false);
            outcomes.insert(shown(&ended));
            let again = step();
            let is_violation = ended.is_err_and(|problem| problem.is_violation());
            // If the operation makes fewer requests, there is nothing to compare.
            if again.is_err() || is_violation || fault::refused() == 0 {
                return describe(&outcomes, &again, "");
            }
        }
        if window > 0 {
            leak = Census::compare(&before, ROUNDS);
            if leak.is_ok() {
                break;
            }
        }
    }
    describe(&outcomes, &Ok(()), &leak.err().unwrap_or_default())
}

/// A code, whether it is retryable, and a text.
fn shown(result: &Result<(), Problem>) -> String {
    match result {
        Ok(()) => "ok:0:".to_owned(),
        Err(problem) => {
            let text = problem.text.replace(['\t', '\n', ';'], " ");
            format!("{}:{}:{text}", problem.code, u8::from(problem.retryable))
        }
    }
}

/// Fields separated by tabs: how the operation ended (several outcomes separated by semicolons),
/// how it ended without a shortage afterwards, and what it left behind.
fn describe(outcomes: &BTreeSet<String>, again: &Result<(), Problem>, leak: &str) -> String {
    let outcomes: Vec<_> = outcomes.iter().map(String::as_str).collect();
    format!("\t{}\t{}\t{leak}", outcomes.join(";"), shown(again))
}
