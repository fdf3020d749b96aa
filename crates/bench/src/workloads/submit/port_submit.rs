//! `port_submit`: K threads submit calls to one instance through the C table of a library.
//!
//! 1. Each thread has its own port, like a `tw_client` that is attached to the instance. Before the
//!    timer starts, the instance and the ports are open, the messages of all calls are written, and
//!    each thread has made its calls once and reaped them. The timed calls therefore use memory that
//!    has been used before, on all sides. The threads that serve calls sleep.
//! 2. The timer runs from the first thread's first submission until the last thread has returned
//!    from its last one. The service runs meanwhile; no thread reaps, because every port has a slot
//!    for each of its thread's calls. All calls of a sample fit into the mailbox of the instance
//!    ([`DEEP_CALLS`]): above 13 threads each makes fewer than 20,000.
//! 3. Then each thread reaps its completions. The calls are `lab.parity`, whose result follows from
//!    the call's number, so each completion is checked: its order, its token, its outcome and its
//!    result. A lost wake-up of the service, or of a thread that waits at its port, shows as
//!    completions that are missing after [`Load::settle`].
//! 4. At the end, no port may have a further completion.

use thalweg::wire::message;
use thalweg_capi::abi::{
    TW_COMPLETION_CALL, TW_OK, TW_OVERLOADED, TW_TIMED_OUT, TwCompletion, TwHandle, TwSubmission,
};
use thalweg_lab::lab::LabServer;
use thalweg_lab::{DEEP_CALLS, LabService, predicates};
use thalweg_queue::clock;

use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::gate;
use super::grid::{Grid, Load, Subject, find, open};
use super::knobs::{GATED, Settings};
use super::sample::{StartGate, span};
use super::table::{Functions, checked, thalweg};
use super::table_peers::{GLOBAL_LOCK, MUTEX_SHARDS, ONE_MUTEX};
use crate::cell::Sample;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::placement::allowed;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::Workload;
use crate::workloads::idle::Switches;

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "port_submit",
    group: "boundary",
    what: "Calls per second that K threads submit to one instance through the C table, one or 64 per submission, until the last submission has returned.",
    source: "nim-ffi's submission benchmark and its gate: does submission scale with the threads of a foreign host?",
    peers: &["one_mutex", "mutex_shards"],
    seconds: 240,
    run,
    knobs: GATED,
    cells: Some(|cell| open(cell, &SUBJECTS)),
};

/// All subjects. `global_lock` is only measured by the test of the gate.
pub static SUBJECTS: [Subject; 8] = [
    subject("thalweg", "1", |load| take(&thalweg()?, 1, load)),
    subject("one_mutex", "1", |load| take(&ONE_MUTEX, 1, load)),
    subject("mutex_shards", "1", |load| take(&MUTEX_SHARDS, 1, load)),
    subject("global_lock", "1", |load| take(&GLOBAL_LOCK, 1, load)),
    subject("thalweg", "64", |load| take(&thalweg()?, 64, load)),
    subject("one_mutex", "64", |load| take(&ONE_MUTEX, 64, load)),
    subject("mutex_shards", "64", |load| take(&MUTEX_SHARDS, 64, load)),
    subject("global_lock", "64", |load| take(&GLOBAL_LOCK, 64, load)),
];

const fn subject(
    name: &'static str,
    variant: &'static str,
    take: fn(&Load) -> Result<Sample, Problem>,
) -> Subject {
    Subject {
        name,
        variant,
        take,
    }
}

/// The checks of every sample.
const CHECKED: &str = "completions = submissions, each client's in order, each with its token and its result, none after the last; services and clients that slept were woken";

/// Calls per submission.
const BATCHES: [&str; 2] = ["1", "64"];

/// Limit from two threads up, relative to each peer.
const FASTER: Target = Target::Ratio(1.0);

/// Limits of one call per submission without a peer, by the number of threads.
const BY_THREADS: [(usize, Target); 2] = [
    (8, Target::AtLeast("scaling_vs_1", 0.9)),
    (100, Target::Metric("cost_vs_4", 1.5)),
];

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let settings = Settings::of(lab, GATED)?;
    let measured = SUBJECTS.iter().filter(|one| one.name != "global_lock");
    let grid = Grid::take(lab, &WORKLOAD, &settings, measured)?;
    let found = |name, batch| find(&SUBJECTS, name, batch).expect("it is a subject");
    let mut rows = Vec::new();
    for batch in BATCHES {
        let ours = found("thalweg", batch);
        for &producers in &settings.producers {
            let each = each(settings.each, producers).to_string();
            let params = [("batch", batch), ("each", &each)];
            let peers = WORKLOAD.peers.iter().map(|peer| Some(found(peer, batch)));
            for peer in peers.chain([None]) {
                let row = grid.row(ours, producers, peer, &params, CHECKED);
                let target = target(batch, producers, peer.is_some());
                rows.push(match target {
                    Some(target) => row.held_to(target, lab.refusal()),
                    None => row,
                });
            }
        }
    }
    let (ours, top) = (found("thalweg", "1"), settings.top());
    let each = each(settings.each, top).to_string();
    let params = [("batch", "1"), ("each", &each), ("gate", "scaling")];
    let refusal = gate::refusal(allowed().len(), settings.gate, lab.refusal());
    let row = grid.row(ours, top, None, &params, CHECKED);
    rows.push(row.held_to(&gate::REQUIRED, refusal.as_deref()));
    Ok(rows)
}

fn target(batch: &str, producers: usize, has_peer: bool) -> Option<&'static Target> {
    if has_peer {
        return (producers > 1).then_some(&FASTER);
    }
    let (_, target) = BY_THREADS.iter().find(|(count, _)| *count == producers)?;
    (batch == "1").then_some(target)
}

/// The number of calls of each thread: all of them fit into the mailbox and into the port.
fn each(wanted: u64, producers: usize) -> u64 {
    let mailbox = u64::from(DEEP_CALLS) / producers as u64;
    wanted.min(mailbox).min(65_536)
}

/// The calls of one thread, with its port.
struct Calls {
    port: TwHandle,
    /// The calls, whose arguments point into `_messages`.
    calls: Vec<TwSubmission>,
    _messages: Vec<Vec<u8>>,
    /// The number of the next completion.
    due: u64,
}

// SAFETY: the pointers point into memory that it owns.
unsafe impl Send for Calls {}

impl Calls {
    fn open(
        table: &Functions,
        client: TwHandle,
        thread: usize,
        each: u64,
    ) -> Result<Self, Problem> {
        let mut port = 0;
        // SAFETY: the pointers are valid, and errors are not requested.
        checked("port_open", unsafe {
            (table.port_open)(each as u32, &mut port, null_mut())
        })?;
        let layout = parity_layout();
        let message = |number| {
            let scalars = predicates::scalars(number);
            let arguments = (scalars.a, scalars.b, scalars.x);
            message::encode(&arguments, layout, Vec::new()).expect("it is small")
        };
        let messages: Vec<Vec<u8>> = (0..each).map(message).collect();
        let call = |(number, message): (u64, &Vec<u8>)| TwSubmission {
            token: token(thread, number),
            client,
            method: table.method,
            flags: 0,
            args: message.as_ptr(),
            args_size: message.len() as u64,
            deadline_ns: 0,
            call: 0,
        };
        Ok(Self {
            port,
            calls: (0..).zip(&messages).map(call).collect(),
            _messages: messages,
            due: 0,
        })
    }

    /// Submits all calls, `batch` at a time. A submission that is refused because there is no
    /// capacity is repeated.
    fn submit(&mut self, table: &Functions, batch: usize) -> Result<(), Problem> {
        for calls in self.calls.chunks_mut(batch) {
            let mut rest = calls;
            while !rest.is_empty() {
                let mut accepted = 0;
                // SAFETY: the port is open, and the messages live until the calls have ended.
                let code = unsafe {
                    (table.submit)(
                        self.port,
                        rest.as_mut_ptr(),
                        rest.len() as u32,
                        &mut accepted,
                        null_mut(),
                    )
                };
                rest = &mut rest[accepted as usize..];
                match code {
                    TW_OVERLOADED => thread::yield_now(),
                    code => checked("submit", code)?,
                }
            }
        }
        Ok(())
    }

    /// Reaps until all calls have completed.
    fn reap_all(&mut self, table: &Functions, settle: Duration) -> Result<(), Problem> {
        let deadline = clock::deadline(settle);
        while self.due < self.calls.len() as u64 {
            if self.reap(table)? > 0 {
                continue;
            }
            // SAFETY: the port is open, and no other thread waits on it.
            match unsafe { (table.port_wait)(self.port, deadline, null_mut()) } {
                TW_TIMED_OUT => {
                    return Err(Problem::Check(format!(
                        "{} of a thread's {} calls did not complete within {settle:?} of its last submission",
                        self.calls.len() as u64 - self.due,
                        self.calls.len(),
                    )));
                }
                code => checked("port_wait", code)?,
            }
        }
        Ok(())
    }

    /// Reaps and checks the available completions, up to 64, and returns how many there were.
    fn reap(&mut self, table: &Functions) -> Result<u32, Problem> {
        let mut out = [NONE; 64];
        let mut count = 0;
        // SAFETY: the port is open, no other thread reaps it, and `out` has room for 64.
        checked("port_reap", unsafe {
            (table.port_reap)(self.port, out.as_mut_ptr(), 64, &mut count, null_mut())
        })?;
        for completion in &mut out[..count as usize] {
            let fault = self.fault(completion);
            // SAFETY: the completion was reaped here and is released once.
            unsafe { (table.release)(completion) };
            if let Some(fault) = fault {
                return Err(Problem::Check(fault));
            }
            self.due += 1;
        }
        Ok(count)
    }

    /// What is wrong with the next completion.
    fn fault(&self, completion: &TwCompletion) -> Option<String> {
        let TwCompletion {
            token, kind, code, ..
        } = *completion;
        let Some(due) = self.calls.get(self.due as usize) else {
            return Some(format!("call {token:#x} completed after the last one"));
        };
        if token != due.token {
            return Some(format!(
                "call {token:#x} completed, and {:#x} was due",
                due.token
            ));
        }
        if (kind, code) != (TW_COMPLETION_CALL, TW_OK) {
            return Some(format!("call {token:#x} ended with code {code}"));
        }
        // SAFETY: a completion without an error has a message, whose root is after 16 bytes.
        let even = unsafe { *completion.data.add(16) } == 1;
        let wrong = even != self.due.is_multiple_of(2);
        wrong.then(|| format!("call {token:#x} has the result of another one"))
    }
}

const NONE: TwCompletion = TwCompletion {
    token: 0,
    call: 0,
    kind: 0,
    code: 0,
    data: null(),
    data_size: 0,
    message: null(),
    message_size: 0,
    retryable: 0,
    owner: 0,
};

fn token(thread: usize, number: u64) -> u64 {
    (thread as u64) << 32 | number
}

/// The layout of the parameters of `lab.parity`.
fn parity_layout() -> u64 {
    use thalweg::port::Service;
    let package = <LabServer<LabService> as Service>::PACKAGE;
    let mut methods = package.methods.iter();
    let parity = methods.find(|method| method.name == "lab.parity");
    parity.expect("the interface has it").params
}

/// The times of one thread: its first submission, its last submission's return, its last completion.
type Times = [Instant; 3];

fn client_thread(
    table: Functions,
    calls: &mut Calls,
    batch: usize,
    settle: Duration,
    gate: &StartGate,
) -> Result<Times, Problem> {
    // Rule 1. The other threads wait at the gate, even for a thread that has failed.
    let warmed_up = calls
        .submit(&table, batch)
        .and_then(|()| calls.reap_all(&table, settle));
    calls.due = 0;
    let began = gate.pass();
    warmed_up?;
    calls.submit(&table, batch)?;
    let returned = Instant::now();
    calls.reap_all(&table, settle)?;
    Ok([began, returned, Instant::now()])
}

/// Takes one sample.
fn take(table: &Functions, batch: usize, load: &Load) -> Result<Sample, Problem> {
    let table = *table;
    let each = each(load.each, load.producers);
    let mut client = 0;
    // SAFETY: the pointer is valid, and errors are not requested.
    checked("client_open", unsafe {
        (table.client_open)(&mut client, null_mut())
    })?;
    let mut all = Vec::new();
    for thread in 0..load.producers {
        all.push(Calls::open(&table, client, thread, each)?);
    }
    let gate = Arc::new(StartGate::default());
    let settle = load.settle;
    let threads: Vec<_> = all
        .into_iter()
        .map(|mut calls| {
            let gate = Arc::clone(&gate);
            thread::spawn(move || {
                let times = client_thread(table, &mut calls, batch, settle, &gate);
                (calls, times)
            })
        })
        .collect();
    let before = gate.open_for(load.producers, || sleeps(&table))?;
    let ended: Vec<(Calls, Result<Times, Problem>)> = threads
        .into_iter()
        .map(|thread| thread.join().expect("a thread has nothing to panic at"))
        .collect();
    let sleeps = sleeps(&table)?.saturating_sub(before);
    // The peers require that a client is closed before the ports of its calls.
    // SAFETY: the client is open.
    checked("client_close", unsafe {
        (table.client_close)(client, null_mut())
    })?;
    let mut times = Vec::new();
    for (mut calls, its) in ended {
        let its = its.and_then(|its| calls.reap(&table).map(|_| its));
        // SAFETY: the port is open, and no thread uses it any more.
        checked("port_close", unsafe {
            (table.port_close)(calls.port, null_mut())
        })?;
        times.push(its);
    }
    let times = times.into_iter().collect::<Result<Vec<Times>, Problem>>()?;
    let until = |end: usize| {
        let span = span(times.iter().map(move |its| (its[0], its[end])));
        span.expect("there is a thread").1
    };
    let total = load.producers as u64 * each;
    Ok(Sample::of(until(1), total)
        .with("completed_per_s", total as f64 / until(2).as_secs_f64())
        .with("items_per_wake", total as f64 / sleeps.max(1) as f64))
}

/// How often the threads that serve calls have gone to sleep so far.
fn sleeps(table: &Functions) -> Result<u64, Problem> {
    Ok(Switches::of(std::process::id(), table.threads)?.voluntary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::submit::table_peers::submit_without_wake;
    use thalweg_capi::abi::TwError;

    fn load(producers: usize, each: u64, settle: Duration) -> Load {
        Load {
            producers,
            each,
            settle,
        }
    }

    #[test]
    fn every_subject_completes_every_call_in_order() {
        for subject in &SUBJECTS {
            for producers in [1, 3, 20] {
                let taken = (subject.take)(&load(producers, 200, Duration::from_secs(30)));
                let sample = taken.unwrap_or_else(|problem| {
                    panic!("{} {}: {problem}", subject.name, subject.variant)
                });
                assert!(sample.ns > 0.0 && sample.metrics["completed_per_s"] > 0.0);
            }
        }
    }

    #[test]
    fn calls_of_all_threads_fit_into_the_mailbox_and_the_port() {
        assert_eq!(each(20_000, 8), 20_000);
        assert_eq!(each(20_000, 100), 2_621);
        assert_eq!(each(10_000_000, 1), 65_536);
    }

    const LOST: u8 = 0;
    const TWICE: u8 = 1;
    const SWAPPED: u8 = 2;
    const DAMAGED: u8 = 3;
    const REFUSED: u8 = 4;

    /// The submission of the peer `one_mutex` with one fault, in the call with number 7.
    unsafe extern "C" fn faulty<const FAULT: u8>(
        port: TwHandle,
        batch: *mut TwSubmission,
        count: u32,
        accepted: *mut u32,
        error: *mut TwError,
    ) -> u32 {
        // SAFETY: the driver passes `count` calls.
        let calls = unsafe { std::slice::from_raw_parts_mut(batch, count as usize) };
        let pass = |calls: &mut [TwSubmission]| {
            let count = calls.len() as u32;
            // SAFETY: the driver's arguments are passed on.
            unsafe { (ONE_MUTEX.submit)(port, calls.as_mut_ptr(), count, accepted, error) }
        };
        let Some(at) = calls.iter().position(|call| call.token == token(0, 7)) else {
            return pass(calls);
        };
        let mut changed = calls.to_vec();
        match FAULT {
            LOST => drop(changed.remove(at)),
            // In place of the next one, because the port has a slot for each call.
            TWICE => changed[at + 1] = changed[at],
            SWAPPED => changed.swap(at, at + 1),
            DAMAGED => changed[at].args = changed[at + 1].args,
            _ => return 10,
        }
        let code = pass(&mut changed);
        // SAFETY: the driver passes a valid pointer.
        unsafe { *accepted = count };
        code
    }

    fn caught(submit: super::super::table::Functions) -> String {
        match take(&submit, 64, &load(1, 100, Duration::from_millis(50))) {
            Err(Problem::Check(text)) => text,
            other => panic!("it was not caught: {other:?}"),
        }
    }

    fn with_fault<const FAULT: u8>() -> String {
        caught(Functions {
            submit: faulty::<FAULT>,
            ..ONE_MUTEX
        })
    }

    #[test]
    fn a_fault_of_one_call_is_caught() {
        assert_eq!(with_fault::<LOST>(), "call 0x8 completed, and 0x7 was due");
        assert_eq!(with_fault::<TWICE>(), "call 0x7 completed, and 0x8 was due");
        assert_eq!(
            with_fault::<SWAPPED>(),
            "call 0x8 completed, and 0x7 was due"
        );
        assert_eq!(
            with_fault::<DAMAGED>(),
            "call 0x7 has the result of another one"
        );
        assert_eq!(with_fault::<REFUSED>(), "submit returned 10");
    }

    #[test]
    fn a_consumer_that_is_not_woken_is_caught() {
        let text = caught(Functions {
            submit: submit_without_wake,
            ..ONE_MUTEX
        });
        assert_eq!(
            text,
            "100 of a thread's 100 calls did not complete within 50ms of its last submission"
        );
    }
}
