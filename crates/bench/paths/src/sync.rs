//! The objects that actors share, without contention.

use std::hint::black_box;

use thalweg::runtime::sync::{Mutex, Notify, RwLock, Semaphore};

/// Locks, changes and unlocks a value.
pub fn mutex_pair(count: u64) {
    let mutex = Mutex::new(0);
    for _ in 0..count {
        *black_box(&mutex).lock() += 1;
    }
    assert_eq!(mutex.into_inner(), count);
}

/// Locks a value for reading, reads and unlocks it.
pub fn read_pair(count: u64) {
    let lock = RwLock::new(1);
    for _ in 0..count {
        black_box(*black_box(&lock).read());
    }
}

/// Acquires and releases a permit.
pub fn permit_pair(count: u64) {
    let semaphore = Semaphore::new(1);
    for _ in 0..count {
        drop(black_box(&semaphore).acquire().expect("nobody closes it"));
    }
}

/// Stores and consumes a wake-up.
pub fn notify_pair(count: u64) {
    let notify = Notify::new();
    for _ in 0..count {
        black_box(&notify).notify_one();
        black_box(&notify).wait();
    }
}
