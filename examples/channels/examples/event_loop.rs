//! A server with one thread for its socket and worker threads: poll(2) watches the socket and the
//! channel of the workers' answers.
//!
//! A client sends numbers over TCP, one per line; the answer is the number and its prime factors.
//! The loop never computes, and sleeps only in poll. It passes numbers to the workers while they
//! have capacity; otherwise it does not read the socket, so the client waits.
//!
//! It asserts that each number is answered once, and that the factors multiply to it.

use std::collections::VecDeque;
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::{io, thread};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use thalweg::channel::{TryRecvError, TrySendError, mpmc, mpsc};
use thalweg_example_channels::grouped;

const NUMBERS: u64 = 2_000;
/// The first number: large enough that a prime takes some microseconds.
const FIRST: u64 = 1_000_000_000;
const WORKERS: usize = 2;
const CAPACITY: usize = 32;

fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    println!("{} numbers to factor, over a socket:\n", grouped(NUMBERS));
    let client = thread::spawn(move || client(TcpStream::connect(address)?));
    let (socket, _) = listener.accept()?;

    let (jobs, todo) = mpmc::channel(CAPACITY)?;
    // The loop reads the answers, so it must not wait for a worker that waits for the loop.
    let (answers, answered) = mpsc::unbounded();
    let workers: [_; WORKERS] = std::array::from_fn(|_| {
        let (todo, answers) = (todo.clone(), answers.clone());
        thread::spawn(move || work(&todo, &answers))
    });
    drop((todo, answers));

    let turns = serve(socket, jobs, &answered)?;
    for worker in workers {
        worker.join().expect("a worker does not panic");
    }
    let primes = client.join().expect("the client does not panic")?;

    println!(
        "  answered {:>6}, of which {primes} are prime",
        grouped(NUMBERS)
    );
    println!("  slept    {:>6} times in poll", grouped(turns.slept));
    println!(
        "  woken    {:>6} times by the channel, {} by the socket",
        grouped(turns.by_channel),
        turns.by_socket
    );
    println!("\nEach number once, and its factors multiply to it.");
    Ok(())
}

#[derive(Default)]
struct Turns {
    slept: u64,
    by_channel: u64,
    by_socket: u64,
}

fn serve(
    mut socket: TcpStream,
    jobs: mpmc::Sender<u64>,
    answered: &mpsc::Receiver<String>,
) -> io::Result<Turns> {
    let mut readiness = answered.readiness()?;
    let mut turns = Turns::default();
    let mut asked = Asked::default();
    // `None` after the client has sent everything and the workers have received it.
    let mut jobs = Some(jobs);
    loop {
        // 1. Send the workers' answers.
        loop {
            match answered.try_recv() {
                // The socket blocks if its client does not read; this client always reads.
                Ok(answer) => socket.write_all(answer.as_bytes())?,
                Err(TryRecvError::Empty) => break,
                // The last worker has ended, and all answers are sent.
                Err(TryRecvError::Closed) => return Ok(turns),
            }
        }
        // 2. Pass numbers on while the workers have capacity.
        if let Some(jobs) = &jobs {
            asked.hand_over(jobs);
        }
        if asked.ended && asked.backlog.is_empty() {
            // Closes the channel: the workers process the remaining numbers and end.
            jobs = None;
        }
        // 3. Sleep until something is ready, unless it is already.
        if readiness.arm() {
            continue;
        }
        let mut watched = [
            PollFd::new(&readiness, PollFlags::IN),
            PollFd::new(&socket, PollFlags::IN),
        ];
        let reads = !asked.ended && asked.backlog.is_empty();
        let watched = &mut watched[..if reads { 2 } else { 1 }];
        turns.slept += 1;
        retry_on_intr(|| poll(watched, None))?;
        turns.by_channel += u64::from(!watched[0].revents().is_empty());
        if reads && !watched[1].revents().is_empty() {
            turns.by_socket += 1;
            asked.read(&mut socket)?;
        }
    }
}

/// Numbers that the client sent and no worker has received yet.
#[derive(Default)]
struct Asked {
    backlog: VecDeque<u64>,
    /// The beginning of an incomplete line.
    rest: Vec<u8>,
    ended: bool,
}

impl Asked {
    /// Reads the available bytes once.
    fn read(&mut self, socket: &mut TcpStream) -> io::Result<()> {
        let mut buffer = [0; 512];
        let count = socket.read(&mut buffer)?;
        self.ended = count == 0;
        for byte in &buffer[..count] {
            if *byte != b'\n' {
                self.rest.push(*byte);
                continue;
            }
            let line = String::from_utf8_lossy(&self.rest).into_owned();
            self.rest.clear();
            let number = line
                .parse()
                .map_err(|_| io::Error::other(format!("{line:?} is no number")))?;
            self.backlog.push_back(number);
        }
        Ok(())
    }

    fn hand_over(&mut self, jobs: &mpmc::Sender<u64>) {
        while let Some(number) = self.backlog.pop_front() {
            match jobs.try_send(number) {
                Ok(()) => {}
                Err(TrySendError::Full(number)) => return self.backlog.push_front(number),
                Err(TrySendError::Closed(_)) => {
                    unreachable!("a worker ends after the jobs' sender")
                }
            }
        }
    }
}

fn work(todo: &mpmc::Receiver<u64>, answers: &mpsc::Sender<String>) {
    for number in todo {
        let factors: Vec<String> = factors(number).iter().map(u64::to_string).collect();
        // After an error, the loop has ended.
        if answers
            .send(format!("{number} = {}\n", factors.join(" x ")))
            .is_err()
        {
            return;
        }
    }
}

fn factors(mut number: u64) -> Vec<u64> {
    let mut found = Vec::new();
    let mut factor = 2;
    while factor * factor <= number {
        while number.is_multiple_of(factor) {
            found.push(factor);
            number /= factor;
        }
        factor += 1;
    }
    if number > 1 {
        found.push(number);
    }
    found
}

/// Sends all numbers while it reads and checks the answers. Returns how many are prime.
fn client(socket: TcpStream) -> io::Result<u64> {
    let mut to = socket.try_clone()?;
    let asking = thread::spawn(move || -> io::Result<()> {
        for number in FIRST..FIRST + NUMBERS {
            to.write_all(format!("{number}\n").as_bytes())?;
        }
        to.shutdown(std::net::Shutdown::Write)
    });
    let mut seen = vec![false; NUMBERS as usize];
    let mut primes = 0;
    for line in BufReader::new(socket).lines() {
        let line = line?;
        let (number, factors) = line.split_once(" = ").expect("the server answers so");
        let number: u64 = number.parse().expect("it is one of ours");
        let factors: Vec<u64> = factors
            .split(" x ")
            .map(|factor| factor.parse().expect("a number"))
            .collect();
        assert_eq!(factors.iter().product::<u64>(), number);
        let seen = &mut seen[(number - FIRST) as usize];
        assert!(
            !std::mem::replace(seen, true),
            "{number} was answered twice"
        );
        primes += u64::from(factors.len() == 1);
    }
    asking.join().expect("who asks does not panic")?;
    assert!(seen.iter().all(|seen| *seen), "a number was not answered");
    Ok(primes)
}
