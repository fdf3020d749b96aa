//! Two hundred requests that share four connections, a cache, and settings that change meanwhile.
//!
//! The program asserts that at most four requests use a connection at a time, and that each key is
//! fetched once. A waiting request leaves its worker to other actors.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use thalweg::runtime::sync::{Mutex, RwLock, Semaphore, watch};
use thalweg::runtime::{Config, init, sleep, spawn};

const REQUESTS: u32 = 200;
const KEYS: u32 = 20;
const CONNECTIONS: usize = 4;

#[derive(Default)]
struct Counters {
    now: AtomicUsize,
    max: AtomicUsize,
    fetches: AtomicUsize,
}

struct Client {
    connections: Semaphore,
    /// One lock for the map, and one per key: a request that fetches a key blocks only the requests
    /// for the same key.
    cache: RwLock<HashMap<u32, Arc<Mutex<Option<String>>>>>,
    counters: Counters,
}

impl Client {
    fn get(&self, key: u32, settings: &watch::Receiver<&'static str>) -> String {
        let cached = self.cache.read().get(&key).cloned();
        let entry = cached.unwrap_or_else(|| self.cache.write().entry(key).or_default().clone());
        // Held during a wait, which a lock of `std` must not be.
        let mut value = entry.lock();
        value
            .get_or_insert_with(|| self.fetch(key, settings))
            .clone()
    }

    fn fetch(&self, key: u32, settings: &watch::Receiver<&'static str>) -> String {
        let _connection = self
            .connections
            .acquire()
            .expect("the semaphore is not closed");
        let now = self.counters.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.counters.max.fetch_max(now, Ordering::Relaxed);
        self.counters.fetches.fetch_add(1, Ordering::Relaxed);
        sleep(Duration::from_millis(1));
        self.counters.now.fetch_sub(1, Ordering::Relaxed);
        format!("{}/{key}", *settings.borrow())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (max, fetches, from_second) = init(Config::default())?.run(|| {
        let client = Arc::new(Client {
            connections: Semaphore::new(CONNECTIONS),
            cache: RwLock::default(),
            counters: Counters::default(),
        });
        let (server, settings) = watch::channel("first");
        let requests: Vec<_> = (0..REQUESTS)
            .map(|n| {
                let (client, settings) = (client.clone(), settings.clone());
                spawn(move || client.get(n % KEYS, &settings))
            })
            .collect();
        // By then, the first requests have been answered.
        sleep(Duration::from_millis(2));
        server.send("second").expect("there are receivers");
        let answers: Vec<_> = requests
            .into_iter()
            .map(|request| request.join().expect("a request does not panic"))
            .collect();
        for (n, answer) in answers.iter().enumerate() {
            assert!(
                answer.ends_with(&format!("/{}", n % KEYS as usize)),
                "{answer}"
            );
        }
        let from_second = answers.iter().filter(|a| a.starts_with("second")).count();
        let counters = &client.counters;
        let value = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        (value(&counters.max), value(&counters.fetches), from_second)
    });
    println!(
        "{REQUESTS} requests, {fetches} fetches, at most {max} at a time; {from_second} answers are from the second server."
    );
    assert_eq!(fetches, KEYS as usize);
    assert!(max <= CONNECTIONS);
    Ok(())
}
