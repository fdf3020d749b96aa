//! Runs every operation with the Nth resource refused. It must succeed, return a typed error that
//! the table allows, or end the process as documented.
//!
//! `cargo test` tries small N; `make prove-faults` continues until an operation makes fewer than N
//! requests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_faults::fault::{Resource, STACKS, Shape};
use thalweg_faults::operations::{self, Operation};

/// How an operation may end when a resource is refused.
struct Allowed {
    resources: &'static [Resource],
    /// A part of the name of the operation.
    operation: &'static str,
    /// A part of the text of the error.
    text: &'static str,
    code: &'static str,
    /// Whether the error must be retryable. Rust's own errors do not report it, which counts as
    /// `false`.
    retryable: bool,
}

const fn allowed(resources: &'static [Resource], code: &'static str) -> Allowed {
    Allowed {
        resources,
        operation: "",
        text: "",
        code,
        retryable: false,
    }
}

const ALLOWED: &[Allowed] = &[
    // The boundary uses one outcome for all of them.
    Allowed {
        retryable: true,
        ..allowed(&Resource::ALL, "overloaded")
    },
    // The service has run, but there is no memory for its answer.
    Allowed {
        text: "there is no memory for the result",
        ..allowed(&[Resource::Allocation], "guest_lost")
    },
    // The service drops its writer after a failed `send`, and the reader gets the reason.
    Allowed {
        text: "a writer was dropped after a send failed: overloaded",
        ..allowed(&[Resource::Allocation], "guest_lost")
    },
    Allowed {
        operation: ".subscribe",
        ..allowed(&[Resource::Allocation], "guest_lost")
    },
    allowed(&THREADS, "start.thread"),
    allowed(&STACK, "join.no_stack"),
    allowed(&STACK, "exit.no_stack"),
    allowed(&[Resource::Allocation], "channel.refused"),
    allowed(&[Resource::Allocation], "encode"),
    allowed(&[Resource::Epoll], "io.28"),
    allowed(&[Resource::Eventfd], "io.24"),
];

/// The resources of a thread.
const THREADS: [Resource; 3] = [Resource::Thread, Resource::Mmap, Resource::Mprotect];

/// The resources of an actor's stack.
const STACK: [Resource; 5] = [
    Resource::Stack,
    Resource::Allocation,
    Resource::Mmap,
    Resource::Mprotect,
    Resource::Madvise,
];

/// For a larger allocation, the caller chooses the size: its failure is an error.
const SMALL: u64 = 16 << 10;

/// The ways in which a shortage ends the process. `docs/reliability.md` lists the same names and
/// the reasons.
const ABORTS: &[Abort] = &[
    Abort {
        name: "small-allocation",
        resources: &[Resource::Allocation],
        is_it: |case, stderr| {
            if !stderr.contains("memory allocation of ") {
                return false;
            }
            // The allocator writes each size in one system call. The message of the standard library
            // may be mixed with that of another thread. An operation may be tried several times, and
            // each time one allocation is refused, so the last one ended the process.
            let last = stderr.lines().rev().find_map(|line| {
                let (_, size) = line.split_once("refused-bytes=")?;
                size.get(..20)?.parse::<u64>().ok()
            });
            let is_small = last.is_some_and(|size| size <= SMALL);
            case.shape == Shape::Lasting || is_small
        },
    },
    Abort {
        name: "transcode",
        resources: &[Resource::Allocation],
        is_it: |case, stderr| {
            case.operation == "table.transcode" && stderr.contains("memory allocation of ")
        },
    },
    // The standard library allocates it for each thread of a Rust program.
    Abort {
        name: "signal-stack",
        resources: &[Resource::Mmap, Resource::Mprotect],
        is_it: |_, stderr| {
            let mut panics = stderr
                .lines()
                .filter(|line| line.contains("panicked at"))
                .peekable();
            panics.peek().is_some() && panics.all(|line| line.contains("unix/stack_overflow.rs"))
        },
    },
    // `run` returns the result of its closure, so it panics if it cannot start.
    Abort {
        name: "run-panics",
        resources: &[
            Resource::Allocation,
            Resource::Thread,
            Resource::Mmap,
            Resource::Mprotect,
        ],
        is_it: |_, stderr| {
            let mut panics = stderr.lines().filter(|line| line.contains("panicked at"));
            panics.all(|line| line.contains("runtime/src/runtime.rs"))
                && (stderr.contains("there was no stack for the actor")
                    || stderr.contains("the system has no thread for the runtime"))
        },
    },
];

struct Abort {
    name: &'static str,
    resources: &'static [Resource],
    is_it: fn(&Case, &str) -> bool,
}

/// Longer than any run takes on a loaded machine.
const BOUND: Duration = Duration::from_secs(30);

/// One case: an operation, a resource, a shape and a mode, to be run with increasing N.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Case {
    operation: &'static str,
    resource: Resource,
    shape: Shape,
    mode: &'static str,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            operation,
            resource,
            shape,
            mode,
        } = self;
        write!(
            f,
            "{operation} {} {} NTH {mode}",
            resource.name(),
            shape.name()
        )
    }
}

/// How one run ended.
enum Run {
    /// The operation made fewer requests.
    NotReached,
    /// It ended in an allowed way.
    Ended(String),
    /// The filter cannot be installed on this machine.
    Unavailable(String),
    /// It ended in a way that is not allowed.
    Violated(String),
    /// It ended in a way that is not allowed, and a larger N would give no new information.
    Useless(String),
}

fn run(case: Case, nth: u64) -> Run {
    // The C table is used by a process that is not a Rust program.
    let mut command = Command::new(match case.operation.starts_with("table.") {
        true => env!("CARGO_BIN_EXE_thalweg-faults-host"),
        false => env!("CARGO_BIN_EXE_thalweg-faults"),
    });
    let nth_text = nth.to_string();
    command
        .args([
            case.operation,
            case.resource.name(),
            case.shape.name(),
            &nth_text,
            case.mode,
        ])
        .env_clear()
        // Printing the backtrace of an abort would request more memory.
        .env(
            "RUST_BACKTRACE",
            if case.shape == Shape::Lasting {
                "1"
            } else {
                "0"
            },
        )
        // A stall report resolves function names, which allocates. On a busy machine, any run may
        // produce one.
        .env("THALWEG_STALL", "off")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if case.resource == Resource::Stack {
        let stacks = STACKS.to_string();
        command
            .env("THALWEG_WORKERS", "1")
            .env("THALWEG_MAX_STACKS", stacks);
    } else {
        command.env("THALWEG_WORKERS", "2");
    }
    let mut child = command.spawn().expect("cargo built it");
    let (mut out, mut err) = (String::new(), Vec::new());
    let mut stdout = child.stdout.take().expect("it is piped");
    let mut stderr = child.stderr.take().expect("it is piped");
    let begun = Instant::now();
    let mut hung = false;
    let status = thread::scope(|scope| {
        scope.spawn(|| stdout.read_to_string(&mut out));
        scope.spawn(|| stderr.read_to_end(&mut err));
        loop {
            if let Some(status) = child.try_wait().expect("it is our child") {
                return status;
            }
            if begun.elapsed() > BOUND && !hung {
                hung = true;
                child.kill().expect("it is our child");
            }
            thread::sleep(Duration::from_millis(1));
        }
    });
    let err = String::from_utf8_lossy(&err).into_owned();
    let tail = || tail(&err);
    if hung {
        return Run::Useless(format!("it hangs: {}", tail()));
    }
    // A thread that panics outside any handler may find the process exiting.
    let documented = ABORTS
        .iter()
        .find(|abort| abort.resources.contains(&case.resource) && (abort.is_it)(&case, &err));
    if let Some(abort) = documented {
        return Run::Ended(format!("abort {}", abort.name));
    }
    if let Some(signal) = status.signal() {
        return Run::Violated(format!("signal {signal}: {}", tail()));
    }
    if let Some(why) = out.strip_prefix("unavailable ") {
        return Run::Unavailable(why.to_owned());
    }
    let fields: Vec<_> = out.trim_end_matches('\n').split('\t').collect();
    let &[counts, outcomes, again, leak] = &fields[..] else {
        return Run::Violated(format!("{status}: {}", tail()));
    };
    let refused = !counts.starts_with("refused=0 ");
    let violation = if !counts.contains(" panics=0 ") {
        Some(format!("it panics: {}", tail()))
    } else if !again.starts_with("ok:") {
        Some(format!("it does not recover: {again}, after {outcomes}"))
    } else if !leak.is_empty() {
        Some(format!("it leaks: {leak}, after {outcomes}"))
    } else {
        let mut outcomes = outcomes.split(';');
        outcomes
            .find(|outcome| {
                let is_expected = refused && is_allowed(case, outcome);
                !(outcome.starts_with("ok:") || is_expected)
            })
            .map(|outcome| format!("it ends as {outcome}"))
    };
    match violation {
        Some(violation) if !refused => Run::Useless(violation),
        Some(violation) => Run::Violated(violation),
        None if refused => Run::Ended(names(outcomes)),
        None => Run::NotReached,
    }
}

/// The panic message, if there is one, and the last line.
fn tail(stderr: &str) -> String {
    let lines: Vec<_> = stderr.lines().filter(|line| !line.is_empty()).collect();
    let panic = lines
        .iter()
        .position(|line| line.contains("panicked at") || line.contains("memory allocation of"));
    let panic = panic.map_or(&[][..], |at| &lines[at..lines.len().min(at + 2)]);
    let last = lines.last().copied().unwrap_or_default();
    format!("{} / {last}", panic.join(" / "))
}

/// The outcomes without their texts.
fn names(outcomes: &str) -> String {
    let names: BTreeSet<_> = outcomes
        .split(';')
        .filter_map(|o| o.split(':').next())
        .collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

fn is_allowed(case: Case, outcome: &str) -> bool {
    let mut fields = outcome.splitn(3, ':');
    let (code, retryable) = (fields.next(), fields.next() == Some("1"));
    let text = fields.next().unwrap_or_default();
    ALLOWED.iter().any(|allowed| {
        allowed.resources.contains(&case.resource)
            && case.operation.contains(allowed.operation)
            && text.contains(allowed.text)
            && code == Some(allowed.code)
            && retryable == allowed.retryable
    })
}

fn cases(filter: impl Fn(&Case) -> bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for Operation {
        name, has_runtime, ..
    } in operations::ALL
    {
        for resource in Resource::ALL {
            for shape in [Shape::Once, Shape::Lasting] {
                for mode in ["cold", "warm"] {
                    let case = Case {
                        operation: name,
                        resource,
                        shape,
                        mode,
                    };
                    let is_sensible = match resource {
                        // The number of free stacks is the only variable.
                        Resource::Stack => *has_runtime && shape == Shape::Lasting,
                        _ => true,
                    };
                    if is_sensible && filter(&case) {
                        cases.push(case);
                    }
                }
            }
        }
    }
    cases
}

/// Runs the cases in parallel, each with N from 1 to `most`. `all`: every documented abort must
/// occur in them.
fn try_all(cases: &[Case], most: u64, all: bool) {
    let next = AtomicUsize::new(0);
    let ended = Mutex::new(BTreeMap::<String, u64>::new());
    let violations = Mutex::new(BTreeMap::<(Case, String), Vec<u64>>::new());
    let unavailable = Mutex::new(BTreeSet::new());
    let lanes = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for nth in 1..=most {
                        match run(*case, nth) {
                            Run::NotReached => break,
                            Run::Ended(how) => {
                                let how = format!("{:<11} {how}", case.resource.name());
                                *ended.lock().unwrap().entry(how).or_default() += 1;
                            }
                            Run::Unavailable(why) => {
                                unavailable.lock().unwrap().insert(why);
                                break;
                            }
                            Run::Violated(why) => {
                                let mut violations = violations.lock().unwrap();
                                violations.entry((*case, why)).or_default().push(nth);
                            }
                            Run::Useless(why) => {
                                let mut violations = violations.lock().unwrap();
                                violations.entry((*case, why)).or_default().push(nth);
                                break;
                            }
                        }
                    }
                }
            });
        }
    });
    let (ended, violations) = (
        ended.into_inner().unwrap(),
        violations.into_inner().unwrap(),
    );
    let mut report = String::new();
    for (how, times) in &ended {
        let _ = writeln!(report, "{times:>6} x {how}");
    }
    println!("{report}");
    let unavailable = unavailable.into_inner().unwrap();
    if !unavailable.is_empty() {
        // In CI, a check that cannot run is an error, because no other job runs it.
        assert!(
            std::env::var_os("CI").is_none(),
            "no seccomp filter: {unavailable:?}"
        );
        eprintln!("system calls were not refused: no seccomp filter here: {unavailable:?}");
    }
    let mut report = String::new();
    for ((case, why), nths) in &violations {
        let _ = writeln!(report, "{case}, N {nths:?}: {why}");
    }
    assert!(violations.is_empty(), "\n{report}");
    for abort in ABORTS.iter().filter(|_| all) {
        let suffix = format!("abort {}", abort.name);
        let is_hit = ended.keys().any(|how| how.ends_with(&suffix));
        let is_asked = cases
            .iter()
            .any(|case| abort.resources.contains(&case.resource));
        assert!(
            is_hit || !is_asked,
            "{} is documented and never happens",
            abort.name
        );
    }
}

#[test]
fn operation_with_a_small_nth_resource_refused_ends_as_documented() {
    // The first case of its kind, and the first of the process.
    try_all(
        &cases(|case| {
            case.mode == "cold" && (case.shape == Shape::Once || case.resource == Resource::Stack)
        }),
        4,
        false,
    );
}

/// `THALWEG_FAULTS=table.stream` selects cases by a part of `OPERATION RESOURCE SHAPE NTH MODE`.
#[test]
#[ignore = "minutes: make prove-faults"]
fn operation_with_every_nth_resource_refused_ends_as_documented() {
    let pattern = std::env::var("THALWEG_FAULTS").unwrap_or_default();
    let words: Vec<_> = pattern.split_whitespace().collect();
    let is_chosen = |case: &Case| {
        let text = case.to_string();
        words.iter().all(|word| text.contains(word))
    };
    try_all(&cases(is_chosen), u64::MAX, words.is_empty());
}

#[test]
fn aborts_are_those_of_the_page() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reliability.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let names = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let names: Vec<_> = names.map(|(name, _)| name).collect();
    for abort in ABORTS {
        assert!(
            names.contains(&abort.name),
            "{} is not on the page: {names:?}",
            abort.name
        );
    }
}
