//! Memory that stacks no longer use.

use super::{resident, touch};
use crate::stack::guard::Guards;
use crate::stack::{Depot, Magazine, Stack};

const SIZE: usize = 256 << 10;
const PAGE: usize = 4 << 10;

/// Stacks of a new depot, used to 20 pages' depth.
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
fn stacks_that_were_used_deep_keep_their_top_when_a_worker_sleeps() {
    for guards in [Guards::probed(), Guards::Heavy] {
        let mut magazine = Magazine::new(apart(guards));
        let stacks = deep(&mut magazine, 32);
        assert!(stacks.iter().all(|stack| resident(stack) >= 20));
        for stack in stacks {
            magazine.give(stack);
        }
        while magazine.trim() {}
        let again: Vec<_> = (0..32).map(|_| magazine.take().expect("a stack")).collect();
        // The warmest four are left as they are.
        let (warm, trimmed) = again.split_at(4);
        assert!(warm.iter().all(|stack| resident(stack) >= 20));
        assert!(trimmed.iter().all(|stack| resident(stack) == 4));
    }
}

#[test]
fn a_call_of_trim_is_bounded() {
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
fn what_lies_in_the_depot_is_trimmed_too() {
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
fn a_guard_still_faults_after_a_trim() {
    let name = "trimming::a_guard_still_faults_after_a_trim";
    let ended = super::child::in_child(name, || {
        let depot = apart(Guards::probed());
        let mut magazine = Magazine::new(depot);
        drop(deep(&mut magazine, 8));
        while magazine.trim() {}
        let stack = magazine.take().expect("a stack");
        let usable = SIZE - depot.shape().guard;
        touch(&stack, [usable - 2048]);
        println!("used again");
        touch(&stack, [usable + 1]);
    });
    assert_eq!(ended.signal, Some(libc::SIGSEGV), "{ended:?}");
    assert!(ended.stdout.contains("used again"), "{ended:?}");
}
