//! Rule 2 under random races: every accepted call completes exactly once, and no call stays in the
//! handle table.
//!
//! A binary of its own: it sets the process's panic hook.

#[path = "integration/lab/mod.rs"]
mod lab;

use std::collections::HashMap;
use std::sync::Arc;
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
    // Only the closing turn may still hold the instance, for a short time.
    let deadline = clock::deadline(Duration::from_secs(60));
    while Arc::strong_count(&instance) > 1 {
        assert!(clock::now() < deadline, "the instance leaks");
        std::thread::yield_now();
    }
}

#[test]
fn accepted_calls_complete_once_under_random_races() {
    // Intended panics would print many lines. Another test checks their text.
    std::panic::set_hook(Box::new(|_| {}));
    let threads: Vec<_> = (0..4u64)
        .map(|t| std::thread::spawn(move || (0..25).for_each(|r| round(t * 1_000 + r + 1))))
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
