//! Tests of returning unused memory.

use super::{resident, touch};
use crate::stack::guard::Guards;
use crate::stack::{Depot, Magazine, Stack};

const SIZE: usize = 256 << 10;
const PAGE: usize = 4 << 10;

/// Returns stacks of a new depot, each used to a depth of 20 pages.
fn deep(magazine: &mut Magazine, count: usize) -> Vec<Stack> {
    let stacks: Vec<_> = (0..count)
        .map(|_| magazine.take().expect("a stack"))
        .collect();
    for stack in &stacks {
        touch(
            stack,
            [1].into_iter().chain((1..=20).map(|page| page * PAGE)),
        );
    }
    stacks
}

fn apart(guards: Guards) -> &'static Depot {
    Depot::apart(SIZE, guards, 1_000)
}

#[test]
fn trim_keeps_the_top_of_deeply_used_stacks() {
    for guards in [Guards::probed(), Guards::Heavy] {
        let mut magazine = Magazine::new(apart(guards));
        let stacks = deep(&mut magazine, 32);
        assert!(stacks.iter().all(|stack| resident(stack) >= 20));
        for stack in stacks {
            magazine.give(stack);
        }
        while magazine.trim() {}
        let again: Vec<_> = (0..32).map(|_| magazine.take().expect("a stack")).collect();
        // The four most recently used stacks are not trimmed.
        let (warm, trimmed) = again.split_at(4);
        assert!(warm.iter().all(|stack| resident(stack) >= 20));
        assert!(trimmed.iter().all(|stack| resident(stack) == 4));
    }
}

#[test]
fn trim_call_is_bounded() {
    let mut magazine = Magazine::new(apart(Guards::probed()));
    for stack in deep(&mut magazine, 32) {
        magazine.give(stack);
    }
    assert!(magazine.trim());
    let again: Vec<_> = (0..32).map(|_| magazine.take().expect("a stack")).collect();
    let trimmed = again.iter().filter(|stack| resident(stack) == 4).count();
    assert_eq!(trimmed, 4);
}

#[test]
fn stacks_in_the_depot_are_trimmed() {
    let depot = apart(Guards::probed());
    let mut magazine = Magazine::new(depot);
    drop(deep(&mut magazine, 100));
    while magazine.trim() {}
    assert!(!depot.needs_trim());
    let again: Vec<_> = (0..100)
        .map(|_| magazine.take().expect("a stack"))
        .collect();
    let deep = again.iter().filter(|stack| resident(stack) > 4).count();
    assert_eq!(deep, 0);
}

#[test]
fn guard_faults_after_a_trim() {
    let name = "trimming::guard_faults_after_a_trim";
    let ended = super::child::in_child(name, || {
        let depot = apart(Guards::probed());
        let mut magazine = Magazine::new(depot);
        drop(deep(&mut magazine, 8));
        while magazine.trim() {}
        let stack = magazine.take().expect("a stack");
        let usable = SIZE - depot.layout().guard;
        touch(&stack, [usable - 2048]);
        println!("used again");
        touch(&stack, [usable + 1]);
    });
    assert_eq!(ended.signal, Some(libc::SIGSEGV), "{ended:?}");
    assert!(ended.stdout.contains("used again"), "{ended:?}");
}

#[test]
fn stacks_in_the_depot_have_no_memory_after_a_release() {
    for guards in [Guards::probed(), Guards::Heavy] {
        let depot = apart(guards);
        let mut magazine = Magazine::new(depot);
        let mut stacks = deep(&mut magazine, 200);
        // With gaps: neither a complete slab nor in order.
        let held: Vec<_> = (0..20).map(|nth| stacks.swap_remove(nth * 7)).collect();
        drop(stacks);
        drop(magazine);
        let spare = depot.spare();
        depot.release();
        assert_eq!(depot.spare(), spare);
        let again = deep_or_bare(&mut Magazine::new(depot), spare);
        assert!(again.deep <= 64, "{again:?}");
        assert!(again.bare >= 180 - 64, "{again:?}");
        // Stacks in use are not trimmed.
        assert!(held.iter().all(|stack| resident(stack) >= 20));
    }
}

#[derive(Debug)]
struct Found {
    deep: usize,
    bare: usize,
}

fn deep_or_bare(magazine: &mut Magazine, count: usize) -> Found {
    let stacks: Vec<_> = (0..count)
        .map(|_| magazine.take().expect("a stack"))
        .collect();
    let those =
        |is_it: fn(usize) -> bool| stacks.iter().filter(|stack| is_it(resident(stack))).count();
    Found {
        deep: those(|pages| pages > 0),
        bare: those(|pages| pages == 0),
    }
}

#[test]
fn guard_faults_after_a_release() {
    let name = "trimming::guard_faults_after_a_release";
    let ended = super::child::in_child(name, || {
        let depot = apart(Guards::probed());
        drop(deep(&mut Magazine::new(depot), 200));
        depot.release();
        let mut magazine = Magazine::new(depot);
        let stacks: Vec<_> = (0..200)
            .map(|_| magazine.take().expect("a stack"))
            .collect();
        let usable = SIZE - depot.layout().guard;
        let bare = stacks.iter().find(|stack| resident(stack) == 0);
        let bare = bare.expect("most were released");
        touch(bare, [usable - 2048]);
        println!("used again");
        touch(bare, [usable + 1]);
    });
    assert_eq!(ended.signal, Some(libc::SIGSEGV), "{ended:?}");
    assert!(ended.stdout.contains("used again"), "{ended:?}");
}

#[test]
fn surplus_stacks_of_a_burst_keep_no_tops() {
    let depot = Depot::apart(SIZE, Guards::probed(), 10_000);
    let mut magazine = Magazine::new(depot);
    drop(deep(&mut magazine, 1_500));
    while magazine.trim() {}
    let spare = depot.spare();
    let again = deep_or_bare(&mut Magazine::new(depot), spare);
    assert!(again.bare >= 1_500 - 1_024 - 64, "{again:?}");
    assert!(again.deep >= 1_000, "{again:?}");
}
