//! Rule 2 under random races: every accepted call completes exactly once, and no call stays in the
//! handle table.
//!
//! A binary of its own: it sets the process's panic hook. With `THALWEG_CALLS`, the threads that share
//! instances make that many calls (`make prove-calls`: ten million).

#[path = "integration/lab/mod.rs"]
mod lab;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use lab::Lab;
use thalweg_port::{Code, Instance, Object, Port, close_handle, find};
use thalweg_queue::clock;

/// Marsaglia's xorshift64 with a seed, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

const CALLS: u64 = 200;

fn arguments(method: u32, random: &mut Random) -> Vec<u8> {
    match method {
        0 | 1 => lab::encode(method, &("text",)),
        3 => lab::encode(3, &(u8::from(random.below(2) == 0),)),
        5 => lab::encode(5, &(random.below(2),)),
        7 => lab::encode(7, &(1u64,)),
        9 => lab::encode(
            9,
            &(
                random.below(3_000),
                random.below(3),
                u8::from(random.below(4) == 0),
            ),
        ),
        10 => lab::encode(10, &(random.below(5),)),
        _ => lab::encode(method, &()),
    }
}

fn round(seed: u64) {
    let mut random = Random(seed * 2 + 1);
    let instance = Instance::open(Lab::default, Instance::runtime().unwrap());
    let port = Port::open(64).unwrap();
    let (mut accepted, mut completed) = (0u64, HashMap::new());
    let mut streams = Vec::new();
    let mut open = Vec::new();
    for token in 0..CALLS {
        let method = [0, 1, 2, 3, 4, 5, 6, 7, 9, 9, 10][random.below(11) as usize];
        let deadline = match random.below(3) {
            // Only the deadline ends this call.
            _ if method == lab::UNTIL_STOPPED => clock::now() + random.below(2_000_000),
            0 => clock::now() + random.below(300_000),
            _ => u64::MAX,
        };
        let args = arguments(method, &mut random);
        match instance.submit(&port, token, method, &args, deadline) {
            Ok(call) => {
                accepted += 1;
                if random.below(4) == 0
                    && let Ok(Object::Call(core)) = find(call)
                {
                    core.cancel();
                }
                open.push(call);
            }
            Err(refused) => assert!(matches!(refused.code, Code::Overloaded | Code::Closed)),
        }
        for mut done in port.reap().unwrap() {
            *completed.entry(done.token).or_insert(0) += 1;
            if done.code == Code::Ok
                && random.below(2) == 0
                && let Ok(handle) = done.take(0)
            {
                streams.push(handle);
            }
        }
        if random.below(8) == 0
            && let Some(handle) = streams.pop()
        {
            if let Ok(Object::Stream(stream)) = find(handle)
                && let Ok(batch) = stream.acquire(16, clock::now() + 500_000)
            {
                stream.release(batch.count).unwrap();
            }
            close_handle(handle).unwrap();
        }
        if random.below(CALLS * 2) == 0 {
            instance.close();
        }
    }
    while completed.len() < accepted as usize {
        port.wait(clock::deadline(Duration::from_secs(60)))
            .expect("every accepted call completes");
        for done in port.reap().unwrap() {
            *completed.entry(done.token).or_insert(0) += 1;
        }
    }
    assert!(completed.values().all(|times| *times == 1));
    assert_eq!(
        port.wait(0).unwrap_err().code,
        Code::TimedOut,
        "no further completion arrives"
    );
    for call in open {
        assert_eq!(find(call).unwrap_err().code, Code::Stale);
    }
    for handle in streams {
        close_handle(handle).unwrap();
    }
    instance.close();
    wait_until_unused(&instance);
}

/// Only the closing turn may still hold a closed instance, for a short time.
fn wait_until_unused(instance: &Arc<Instance>) {
    let deadline = clock::deadline(Duration::from_secs(60));
    while Arc::strong_count(instance) > 1 {
        assert!(clock::now() < deadline, "the instance leaks");
        thread::yield_now();
    }
}

/// The calls of one thread on a port of its own, each with its number as the token.
struct Caller {
    port: Arc<Port>,
    random: Random,
    submitted: u64,
    /// The running calls, by token, and their handles.
    running: HashMap<u64, u64>,
}

impl Caller {
    fn new(seed: u64, slots: u32) -> Self {
        Self {
            port: Port::open(slots).unwrap(),
            random: Random(seed * 2 + 1),
            submitted: 0,
            running: HashMap::new(),
        }
    }

    fn submit(&mut self, instance: &Arc<Instance>) {
        let random = &mut self.random;
        let method = [0, 1, 2, 3, 4, 5, 6, 10][random.below(8) as usize];
        let deadline = match random.below(3) {
            _ if method == lab::UNTIL_STOPPED => clock::now() + random.below(2_000_000),
            0 => clock::now() + random.below(300_000),
            _ => u64::MAX,
        };
        let args = arguments(method, random);
        let token = self.submitted;
        match instance.submit(&self.port, token, method, &args, deadline) {
            Ok(call) => {
                self.submitted += 1;
                self.running.insert(token, call);
            }
            Err(refused) => {
                assert!(matches!(refused.code, Code::Overloaded | Code::Closed));
                thread::yield_now();
            }
        }
    }

    /// Cancels the call with this token, if it runs.
    fn cancel(&self, token: u64) {
        if let Some(call) = self.running.get(&token)
            && let Ok(Object::Call(core)) = find(*call)
        {
            core.cancel();
        }
    }

    fn reap(&mut self) {
        for done in self.port.reap().unwrap() {
            let call = self.running.remove(&done.token);
            assert_eq!(call, Some(done.handle), "each call completes once");
        }
    }

    fn reap_all(&mut self) {
        while !self.running.is_empty() {
            self.port
                .wait(clock::deadline(Duration::from_secs(60)))
                .expect("every accepted call completes");
            self.reap();
        }
        assert_eq!(self.port.wait(0).unwrap_err().code, Code::TimedOut);
    }
}

/// A host closes the port of a thread that ends.
impl Drop for Caller {
    fn drop(&mut self) {
        self.port.close();
    }
}

fn open() -> Arc<Instance> {
    Instance::open(Lab::default, Instance::runtime().unwrap())
}

/// Intended panics would print many lines. Another test checks their text.
fn silence_panics() {
    std::panic::set_hook(Box::new(|_| {}));
}

#[test]
fn calls_of_eight_threads_on_shared_instances_complete_once() {
    silence_panics();
    let all: u64 = std::env::var("THALWEG_CALLS").map_or(8_000, |calls| calls.parse().unwrap());
    let shared = Mutex::new(open());
    let current = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        for seed in 1..=8 {
            scope.spawn(move || {
                let mut caller = Caller::new(seed, 64);
                while caller.submitted < all / 8 {
                    let instance = Arc::clone(&current());
                    caller.submit(&instance);
                    if caller.random.below(4) == 0 {
                        let back = caller.random.below(8);
                        caller.cancel(caller.submitted.saturating_sub(back));
                    }
                    if caller.random.below(1_000) == 0 {
                        let closed = std::mem::replace(&mut *current(), open());
                        closed.close();
                    }
                    caller.reap();
                }
                caller.reap_all();
            });
        }
    });
    current().close();
}

#[test]
fn calls_of_threads_that_have_died_complete_once_or_with_their_port() {
    silence_panics();
    let instance = open();
    let (left, callers) = mpsc::channel();
    let threads: Vec<_> = (1..=100)
        .map(|seed| {
            let (instance, left) = (Arc::clone(&instance), left.clone());
            thread::spawn(move || {
                let mut caller = Caller::new(seed, 64);
                while caller.submitted < 32 {
                    caller.submit(&instance);
                }
                match seed % 4 {
                    // The port remains, as when a thread of a C program ends.
                    0 | 1 => left.send(caller).unwrap(),
                    2 => drop(caller),
                    _ => panic!("with calls in flight"),
                }
            })
        })
        .collect();
    let died = threads.into_iter().map(thread::JoinHandle::join);
    assert_eq!(died.filter(Result::is_err).count(), 25);
    drop(left);
    let mut remaining: Vec<Caller> = callers.into_iter().collect();
    assert_eq!(remaining.len(), 50);
    remaining.iter_mut().for_each(Caller::reap_all);
    instance.close();
    wait_until_unused(&instance);
}

#[test]
fn accepted_calls_complete_once_under_random_races() {
    silence_panics();
    let threads: Vec<_> = (0..4u64)
        .map(|t| thread::spawn(move || (0..25).for_each(|r| round(t * 1_000 + r + 1))))
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
