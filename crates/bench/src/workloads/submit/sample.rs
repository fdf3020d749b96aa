//! One sample: K producers, each with its block of requests, and one consumer.
//!
//! 1. Before the timer starts, the ingress, the threads and the producers' blocks are created. The
//!    blocks are touched, so that no page is new. The consumer sleeps.
//! 2. The producers wait at the start gate, polling it and yielding. The timer starts when the first
//!    of them has passed the gate and ends when the last one has returned from its last submission.
//!    The time includes filling in each request and handing it over.
//! 3. Then the consumer has [`Load::settle`] to run the remaining requests. After that time, or
//!    when all were run, it receives the stop signal, and runs the requests that it still finds. A
//!    lost wake-up shows as requests missing at the deadline, a request that arrives twice as one
//!    too many.
//! 4. The books must show no error ([`Books::fault`]), and no submission may have failed.

use std::hint::spin_loop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::grid::Load;
use super::path::Ingress;
use super::request::{Books, Request, Submitted};
use crate::cell::Sample;
use crate::problem::Problem;

/// The checks of every sample, as recorded in results.
pub const CHECKED: &str = "callbacks = submissions, none twice, none failed, each producer's in order, payloads and scalars intact";

/// Polls of the start gate before a producer yields: with more producers than processors, the
/// others must reach the gate, too.
const LOOKS: u32 = 64;

/// The time for the consumer to fall asleep before the start: a submission begins at an idle
/// ingress.
const FALL_ASLEEP: Duration = Duration::from_millis(1);

/// Where the threads of a sample wait for each other.
#[derive(Debug, Default)]
pub struct StartGate {
    ready: AtomicUsize,
    open: AtomicBool,
}

impl StartGate {
    /// Waits until the gate opens, and returns the time.
    pub fn pass(&self) -> Instant {
        self.ready.fetch_add(1, Ordering::Release);
        let mut looks = 0;
        while !self.open.load(Ordering::Acquire) {
            looks += 1;
            if looks % LOOKS == 0 {
                thread::yield_now();
            }
            spin_loop();
        }
        Instant::now()
    }

    /// Opens the gate when `threads` are waiting and the consumer has fallen asleep. `before` is
    /// called just before that.
    pub fn open_for<T>(&self, threads: usize, before: impl FnOnce() -> T) -> T {
        while self.ready.load(Ordering::Acquire) < threads {
            thread::yield_now();
        }
        thread::sleep(FALL_ASLEEP);
        let before = before();
        self.open.store(true, Ordering::Release);
        before
    }
}

/// The state that producers, the consumer and the main thread share.
#[derive(Debug)]
struct Meeting {
    gate: StartGate,
    /// How many requests were run.
    run: AtomicU64,
    waiting: Thread,
}

/// The results of a producer.
struct Produced {
    // Kept alive until the consumer, which reads it, is gone.
    _block: Vec<Request>,
    wakes: u64,
    began: Instant,
    returned: Instant,
    refused: u64,
}

/// Takes one sample of `I`.
///
/// # Errors
/// A request is missing, duplicated, out of order, damaged or refused; or the operating system
/// reports an error.
pub fn take<I: Ingress>(load: &Load) -> Result<Sample, Problem> {
    let (ingress, entries, exit) =
        I::open(load.producers).map_err(Problem::io("cannot open an ingress"))?;
    let ingress = Arc::new(ingress);
    let meeting = Arc::new(Meeting {
        gate: StartGate::default(),
        run: AtomicU64::new(0),
        waiting: thread::current(),
    });
    let consumer = thread::spawn({
        let (meeting, ingress) = (Arc::clone(&meeting), Arc::clone(&ingress));
        let books = Books::new(load.producers, load.each);
        move || consume(&*ingress, exit, books, &meeting)
    });
    let producers = entries.into_iter().enumerate().map(|(producer, entry)| {
        let (meeting, ingress) = (Arc::clone(&meeting), Arc::clone(&ingress));
        let each = load.each;
        thread::spawn(move || produce(&*ingress, entry, producer, each, &meeting))
    });
    let producers: Vec<_> = producers.collect();
    meeting.gate.open_for(load.producers, || ());
    let produced: Vec<Produced> = producers
        .into_iter()
        .map(|producer| producer.join().expect("a producer has nothing to panic at"))
        .collect();
    let ends = produced.iter().map(|one| (one.began, one.returned));
    let (started, elapsed) = span(ends).expect("there is a producer");

    let total = load.producers as u64 * load.each;
    let deadline = Instant::now() + load.settle;
    while meeting.run.load(Ordering::Acquire) < total {
        let Some(left) = deadline.checked_duration_since(Instant::now()) else {
            break;
        };
        thread::park_timeout(left);
    }
    let in_time = meeting.run.load(Ordering::Acquire);
    ingress.stop();
    let books = consumer.join().expect("a consumer has nothing to panic at");
    let refused: u64 = produced.iter().map(|one| one.refused).sum();
    let counted = produced.iter().map(|one| one.wakes).sum();
    let wakes = ingress.wakes().unwrap_or(counted);
    // The consumer is gone: no thread reads the requests any more, or waits at an end of the
    // ingress.
    drop(produced);

    if refused > 0 {
        return Err(Problem::Check(format!(
            "{refused} of {total} submissions failed"
        )));
    }
    if in_time < total {
        return Err(Problem::Check(format!(
            "{} of {total} requests were not run {:?} after the last submission",
            total - in_time,
            load.settle
        )));
    }
    if let Some(fault) = books.fault() {
        return Err(Problem::Check(fault));
    }
    let mut sample = Sample::of(elapsed, total);
    if let Some(finished) = books.finished {
        let took = (finished - started).as_secs_f64();
        sample = sample.with("completed_per_s", total as f64 / took);
    }
    if wakes > 0 {
        sample = sample.with("items_per_wake", total as f64 / wakes as f64);
    }
    Ok(sample)
}

/// The earliest beginning of these threads, and the time from there to the latest end.
#[must_use]
pub fn span(
    threads: impl Iterator<Item = (Instant, Instant)> + Clone,
) -> Option<(Instant, Duration)> {
    let began = threads.clone().map(|(began, _)| began).min()?;
    let ended = threads.map(|(_, ended)| ended).max()?;
    Some((began, ended - began))
}

fn consume<I: Ingress>(ingress: &I, exit: I::Exit, mut books: Books, meeting: &Meeting) -> Books {
    let total = books.total();
    ingress.consume(exit, |request| {
        request.run(&mut books);
        let count = books.count();
        meeting.run.store(count, Ordering::Release);
        if count == total {
            meeting.waiting.unpark();
        }
    });
    books
}

fn produce<I: Ingress>(
    ingress: &I,
    mut entry: I::Entry,
    producer: usize,
    each: u64,
    meeting: &Meeting,
) -> Produced {
    let mut block: Vec<Request> = (0..each).map(|_| Request::blank()).collect();
    let began = meeting.gate.pass();
    let (mut refused, mut wakes) = (0, 0);
    for (request, id) in block.iter_mut().zip(0..) {
        request.fill(producer, id);
        let submitted = Submitted(NonNull::from(request));
        // SAFETY: no thread touches a request of the block again until the block is dropped, after
        // the consumer is gone.
        match unsafe { ingress.submit(&mut entry, submitted) } {
            Ok(woke) => wakes += u64::from(woke),
            Err(_) => refused += 1,
        }
    }
    Produced {
        began,
        returned: Instant::now(),
        _block: block,
        wakes,
        refused,
    }
}

#[cfg(test)]
mod tests;
