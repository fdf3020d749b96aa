//! What actors share, where nobody waits.

use std::hint::black_box;

use thalweg::runtime::sync::{Mutex, Notify, RwLock, Semaphore};

/// A value is locked, changed and unlocked.
pub fn mutex_pair(count: u64) {
    let mutex = Mutex::new(0);
    for _ in 0..count {
        *black_box(&mutex).lock() += 1;
    }
    assert_eq!(mutex.into_inner(), count);
}

/// A value is locked for reading, read and unlocked.
pub fn read_pair(count: u64) {
    let lock = RwLock::new(1);
    for _ in 0..count {
        black_box(*black_box(&lock).read());
    }
}

/// A permit is taken and given back.
pub fn permit_pair(count: u64) {
    let semaphore = Semaphore::new(1);
    for _ in 0..count {
        drop(black_box(&semaphore).acquire().expect("nobody closes it"));
    }
}

/// A wake-up is left and taken.
pub fn notify_pair(count: u64) {
    let notify = Notify::new();
    for _ in 0..count {
        black_box(&notify).notify_one();
        black_box(&notify).wait();
    }
}
