//! Two hundred requests, of which four are under way at a time: they share connections, a cache, and settings that change meanwhile.
//!
//! It claims that no more are under way than were allowed, that each key is fetched once, and that what waits leaves its worker to others.

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
struct Seen {
    now: AtomicUsize,
    most: AtomicUsize,
    fetches: AtomicUsize,
}

struct Client {
    connections: Semaphore,
    /// One lock for all keys, and one for each: who fetches a key keeps only those waiting that want the same.
    cache: RwLock<HashMap<u32, Arc<Mutex<Option<String>>>>>,
    seen: Seen,
}

impl Client {
    fn get(&self, key: u32, settings: &watch::Receiver<&'static str>) -> String {
        let known = self.cache.read().get(&key).cloned();
        let entry = known.unwrap_or_else(|| self.cache.write().entry(key).or_default().clone());
        // Held over a wait, as a lock of `std` must not be.
        let mut value = entry.lock();
        value
            .get_or_insert_with(|| self.fetch(key, settings))
            .clone()
    }

    fn fetch(&self, key: u32, settings: &watch::Receiver<&'static str>) -> String {
        let _connection = self.connections.acquire().expect("nobody closes it");
        let now = self.seen.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.seen.most.fetch_max(now, Ordering::Relaxed);
        self.seen.fetches.fetch_add(1, Ordering::Relaxed);
        sleep(Duration::from_millis(1));
        self.seen.now.fetch_sub(1, Ordering::Relaxed);
        format!("{}/{key}", *settings.borrow())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (most, fetches, moved) = init(Config::default())?.run(|| {
        let client = Arc::new(Client {
            connections: Semaphore::new(CONNECTIONS),
            cache: RwLock::default(),
            seen: Seen::default(),
        });
        let (server, settings) = watch::channel("first");
        let requests: Vec<_> = (0..REQUESTS)
            .map(|n| {
                let (client, settings) = (client.clone(), settings.clone());
                spawn(move || client.get(n % KEYS, &settings))
            })
            .collect();
        // Once the first have been answered.
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
        let moved = answers.iter().filter(|a| a.starts_with("second")).count();
        let seen = &client.seen;
        let figure = |of: &AtomicUsize| of.load(Ordering::Relaxed);
        (figure(&seen.most), figure(&seen.fetches), moved)
    });
    println!(
        "{REQUESTS} requests, {fetches} fetches, {most} at a time at most; {moved} answers are from the second server."
    );
    assert_eq!(fetches, KEYS as usize);
    assert!(most <= CONNECTIONS);
    Ok(())
}
