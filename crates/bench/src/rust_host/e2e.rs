//! Calls with contents, each reply checked: one at a time, 64 in flight, and as events. Each thread
//! uses a client or a Unix socket. Mirrors `hosts/c/e2e.h` and `hosts/c/unix_peer.h`.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use thalweg::port::{NoError, Pending};
use thalweg_lab::LabService;
use thalweg_lab::lab::{LabClient, Scalars};
use thalweg_lab::predicates::{fill, parity, payload, scalars};

use super::reading::Reading;
use super::{block, ended, failed};
use crate::problem::Problem;

/// Requests in flight.
const WINDOW: u64 = 64;
/// Records of a batch of events.
const BATCH: u32 = 256;
/// A request of this size asks for events.
const EVENTS: u32 = u32::MAX;
/// Bytes of the scalars in a request, whose size is 0.
const SCALARS: usize = 24;

/// The work of one thread.
#[derive(Clone, Copy)]
struct Job {
    size: u32,
    count: u64,
}

/// The replies received.
#[derive(Clone, Copy, Default)]
struct Replies {
    answered: u64,
    true_ones: u64,
}

impl Replies {
    /// Adds the next reply, which must be the predicate of its number.
    fn add(&mut self, reply: bool) -> Result<(), Problem> {
        if reply != self.answered.is_multiple_of(2) {
            let text = format!("the reply to request {} is wrong", self.answered);
            return Err(Problem::Check(text));
        }
        self.answered += 1;
        self.true_ones += u64::from(reply);
        Ok(())
    }
}

/// Makes `COUNT` requests of `SIZE` bytes in total, divided among the threads.
///
/// # Errors
/// The way is unknown, or a reply is wrong.
pub fn run(way: &str, numbers: &[&str]) -> Result<String, Problem> {
    let [size, count, threads] = numbers else {
        return Err(Problem::Host(format!("three numbers, not {numbers:?}")));
    };
    let threads = block::number(threads)?.max(1);
    let job = Job {
        size: u32::try_from(block::number(size)?).unwrap_or(EVENTS),
        count: block::number(count)? / threads,
    };
    let ready = &Barrier::new(threads as usize + 1);
    let mut sides = Vec::new();
    for _ in 0..threads {
        sides.push(Side::open(way)?);
    }
    thread::scope(|scope| {
        let running: Vec<_> = sides
            .into_iter()
            .map(|mut side| {
                scope.spawn(move || {
                    ready.wait();
                    let replies = side.run(job);
                    (replies, side)
                })
            })
            .collect();
        ready.wait();
        let began = Instant::now();
        // Closed after all threads have ended.
        let over: Vec<_> = running
            .into_iter()
            .map(|running| running.join().expect("it does not panic"))
            .collect();
        let mut read = Reading {
            spent: began.elapsed(),
            ..Reading::default()
        };
        for (replies, _) in over {
            let replies = replies?;
            read.records += replies.answered;
            read.checksum += replies.true_ones;
        }
        Ok(read.answer())
    })
}

/// The requests of one thread.
enum Side {
    Sync(LabClient),
    Async(LabClient),
    Events(LabClient),
    Unix(UnixStream, u64),
    UnixEvents(UnixStream),
}

impl Side {
    fn open(way: &str) -> Result<Self, Problem> {
        let lab = || LabClient::start(LabService::default).map_err(failed);
        match way {
            "sync" => lab().map(Self::Sync),
            "async" => lab().map(Self::Async),
            "events" => lab().map(Self::Events),
            "unix-sync" => Ok(Self::Unix(peer()?, 1)),
            "unix-async" => Ok(Self::Unix(peer()?, WINDOW)),
            "unix-events" => Ok(Self::UnixEvents(peer()?)),
            _ => Err(Problem::Host(format!("not a command: e2e-{way}"))),
        }
    }

    fn run(&mut self, job: Job) -> Result<Replies, Problem> {
        match self {
            Self::Sync(lab) => windowed(lab, job, 1),
            Self::Async(lab) => windowed(lab, job, WINDOW),
            Self::Events(lab) => events(lab, job),
            Self::Unix(socket, window) => unix(socket, job, *window).map_err(lost),
            Self::UnixEvents(socket) => unix_events(socket, job).map_err(lost),
        }?
        .whole(job)
    }
}

impl Replies {
    fn whole(self, job: Job) -> Result<Self, Problem> {
        if self.answered == job.count {
            Ok(self)
        } else {
            let text = format!("{} of {} replies", self.answered, job.count);
            Err(Problem::Check(text))
        }
    }
}

fn lost(error: std::io::Error) -> Problem {
    Problem::Io("Unix socket".to_owned(), error)
}

/// Makes calls with up to `window` in flight, and waits for the oldest first.
fn windowed(lab: &LabClient, job: Job, window: u64) -> Result<Replies, Problem> {
    let mut replies = Replies::default();
    let mut data = vec![0; job.size as usize];
    let mut pending: VecDeque<Pending<bool, NoError>> = VecDeque::new();
    for n in 0..job.count {
        if pending.len() as u64 == window
            && let Some(oldest) = pending.pop_front()
        {
            replies.add(oldest.wait().map_err(ended)?)?;
        }
        pending.push_back(if job.size == 0 {
            let Scalars { a, b, x } = scalars(n);
            lab.parity(a, b, x)
        } else {
            fill(&mut data, n);
            lab.payload(&data)
        });
    }
    for left in pending {
        replies.add(left.wait().map_err(ended)?)?;
    }
    Ok(replies)
}

fn events(lab: &LabClient, job: Job) -> Result<Replies, Problem> {
    let mut replies = Replies::default();
    if job.size == 0 {
        let mut stream = lab.parities(job.count).wait().map_err(ended)?;
        while let Some(batch) = stream.next_batch(BATCH, u64::MAX).map_err(failed)? {
            for Scalars { a, b, x } in batch.iter() {
                replies.add(parity(a, b, x))?;
            }
        }
    } else {
        let asked = lab.payloads(job.count, job.size);
        let mut stream = asked.wait().map_err(ended)?;
        while let Some(batch) = stream.next_batch(BATCH, u64::MAX).map_err(failed)? {
            for record in batch.iter() {
                let data = record.data.as_bytes();
                replies.add(data.len() == job.size as usize && payload(data))?;
            }
        }
    }
    Ok(replies)
}

/// Bytes that were read but not parsed yet.
struct Frames {
    bytes: Vec<u8>,
    from: usize,
    to: usize,
}

impl Frames {
    fn new() -> Self {
        Self {
            bytes: vec![0; 2 * 65_540],
            from: 0,
            to: 0,
        }
    }

    /// Reads more bytes and appends them; `false` at the end.
    fn read(&mut self, socket: &mut UnixStream) -> std::io::Result<bool> {
        self.bytes.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        let count = socket.read(&mut self.bytes[self.to..])?;
        self.to += count;
        Ok(count > 0)
    }

    /// The next whole request.
    fn next(&mut self) -> Option<(u32, &[u8])> {
        let there = &self.bytes[self.from..self.to];
        let (size, rest) = there.split_first_chunk()?;
        let size = u32::from_ne_bytes(*size);
        let length = match size {
            0 => SCALARS,
            EVENTS => 16,
            _ => size as usize,
        };
        let data = rest.get(..length)?;
        self.from += 4 + length;
        Some((size, data))
    }
}

/// Writes request number `n` to `frame`; bytes between the first and the last are left as they are.
fn request(frame: &mut Vec<u8>, size: u32, n: u64) {
    let length = if size == 0 { SCALARS } else { size as usize };
    frame.resize(4 + length, 0);
    let (head, data) = frame.split_at_mut(4);
    head.copy_from_slice(&size.to_ne_bytes());
    if size == 0 {
        let Scalars { a, b, x } = scalars(n);
        let numbers = [a.to_ne_bytes(), b.to_ne_bytes(), x.to_ne_bytes()];
        data.copy_from_slice(numbers.as_flattened());
    } else {
        fill(data, n);
    }
}

fn answer(size: u32, data: &[u8]) -> bool {
    let number = |at: usize| data.get(at..)?.first_chunk::<8>().copied();
    match (size, number(0), number(8), number(16)) {
        (0, Some(a), Some(b), Some(x)) => {
            let (a, b) = (i64::from_ne_bytes(a), i64::from_ne_bytes(b));
            parity(a, b, f64::from_ne_bytes(x))
        }
        _ => payload(data),
    }
}

/// A socket whose other end a thread serves until the socket is closed.
fn peer() -> Result<UnixStream, Problem> {
    let (ours, theirs) = UnixStream::pair().map_err(lost)?;
    // A failure of the thread is visible here as the end of the socket.
    thread::spawn(move || serve(theirs));
    Ok(ours)
}

fn serve(mut socket: UnixStream) -> std::io::Result<()> {
    let mut frames = Frames::new();
    let mut answers = Vec::new();
    while frames.read(&mut socket)? {
        while let Some((size, data)) = frames.next() {
            if size != EVENTS {
                answers.push(u8::from(answer(size, data)));
                continue;
            }
            let (count, size) = data.split_at(8);
            let number = |of: &[u8]| of.first_chunk().map_or(0, |of| u64::from_ne_bytes(*of));
            let (count, size) = (number(count), number(size) as u32);
            let mut frame = Vec::new();
            for n in 0..count {
                request(&mut frame, size, n);
                socket.write_all(&frame)?;
            }
        }
        socket.write_all(&answers)?;
        answers.clear();
    }
    Ok(())
}

fn unix(socket: &mut UnixStream, job: Job, window: u64) -> std::io::Result<Replies> {
    let mut replies = Replies::default();
    let (mut frame, mut answers) = (Vec::new(), [0; WINDOW as usize]);
    let mut n = 0;
    while replies.answered < job.count {
        while n < job.count && n - replies.answered < window {
            request(&mut frame, job.size, n);
            socket.write_all(&frame)?;
            n += 1;
        }
        let count = socket.read(&mut answers)?;
        took(&mut replies, answers[..count].iter().map(|one| *one != 0))?;
    }
    Ok(replies)
}

/// Adds received replies; it is an error if there are none.
fn took(replies: &mut Replies, came: impl Iterator<Item = bool>) -> std::io::Result<()> {
    let before = replies.answered;
    for reply in came {
        replies.add(reply).map_err(std::io::Error::other)?;
    }
    if replies.answered == before {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

fn unix_events(socket: &mut UnixStream, job: Job) -> std::io::Result<Replies> {
    let mut replies = Replies::default();
    let numbers = [job.count.to_ne_bytes(), u64::from(job.size).to_ne_bytes()];
    let asked = [EVENTS.to_ne_bytes().as_slice(), numbers.as_flattened()].concat();
    socket.write_all(&asked)?;
    let mut frames = Frames::new();
    while replies.answered < job.count {
        if !frames.read(socket)? {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        while let Some((size, data)) = frames.next() {
            let reply = answer(size, data);
            replies.add(reply).map_err(std::io::Error::other)?;
        }
    }
    Ok(replies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_is_wrong_or_missing_is_seen() {
        let mut replies = Replies::default();
        replies.add(true).unwrap();
        replies.add(false).unwrap();
        assert!(replies.add(false).is_err());
        let job = Job { size: 0, count: 3 };
        assert!(replies.whole(job).is_err());
    }

    #[test]
    fn requests_are_told_apart_wherever_they_are_cut() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let mut all = Vec::new();
        let mut frame = Vec::new();
        for (n, size) in [(0, 0), (1, 64), (2, 0), (3, 512)] {
            request(&mut frame, size, n);
            all.extend_from_slice(&frame);
        }
        let mut frames = Frames::new();
        let mut replies = Vec::new();
        for byte in all {
            theirs.write_all(&[byte]).unwrap();
            assert!(frames.read(&mut ours).unwrap());
            while let Some((size, data)) = frames.next() {
                replies.push((size, answer(size, data)));
            }
        }
        assert_eq!(replies, [(0, true), (64, false), (0, true), (512, false)]);
    }
}
