//! `spsc_latency`: the round-trip time of a number to another thread and back.
//!
//! This is a closed loop: the next number is sent when the last one has returned, so there is no
//! fixed rate, and no latency is omitted. A round trip is timed from one arrival to the next, and
//! includes one reading of the clock. A peer waits as our side of its row does:
//!
//! | mode | how the ends wait |
//! | --- | --- |
//! | `same_thread` | nothing waits: one thread pushes and pops, with a reading of the clock before and after, as nimsync's benchmark does |
//! | `spin` | they retry at once; the lower bound is two words in memory |
//! | `block` | ours spins for at most 50 us, then sleeps, and so does `eventfd`; the channels use their own blocking calls |
//! | `park` | they sleep at once |

use std::io::{Read, Write};
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use thalweg_peers::channel::Channel;
use thalweg_peers::channels::{Crossbeam, Flume, Kanal, Std};
use thalweg_peers::patience;
use thalweg_peers::ring::Rtrb;

use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::lab::Lab;
use crate::latency::Latencies;
use crate::placement::allowed;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::Workload;

use super::driver::Driver;
use super::grid::{self, Axis, Grid};
use super::rows::{self, Rigour};
use super::subjects::{Spsc, SpscParking, THALWEG, unknown};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "spsc_latency",
    group: "queue",
    what: "A round trip to another thread: percentiles, spinning, blocking and asleep, from the lower bound up.",
    source: "rigtorp's and atomic_queue's ping-pong; nimsync's, which timed two clock reads on one thread",
    peers: &[
        "atomics",
        "rtrb",
        "crossbeam",
        "kanal",
        "std",
        "flume",
        "eventfd",
        "unix_socket",
    ],
    seconds: 80,
    run,
    knobs: &[AXES[0].knob, AXES[1].knob, grid::FULL],
    cells: Some(open),
};

const AXES: [Axis; 2] = [
    Axis::partly(
        "placement",
        "free",
        "free,one_cpu,split",
        "free, one_cpu or split, as a list",
    ),
    Axis::whole(
        "mode",
        "same_thread,spin,block,park",
        "how the ends wait, as a list",
    ),
];

/// Takes one sample: the number of round trips, and whether the threads are split.
type Take = fn(u64, bool) -> Result<Sample, Problem>;

/// The subjects of each mode.
const SUBJECTS: &[(&str, &str, Take)] = &[
    ("same_thread", THALWEG, alone::<Spinning<Spsc>>),
    ("same_thread", "rtrb", alone::<Spinning<Rtrb>>),
    ("same_thread", "crossbeam", alone::<Spinning<Crossbeam>>),
    ("spin", THALWEG, sample::<Spinning<Spsc>>),
    ("spin", "atomics", sample::<Atomics>),
    ("spin", "rtrb", sample::<Spinning<Rtrb>>),
    ("spin", "crossbeam", sample::<Spinning<Crossbeam>>),
    ("spin", "eventfd", sample::<EventFd<SPINS>>),
    ("block", THALWEG, sample::<Blocking<Spsc>>),
    ("block", "crossbeam", sample::<Blocking<Crossbeam>>),
    ("block", "kanal", sample::<Blocking<Kanal>>),
    ("block", "std", sample::<Blocking<Std>>),
    ("block", "flume", sample::<Blocking<Flume>>),
    ("block", "eventfd", sample::<EventFd<SPINS_THEN_SLEEPS>>),
    ("park", THALWEG, sample::<Blocking<SpscParking>>),
    ("park", "eventfd", sample::<EventFd<SLEEPS>>),
    ("park", "unix_socket", sample::<UnixSocket>),
    ("park", "std", sample::<Blocking<Std>>),
];

/// Five samples of this size are enough for the far tail.
pub(super) const ROUND_TRIPS: u64 = 20_000;
pub(super) const QUICK_ROUND_TRIPS: u64 = 500;
/// Per mille of a sample's round trips, at its start, that are not counted.
const WARM_UP: u64 = 20;

pub(super) const CHECKED: &str = "every number came back as it went, before the next left";

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    for (name, what) in [
        ("atomics", "two words in memory, spinning"),
        ("eventfd", "the kernel's; waits as our side does"),
        ("unix_socket", "the kernel's, a stream, blocking"),
    ] {
        lab.peers.insert(name.to_owned(), what.to_owned());
    }
    let trips = match lab.quick() {
        true => QUICK_ROUND_TRIPS,
        false => ROUND_TRIPS,
    };
    let mut all = Vec::new();
    for point in Grid::of(lab)?.points(lab, &AXES) {
        let point = point.with("round_trips", &trips.to_string());
        let subjects = subjects(point.get("mode"))?;
        let placement = rows::process_placement(point.get("placement"))?;
        let cell = Cell::new(WORKLOAD.name, &point.params(), &subjects).at(placement);
        let measured = rows::measure(lab, &WORKLOAD, cell, Rigour::Look)?;
        all.extend(measured.rows("ns", &[CHECKED]));
    }
    Ok(all)
}

fn subjects(mode: &str) -> Result<Vec<&'static str>, Problem> {
    let of_mode = SUBJECTS.iter().filter(|(own, ..)| *own == mode);
    let names: Vec<_> = of_mode.map(|(_, name, _)| *name).collect();
    if names.is_empty() {
        let why = format!("a mode is same_thread, spin, block or park, not `{mode}`");
        return Err(Problem::Usage(why));
    }
    Ok(names)
}

fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let mode = cell.text("mode")?;
    let trips = cell.number("round_trips")?;
    let split = cell.text("placement")? == "split";
    let side = |name: &String| {
        let found = SUBJECTS.iter().find(|one| (one.0, one.1) == (mode, name));
        match found {
            Some((.., sample)) => Ok(Side::new(move || sample(trips, split))),
            None => subjects(mode).and_then(|_| unknown(name)),
        }
    };
    cell.subjects.iter().map(side).collect()
}

/// One thread does both halves. This is no round trip: it is what nimsync's figure was made with.
fn alone<L: Link>(trips: u64, _split: bool) -> Result<Sample, Problem> {
    let (mut near, mut far) = L::new()?;
    let warm_up = (trips * WARM_UP / 1000).max(1);
    let mut latencies = Latencies::new();
    for number in 0..warm_up + trips {
        let start = Instant::now();
        L::send(&mut near, number);
        let received = L::receive(&mut far);
        let took = start.elapsed().as_nanos();
        if received != number {
            return Err(Problem::Check(format!(
                "{}: another number came out than went in",
                L::NAME
            )));
        }
        if number >= warm_up {
            latencies.record(u64::try_from(took).unwrap_or(u64::MAX));
        }
    }
    let sample = Sample {
        ns: latencies.percentile(50.0) as f64,
        ..Sample::default()
    };
    Ok(sample.with_latencies(&latencies))
}

pub(super) fn sample<L: Link>(trips: u64, split: bool) -> Result<Sample, Problem> {
    let (mut there, mut at_there) = L::new()?;
    let (mut back, mut at_here) = L::new()?;
    let cpus = if split { allowed() } else { Vec::new() };
    let warm_up = (trips * WARM_UP / 1000).max(1);
    let all = warm_up + trips;
    let mut driver = Driver::new(L::NAME, 2, 0);
    driver.consume(cpus.first().copied(), move |_| {
        let mut latencies = Latencies::new();
        let mut wrong = 0;
        let mut last = Instant::now();
        for number in 0..all {
            L::send(&mut there, number);
            wrong |= L::receive(&mut at_here) ^ number;
            let now = Instant::now();
            if number >= warm_up {
                let took = now.duration_since(last).as_nanos();
                latencies.record(u64::try_from(took).unwrap_or(u64::MAX));
            }
            last = now;
        }
        (wrong == 0).then_some(latencies)
    })?;
    driver.produce(cpus.get(1).copied(), move |_| {
        for _ in 0..all {
            let number = L::receive(&mut at_there);
            L::send(&mut back, number);
        }
        None
    })?;
    let (ends, _) = driver.run()?;
    let Some(Some(latencies)) = ends.first() else {
        return Err(Problem::Check(format!(
            "{}: another number came back than went",
            L::NAME
        )));
    };
    let sample = Sample {
        ns: latencies.percentile(50.0) as f64,
        ..Sample::default()
    };
    Ok(sample.with_latencies(latencies))
}

/// One way to send numbers to another thread.
pub(super) trait Link: 'static {
    /// Its public name.
    const NAME: &'static str;
    /// The sending end.
    type Near: Send + 'static;
    /// The receiving end.
    type Far: Send + 'static;

    /// Creates a link.
    ///
    /// # Errors
    /// The operating system cannot provide it.
    fn new() -> Result<(Self::Near, Self::Far), Problem>;

    /// Sends a number other than 2^64 - 1.
    fn send(near: &mut Self::Near, message: u64);

    /// Receives a number, waiting for it.
    fn receive(far: &mut Self::Far) -> u64;
}

/// A capacity that every ring accepts. Only one number is in flight at a time.
const CAPACITY: usize = 64;

/// A channel whose ends retry at once.
#[derive(Debug)]
struct Spinning<C>(PhantomData<C>);

impl<C: Channel> Link for Spinning<C> {
    const NAME: &'static str = C::NAME;
    type Near = C::Sender;
    type Far = C::Receiver;

    fn new() -> Result<(C::Sender, C::Receiver), Problem> {
        Ok(C::bounded(CAPACITY))
    }

    #[inline]
    fn send(near: &mut C::Sender, message: u64) {
        patience::until(|| C::try_send(near, message).then_some(()));
    }

    #[inline]
    fn receive(far: &mut C::Receiver) -> u64 {
        patience::until(|| C::try_receive(far))
    }
}

/// A channel used through its blocking calls.
#[derive(Debug)]
pub(super) struct Blocking<C, const CAPACITY: usize = { self::CAPACITY }>(PhantomData<C>);

impl<C: Channel, const CAPACITY: usize> Link for Blocking<C, CAPACITY> {
    const NAME: &'static str = C::NAME;
    type Near = C::Sender;
    type Far = C::Receiver;

    fn new() -> Result<(C::Sender, C::Receiver), Problem> {
        Ok(C::bounded(CAPACITY))
    }

    #[inline]
    fn send(near: &mut C::Sender, message: u64) {
        C::send(near, message);
    }

    #[inline]
    fn receive(far: &mut C::Receiver) -> u64 {
        C::receive(far)
    }
}

/// `atomics`, the lower bound: a word that contains the number plus 1, or 0.
#[derive(Debug)]
struct Atomics;

/// Alone on its cache line and on the line that is prefetched with it.
#[repr(align(128))]
#[derive(Debug)]
struct Word(AtomicU64);

impl Link for Atomics {
    const NAME: &'static str = "atomics";
    type Near = Arc<Word>;
    type Far = Arc<Word>;

    fn new() -> Result<(Arc<Word>, Arc<Word>), Problem> {
        let word = Arc::new(Word(AtomicU64::new(0)));
        Ok((Arc::clone(&word), word))
    }

    #[inline]
    fn send(near: &mut Arc<Word>, message: u64) {
        // The reply to the previous number confirms that it was taken.
        near.0.store(message + 1, Ordering::Release);
    }

    #[inline]
    fn receive(far: &mut Arc<Word>) -> u64 {
        let full = patience::until(|| match far.0.load(Ordering::Acquire) {
            0 => None,
            full => Some(full),
        });
        far.0.store(0, Ordering::Relaxed);
        full - 1
    }
}

/// `eventfd`: its count is the number plus 1.
#[derive(Debug)]
struct EventFd<const WAIT: u8>;

/// Reads again at once.
const SPINS: u8 = 0;
/// Reads again at once for as long as our channel spins at most, then sleeps. On one processor it
/// yields once, as our channel does.
const SPINS_THEN_SLEEPS: u8 = 1;
/// Sleeps at once.
const SLEEPS: u8 = 2;

/// `MAX_SPIN_NS` of our queue.
const LONGEST_SPIN: Duration = Duration::from_micros(50);

const KERNEL: &str = "the kernel moves eight bytes whole";

/// The count; `None` if there is none and the descriptor does not block.
fn count_of(fd: &OwnedFd) -> Option<u64> {
    let mut count = [0; 8];
    match rustix::io::read(fd, &mut count) {
        Ok(8) => Some(u64::from_ne_bytes(count)),
        Err(rustix::io::Errno::AGAIN) => None,
        other => panic!("{KERNEL}: {other:?}"),
    }
}

fn spun(fd: &OwnedFd, several: bool) -> Option<u64> {
    let began = Instant::now();
    loop {
        let found = count_of(fd);
        if found.is_some() || began.elapsed() >= LONGEST_SPIN {
            return found;
        }
        if several {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
            return count_of(fd);
        }
    }
}

/// The reading end, and whether there are several processors.
#[derive(Debug)]
struct Counted(OwnedFd, bool);

impl<const WAIT: u8> Link for EventFd<WAIT> {
    const NAME: &'static str = "eventfd";
    type Near = OwnedFd;
    type Far = Counted;

    fn new() -> Result<(OwnedFd, Counted), Problem> {
        let problem =
            |error: std::io::Error| Problem::Io("cannot make an eventfd".to_owned(), error);
        let blocking = match WAIT {
            SLEEPS => EventfdFlags::empty(),
            _ => EventfdFlags::NONBLOCK,
        };
        let near = eventfd(0, EventfdFlags::CLOEXEC | blocking);
        let near = near.map_err(|errno| problem(errno.into()))?;
        let far = near.try_clone().map_err(problem)?;
        Ok((near, Counted(far, allowed().len() > 1)))
    }

    #[inline]
    fn send(near: &mut OwnedFd, message: u64) {
        let count = (message + 1).to_ne_bytes();
        assert_eq!(rustix::io::write(near, &count).expect(KERNEL), 8);
    }

    #[inline]
    fn receive(Counted(far, several): &mut Counted) -> u64 {
        let count = match WAIT {
            SPINS => patience::until(|| count_of(far)),
            SLEEPS => count_of(far).expect(KERNEL),
            _ => loop {
                if let Some(count) = spun(far, *several) {
                    break count;
                }
                let mut readable = [PollFd::new(far, PollFlags::IN)];
                // Interrupted or readable: it is read again.
                let _ = poll(&mut readable, None);
            },
        };
        count - 1
    }
}

/// `unix_socket`: eight bytes through a stream socket.
#[derive(Debug)]
struct UnixSocket;

impl Link for UnixSocket {
    const NAME: &'static str = "unix_socket";
    type Near = UnixStream;
    type Far = UnixStream;

    fn new() -> Result<(UnixStream, UnixStream), Problem> {
        UnixStream::pair().map_err(Problem::io("cannot make a pair of sockets"))
    }

    #[inline]
    fn send(near: &mut UnixStream, message: u64) {
        near.write_all(&message.to_ne_bytes()).expect(KERNEL);
    }

    #[inline]
    fn receive(far: &mut UnixStream) -> u64 {
        let mut bytes = [0; 8];
        far.read_exact(&mut bytes).expect(KERNEL);
        u64::from_ne_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_brings_numbers_there_and_back() {
        for mode in ["same_thread", "spin", "block", "park"] {
            let params = [
                ("mode", mode),
                ("placement", "free"),
                ("round_trips", "200"),
            ];
            let cell = Cell::new(WORKLOAD.name, &params, &subjects(mode).unwrap());
            assert_eq!(cell.subjects[0], THALWEG);
            for mut side in open(&cell).unwrap() {
                let sample = side.take().unwrap();
                assert!(sample.ns > 0.0);
                let counted: u64 = sample.latencies.iter().map(|(_, count)| count).sum();
                assert_eq!(counted, 200);
            }
        }
    }

    #[test]
    fn every_mode_has_an_eventfd_that_waits_like_our_side() {
        for mode in ["spin", "block", "park"] {
            assert!(subjects(mode).unwrap().contains(&"eventfd"), "{mode}");
        }
        let (_, far) = EventFd::<SPINS_THEN_SLEEPS>::new().unwrap();
        let began = Instant::now();
        assert_eq!(spun(&far.0, true), None);
        assert!(began.elapsed() >= LONGEST_SPIN);
    }

    #[test]
    fn invalid_mode_or_subject_is_refused() {
        for (mode, subject) in [("sleep", "thalweg"), ("park", "rtrb")] {
            let params = [("mode", mode), ("placement", "free"), ("round_trips", "10")];
            assert!(open(&Cell::new(WORKLOAD.name, &params, &[subject])).is_err());
        }
    }
}
