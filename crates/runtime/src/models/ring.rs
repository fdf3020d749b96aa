//! Models of `ring`: no entry is lost or taken twice.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use thalweg_queue::explore::{large_model, model};

use crate::ring::{Ring, SIZE};

/// An entry of a ring: written before it is pushed, read after it was taken.
struct Job(UnsafeCell<u32>);

fn new_task(bit: u32) -> *mut Job {
    Box::into_raw(Box::new(Job(UnsafeCell::new(bit))))
}

/// Reads and frees the entry.
fn take(job: *mut Job) -> u32 {
    // SAFETY: it came from `job`, and the ring returns it once. If it were taken twice, loom would
    // find a read concurrent with the write.
    let job = unsafe { &*job };
    // SAFETY: as above.
    let bit = job.0.with_mut(|bit| unsafe { std::mem::take(&mut *bit) });
    assert!(bit != 0, "the entry was taken twice");
    bit
}

/// Takes all entries. Each of them occurs once.
fn drain(ring: &Ring<Job>) -> u32 {
    std::iter::from_fn(|| ring.pop()).map(take).sum()
}

fn steal(from: &Ring<Job>) -> u32 {
    let mine = Ring::new();
    from.steal(&mine, u32::MAX).map_or(0, take) + drain(&mine)
}

/// The ring is full, so the owner's entries replace the stolen ones.
#[test]
fn owner_and_one_thief() {
    model(|| {
        let ring = Arc::new(Ring::new());
        for nth in 0..SIZE {
            ring.push(new_task(1 << nth)).unwrap();
        }
        let from = ring.clone();
        let thief = thread::spawn(move || steal(&from) + steal(&from));
        let mut mine = 0;
        for nth in SIZE..SIZE + 2 {
            if let Err(full) = ring.push(new_task(1 << nth)) {
                mine += take(full);
            }
        }
        mine += ring.pop().map_or(0, take);
        let all = mine + thief.join().unwrap() + drain(&ring);
        assert_eq!(all, (1 << (SIZE + 2)) - 1);
    });
}

/// The owner makes space while a thief takes tasks.
#[test]
fn owner_takes_half_beside_a_thief() {
    model(|| {
        let ring = Arc::new(Ring::new());
        for nth in 0..SIZE {
            ring.push(new_task(1 << nth)).unwrap();
        }
        let from = ring.clone();
        let thief = thread::spawn(move || steal(&from));
        let mut mine: u32 = ring.pop_half().map(take).sum();
        assert!(ring.push(new_task(1 << SIZE)).is_ok(), "there is space");
        mine += ring.pop().map_or(0, take);
        let all = mine + thief.join().unwrap() + drain(&ring);
        assert_eq!(all, (1 << (SIZE + 1)) - 1);
    });
}

#[test]
fn owner_and_two_thieves() {
    large_model(|| {
        let ring = Arc::new(Ring::new());
        for nth in 0..SIZE - 1 {
            ring.push(new_task(1 << nth)).unwrap();
        }
        let thieves = [(); 2].map(|()| {
            let from = ring.clone();
            thread::spawn(move || steal(&from))
        });
        let mut mine = ring.pop().map_or(0, take);
        for nth in SIZE - 1..SIZE + 1 {
            if let Err(full) = ring.push(new_task(1 << nth)) {
                mine += take(full);
            }
        }
        let theirs: u32 = thieves.into_iter().map(|thief| thief.join().unwrap()).sum();
        assert_eq!(mine + theirs + drain(&ring), (1 << (SIZE + 1)) - 1);
    });
}
