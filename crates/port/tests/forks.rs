//! Handles of a process in the processes that it forked.
#![cfg(all(unix, not(miri)))]

use thalweg_port::{Code, Object, Port, find, insert};

/// More than a handle's eight bits for the process could tell apart.
const DEPTH: u32 = 260;

/// Forks a child that forks the next one, and so on: a part of them open a port of their own and look for those of all before. Whether all went well in
/// the processes from here on.
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
    // SAFETY: the child calls what any process may after a fork of one with threads here: Thalweg, and glibc's allocator.
    match unsafe { libc::fork() } {
        0 => {
            let well = descend(older, depth + 1);
            // SAFETY: it ends the child without the parent's handlers.
            unsafe { libc::_exit(i32::from(!well)) }
        }
        child => {
            let mut status = -1;
            // SAFETY: the child is ours, and the status is a local.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            waited == child && status == 0
        }
    }
}

#[test]
fn handle_in_a_nested_fork_is_forked_at_every_depth() {
    assert!(descend(&mut Vec::new(), 0));
}
