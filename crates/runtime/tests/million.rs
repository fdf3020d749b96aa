//! The number of possible actors, and their cost while they wait. `make prove-million` runs the
//! ignored tests, each in its own process.
//!
//! A process of its own: the measured memory is that of the whole process.
#![cfg(all(target_os = "linux", not(any(miri, thalweg_threads))))]

use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

use thalweg_runtime::{
    Actor, ActorRef, Config, Context, Handler, JoinError, JoinHandle, Runtime, StackError,
    WakeReason, run, runtime, spawn, start, wait, yield_now,
};

const MILLION: usize = 1_000_000;

/// A value of `/proc/self/status`, in bytes.
fn memory(line: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|each| each.strip_prefix(line));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    kilobytes.unwrap().parse::<usize>().unwrap() << 10
}

fn resident() -> usize {
    memory("VmRSS")
}

struct Account(usize);

struct Deposit(usize);

impl Actor for Account {}

impl Handler<Deposit> for Account {
    type Reply = usize;
    fn handle(&mut self, deposit: Deposit, _: &Context<'_, Self>) -> usize {
        self.0 += deposit.0;
        self.0
    }
}

#[test]
#[ignore = "a few hundred megabytes: `make prove-million`"]
fn a_million_actors_with_a_state_answer_and_take_512_bytes_each() {
    run(|| {
        let mut accounts: Vec<ActorRef<Account>> = Vec::with_capacity(MILLION);
        let before = resident();
        accounts.extend((0..MILLION).map(|number| start(Account(number))));
        let started = resident();
        for (number, account) in accounts.iter().enumerate() {
            assert_eq!(account.call(Deposit(1)), Ok(number + 1));
        }
        let idle = resident();
        let each = (idle - before) / MILLION;
        println!(
            "a million actors with a state: {} MB resident, {} bytes each when started, {each} after a call",
            idle / 1_000_000,
            (started - before) / MILLION
        );
        assert!(accounts.iter().all(ActorRef::is_alive));
        assert!(each <= 512, "{each} bytes");
        assert!(idle <= 700_000_000, "{idle} bytes");
    });
}

/// The wakers of all waiting actors.
type Waiting = Arc<Mutex<Vec<Waker>>>;

/// Parks until it is woken, and returns its number. Does not panic: a failure would otherwise print
/// a million reports.
fn park(number: usize, waiting: &Waiting) -> usize {
    waiting.lock().unwrap().push(wait::waker());
    match wait::park(None) {
        WakeReason::Woken => number,
        _ => usize::MAX,
    }
}

fn spawn_parked(number: usize, waiting: &Waiting) -> JoinHandle<usize> {
    let waiting = Arc::clone(waiting);
    spawn(move || park(number, &waiting))
}

/// Wakes all actors and joins them. Returns how many never began; their errors must pass `check`.
/// Panics if an actor is lost.
fn join_all(
    actors: Vec<JoinHandle<usize>>,
    waiting: &Waiting,
    check: impl Fn(&StackError) -> bool,
) -> usize {
    waiting.lock().unwrap().drain(..).for_each(Waker::wake);
    let mut without = 0;
    for (number, actor) in actors.into_iter().enumerate() {
        match actor.join() {
            Ok(its) => assert_eq!(its, number),
            Err(JoinError::NoStack(error)) if check(&error) => without += 1,
            Err(other) => panic!("actor {number}: {other:?}"),
        }
    }
    without
}

/// Waits until each actor is parked or has ended without a stack. Returns how many are parked.
fn settle(actors: &[JoinHandle<usize>], waiting: &Waiting) -> usize {
    loop {
        yield_now();
        let ended = actors.iter().filter(|actor| actor.is_finished()).count();
        let parked = waiting.lock().unwrap().len();
        if parked + ended == actors.len() {
            return parked;
        }
    }
}

/// Without light guards the kernel's limit on mappings is reached before a million actors. The
/// actors beyond the limit end with an error that reports it.
#[test]
#[ignore = "gigabytes: `make prove-million`"]
fn a_million_actors_with_a_stack_are_parked_or_told_why_not() {
    let light = Config::default().describe().unwrap().machine.light_guards;
    run(move || {
        let waiting = Waiting::default();
        waiting.lock().unwrap().reserve(MILLION);
        let before = resident();
        let actors: Vec<_> = (0..MILLION)
            .map(|number| spawn_parked(number, &waiting))
            .collect();
        let parked = settle(&actors, &waiting);
        let now = resident();
        println!(
            "{parked} parked actors with a stack: {} MB resident, {} bytes each, and {} MB of page tables",
            now / 1_000_000,
            (now - before) / parked,
            memory("VmPTE") / 1_000_000
        );
        assert!(now <= 6_000_000_000, "{now} bytes");
        let without = join_all(actors, &waiting, |error| {
            matches!(error, StackError::Mappings { .. })
        });
        assert_eq!(parked + without, MILLION);
        assert!(!light || parked == MILLION, "{parked} were parked");
        if without > 0 {
            println!("{without} were told that this kernel's mappings are used up");
        }
    });
}

#[test]
fn more_actors_than_stacks_are_told_so_and_none_is_lost() {
    const MOST: usize = 100;
    let config = Config::with_workers(1).max_stacks(MOST);
    runtime::init(config).unwrap().run(|| {
        let waiting = Waiting::default();
        let actors: Vec<_> = (0..10 * MOST)
            .map(|number| spawn_parked(number, &waiting))
            .collect();
        // One stack belongs to the main actor.
        assert_eq!(settle(&actors, &waiting), MOST - 1);
        let without = join_all(actors, &waiting, |error| {
            matches!(error, StackError::TooMany { max: MOST }) && error.is_retryable()
        });
        assert_eq!(without, 10 * MOST - (MOST - 1));
        // The stacks can be used again.
        let again: Vec<_> = (0..MOST - 1)
            .map(|number| spawn_parked(number, &waiting))
            .collect();
        assert_eq!(settle(&again, &waiting), MOST - 1);
        assert_eq!(join_all(again, &waiting, |_| false), 0);
    });
}

/// One worker thread's figures from `/proc`.
#[derive(Debug, PartialEq, Eq)]
struct Thread {
    name: String,
    /// Voluntary and involuntary context switches.
    switches: u64,
    /// Time on a processor so far.
    ran_ns: u64,
    asleep: bool,
}

fn workers() -> Vec<Thread> {
    let mut workers = Vec::new();
    for thread in std::fs::read_dir("/proc/self/task").unwrap() {
        let folder = thread.unwrap().path();
        let read = |file| std::fs::read_to_string(folder.join(file)).unwrap();
        let name = read("comm").trim().to_owned();
        if !name.starts_with("tw-") {
            continue;
        }
        let status = read("status");
        let switches = status
            .lines()
            .filter(|line| line.contains("ctxt_switches"))
            .map(|line| line.rsplit('\t').next().unwrap().parse::<u64>().unwrap())
            .sum();
        let ran = read("schedstat");
        let ran_ns = ran.split(' ').next().unwrap().parse().unwrap();
        workers.push(Thread {
            name,
            switches,
            ran_ns,
            asleep: status.contains("State:\tS"),
        });
    }
    workers.sort_by(|one, other| one.name.cmp(&other.name));
    workers
}

const WATCHED: Option<Duration> = if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
    Some(Duration::from_millis(100))
} else {
    None
};

#[test]
#[ignore = "counts the process's context switches: `make prove-million`"]
fn ten_thousand_parked_actors_wake_no_thread_in_five_seconds() {
    const MANY: usize = 10_000;
    // The watcher, if there is one, must sleep too.
    let config = Config::with_workers(2).stall(WATCHED);
    let runtime = Runtime::start(config).unwrap();
    let waiting = Waiting::default();
    let actors: Vec<_> = (0..MANY)
        .map(|number| {
            let waiting = Arc::clone(&waiting);
            runtime.handle().spawn(move || park(number, &waiting))
        })
        .collect();
    // The threads are at rest when nothing has happened for a while. The time until then does not
    // matter.
    let mut before = workers();
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let now = workers();
        let rest = now == before && now.iter().all(|worker| worker.asleep);
        before = now;
        if rest && waiting.lock().unwrap().len() == MANY {
            break;
        }
    }
    let threads = 2 + usize::from(WATCHED.is_some());
    assert_eq!(before.len(), threads, "{before:?}");
    std::thread::sleep(Duration::from_secs(5));
    let after = workers();
    assert_eq!(before, after);
    println!("{MANY} parked actors: 0 context switches and 0 ns in 5 s, of {after:?}");
    assert_eq!(join_all(actors, &waiting, |_| false), 0);
}
