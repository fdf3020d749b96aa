//! `thalweg-faults OPERATION RESOURCE SHAPE NTH MODE`: one operation under one shortage, and a line that says how it ended.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_faults::allocator::{self, Refusing};
use thalweg_faults::census::Census;
use thalweg_faults::fault::{self, Plan, Resource, Shape};
use thalweg_faults::operations::{self, Problem};
use thalweg_faults::{filter, operations::Step};

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

static PANICS: AtomicU64 = AtomicU64::new(0);

/// Rounds before the first count: caches fill up.
const WARM_UP: usize = 6;
/// Rounds between the two counts.
const ROUNDS: usize = 24;

fn main() -> ExitCode {
    allocator::keep_to_the_heap();
    no_core_dump();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [operation, resource, shape, nth, mode] = &arguments[..] else {
        eprintln!("usage: thalweg-faults OPERATION RESOURCE SHAPE NTH cold|warm");
        return ExitCode::from(2);
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
        return ExitCode::from(2);
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
        return ExitCode::SUCCESS;
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
    ExitCode::SUCCESS
}

/// Many runs end by an abort, on purpose.
fn no_core_dump() {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the limit is this frame's.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
}

/// The operation meets the shortage when the process does it for the first time.
fn cold(step: &mut Step) -> String {
    fault::enable(true);
    let first = step();
    fault::enable(false);
    let again = step();
    describe(&BTreeSet::from([shown(&first)]), &again, "")
}

/// The operation meets the shortage again and again, in a process that has done it before.
fn warm(step: &mut Step) -> String {
    let mut outcomes = BTreeSet::new();
    let mut again = step();
    let mut before = None;
    for round in 0..WARM_UP + ROUNDS {
        if again.is_err() {
            break;
        }
        if round == WARM_UP {
            before = Some(Census::take());
        }
        fault::enable(true);
        let ended = step();
        fault::enable(false);
        outcomes.insert(shown(&ended));
        if ended.is_err_and(|problem| problem.is_violation()) {
            break;
        }
        again = step();
        if round == 0 && fault::refused() == 0 {
            // The operation asks for fewer: what it leaves behind without a shortage is seen where the first is refused.
            break;
        }
    }
    let leak = match before {
        Some(before) if again.is_ok() => Census::compare(&before, ROUNDS),
        _ => Ok(()),
    };
    describe(&outcomes, &again, &leak.err().unwrap_or_default())
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

/// Fields between tabs: how the operation ended (more than one way, between semicolons), how it ended without a shortage after that, what it left behind.
fn describe(outcomes: &BTreeSet<String>, again: &Result<(), Problem>, leak: &str) -> String {
    let outcomes: Vec<_> = outcomes.iter().map(String::as_str).collect();
    format!("\t{}\t{}\t{leak}", outcomes.join(";"), shown(again))
}
