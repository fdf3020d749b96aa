//! One sample: K producers, each with its block of requests, and one consumer.
//!
//! 1. Before the timer starts, the ingress, the threads and the producers' blocks are created. The
//!    blocks are touched, so that no page is new. The consumer sleeps.
//! 2. The producers wait at the start gate, polling it and yielding. The timer starts when the gate
//!    opens and ends when the last producer has returned from its last submission. The time
//!    includes filling in each request and handing it over.
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

use super::ingress::{Consume, Ingress, Submit};
use super::request::{Books, Request, Submitted};
use crate::cell::Sample;
use crate::problem::Problem;

/// The parameters of a sample.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Threads that submit.
    pub producers: usize,
    /// Requests per producer.
    pub each: u64,
    /// How long the consumer may take for the remaining requests after the last producer has
    /// returned.
    pub settle: Duration,
}

/// Polls of the start gate before a producer yields: with more producers than processors, the
/// others must reach the gate, too.
const LOOKS: u32 = 64;

/// The time for the consumer to fall asleep before the start: a submission begins at an idle
/// ingress.
const FALL_ASLEEP: Duration = Duration::from_millis(1);

/// The state that producers, the consumer and the main thread share.
#[derive(Debug)]
struct Meeting {
    ready: AtomicUsize,
    open: AtomicBool,
    /// How many requests were run.
    run: AtomicU64,
    waiting: Thread,
}

/// The results of a producer.
struct Produced<S> {
    // Kept alive until the consumer, which reads it, is gone.
    _block: Vec<Request>,
    submitter: S,
    returned: Instant,
    refused: u64,
}

/// Takes one sample of `I`.
///
/// # Errors
/// A request is missing, duplicated, out of order, damaged or refused; or the operating system
/// reports an error.
pub fn take<I: Ingress>(load: &Load) -> Result<Sample, Problem> {
    let (submitters, consumer, stop) =
        I::open(load.producers).map_err(Problem::io("cannot open an ingress"))?;
    let meeting = Arc::new(Meeting {
        ready: AtomicUsize::new(0),
        open: AtomicBool::new(false),
        run: AtomicU64::new(0),
        waiting: thread::current(),
    });
    let consumer = thread::spawn({
        let meeting = Arc::clone(&meeting);
        let books = Books::new(load.producers, load.each);
        move || consume(consumer, books, &meeting)
    });
    let producers: Vec<_> = submitters
        .into_iter()
        .enumerate()
        .map(|(producer, submitter)| {
            let (meeting, each) = (Arc::clone(&meeting), load.each);
            thread::spawn(move || produce(producer, submitter, each, &meeting))
        })
        .collect();
    while meeting.ready.load(Ordering::Acquire) < load.producers {
        thread::yield_now();
    }
    thread::sleep(FALL_ASLEEP);

    let started = Instant::now();
    meeting.open.store(true, Ordering::Release);
    let produced: Vec<Produced<I::Submitter>> = producers
        .into_iter()
        .map(|producer| producer.join().expect("a producer has nothing to panic at"))
        .collect();
    let returned = produced.iter().map(|one| one.returned).max();
    let elapsed = returned.unwrap_or(started) - started;

    let total = load.producers as u64 * load.each;
    let deadline = Instant::now() + load.settle;
    while meeting.run.load(Ordering::Acquire) < total {
        let Some(left) = deadline.checked_duration_since(Instant::now()) else {
            break;
        };
        thread::park_timeout(left);
    }
    let in_time = meeting.run.load(Ordering::Acquire);
    stop();
    let books = consumer.join().expect("a consumer has nothing to panic at");
    let refused: u64 = produced.iter().map(|one| one.refused).sum();
    let wakes = I::wakes(produced.iter().map(|one| &one.submitter));
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

fn consume(consumer: impl Consume, mut books: Books, meeting: &Meeting) -> Books {
    let total = books.total();
    consumer.consume(|request| {
        request.run(&mut books);
        let count = books.count();
        meeting.run.store(count, Ordering::Release);
        if count == total {
            meeting.waiting.unpark();
        }
    });
    books
}

fn produce<S: Submit>(
    producer: usize,
    mut submitter: S,
    each: u64,
    meeting: &Meeting,
) -> Produced<S> {
    let mut block: Vec<Request> = (0..each).map(|_| Request::blank()).collect();
    meeting.ready.fetch_add(1, Ordering::Release);
    let mut looks = 0;
    while !meeting.open.load(Ordering::Acquire) {
        looks += 1;
        if looks % LOOKS == 0 {
            thread::yield_now();
        }
        spin_loop();
    }
    let mut refused = 0;
    for (request, id) in block.iter_mut().zip(0..) {
        request.fill(producer, id);
        let submitted = Submitted(NonNull::from(request));
        // SAFETY: no thread touches a request of the block again until the block is dropped, after
        // the consumer is gone.
        if unsafe { submitter.submit(submitted) }.is_err() {
            refused += 1;
        }
    }
    Produced {
        returned: Instant::now(),
        _block: block,
        submitter,
        refused,
    }
}

#[cfg(test)]
mod tests;
