//! Threads that are pinned to one processor each. They are in a process of their own, because the
//! setting is one of the process.
#![cfg(all(not(loom), not(miri)))]

use std::thread;

use thalweg_queue::spin::{let_threads_spin, processors};

/// Pins the calling thread to the first processor of its mask.
fn pin() {
    // SAFETY: an all-zero cpu_set_t is a valid, empty set; the size is that of the set.
    unsafe {
        let mut all: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&all), &mut all), 0);
        let first = (0..libc::CPU_SETSIZE as usize).find(|&number| libc::CPU_ISSET(number, &all));
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(first.expect("a thread has a processor"), &mut one);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&one), &one), 0);
    }
}

fn processors_of_a_pinned_thread() -> usize {
    let pinned = thread::spawn(|| {
        pin();
        processors()
    });
    pinned.join().expect("it does not panic")
}

#[test]
fn pinned_thread_counts_the_processors_of_all_threads_after_it_is_allowed() {
    let all = processors();
    assert_eq!(processors_of_a_pinned_thread(), 1);
    let_threads_spin(1);
    assert_eq!(processors_of_a_pinned_thread(), all);
    assert_eq!(processors(), all);
}
