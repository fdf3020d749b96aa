//! Handles in forked processes.
//!
//! A binary of its own: it forks the process, which must not run other tests.
#![cfg(all(unix, not(miri)))]

use thalweg_port::{Code, Object, Port, find, insert};

/// More processes than eight bits of a handle could distinguish.
const DEPTH: u32 = 260;

/// Forks a child that forks the next one, and so on. Some of the children open a port and look up
/// the handles of all older processes. Returns whether this process and its descendants succeeded.
fn descend(older: &mut Vec<u64>, depth: u32) -> bool {
    if depth.is_multiple_of(64) {
        let own = insert(Object::Port(Port::open(1).unwrap())).unwrap();
        let is_forked = |handle: &u64| find(*handle).is_err_and(|why| why.code == Code::Forked);
        if !older.iter().all(is_forked) || find(own).is_err() {
            return false;
        }
        older.push(own);
    }
    if depth == DEPTH {
        return true;
    }
    // SAFETY: the child only calls Thalweg and glibc's allocator, which support a fork of a
    // multi-threaded process.
    match unsafe { libc::fork() } {
        0 => {
            let well = descend(older, depth + 1);
            // SAFETY: it ends the child without the parent's exit handlers.
            unsafe { libc::_exit(i32::from(!well)) }
        }
        child => {
            let mut status = -1;
            // SAFETY: the child belongs to this process, and the status is a local variable.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            waited == child && status == 0
        }
    }
}

#[test]
fn handle_in_a_nested_fork_is_forked_at_every_depth() {
    assert!(descend(&mut Vec::new(), 0));
}
