//! Tests of taking and returning stacks.

use std::collections::HashSet;

use corosensei::stack::Stack as _;
use corosensei::{Coroutine, CoroutineResult};

use super::touch;
use crate::stack::guard::Guards;
use crate::stack::{Depot, Magazine, Stack};

const SIZE: usize = 256 << 10;

fn apart() -> &'static Depot {
    Depot::apart(SIZE, Guards::probed(), 1_000)
}

fn taken(magazine: &mut Magazine, count: usize) -> Vec<Stack> {
    (0..count)
        .map(|_| magazine.take().expect("a stack"))
        .collect()
}

#[test]
fn returned_stack_is_taken_again() {
    let mut magazine = Magazine::new(apart());
    let stack = magazine.take().expect("a stack");
    let base = stack.base();
    let mut coroutine = Coroutine::with_stack(stack, |yielder, first: u32| {
        let second = yielder.suspend(first + 1);
        let deep = std::hint::black_box([second as u8; 100 << 10]);
        u32::from(deep[50 << 10])
    });
    assert!(matches!(coroutine.resume(1), CoroutineResult::Yield(2)));
    assert!(matches!(coroutine.resume(7), CoroutineResult::Return(7)));
    magazine.give(coroutine.into_stack());
    assert_eq!(magazine.take().expect("the same").base(), base);
}

#[test]
fn last_returned_stack_is_taken_next() {
    let mut magazine = Magazine::new(apart());
    let [a, b] = [magazine.take(), magazine.take()].map(|stack| stack.expect("a stack"));
    let bases = [a.base(), b.base()];
    magazine.give(b);
    magazine.give(a);
    let again = taken(&mut magazine, 2);
    assert_eq!([again[0].base(), again[1].base()], bases);
}

#[test]
fn stacks_do_not_overlap_and_have_the_requested_size() {
    let mut magazine = Magazine::new(apart());
    let mut stacks = taken(&mut magazine, 200);
    stacks.sort_by_key(Stack::base);
    for pair in stacks.windows(2) {
        assert!(pair[0].base() <= pair[1].limit());
    }
    for stack in &stacks {
        let span = stack.base().get() - stack.limit().get();
        assert_eq!(stack.size(), SIZE);
        assert!((SIZE - 15 * 128..=SIZE).contains(&span), "{span}");
        assert!(stack.base().get().is_multiple_of(128));
        touch(stack, [1, 100_000]);
    }
}

#[test]
fn successive_stack_tops_differ_in_their_cache_sets() {
    let mut magazine = Magazine::new(apart());
    let stacks = taken(&mut magazine, 16);
    let offsets: HashSet<usize> = stacks
        .iter()
        .map(|stack| stack.base().get() % super::super::page_size())
        .collect();
    assert_eq!(offsets.len(), 16);
}

#[test]
fn successive_stacks_are_an_odd_number_of_pages_apart() {
    let page = super::super::page_size();
    for size in [64 << 10, 68 << 10, 1 << 20] {
        let depot = Depot::apart(size, Guards::probed(), 1_000);
        let stacks = taken(&mut Magazine::new(depot), 2);
        let apart = stacks[0].limit().get().abs_diff(stacks[1].limit().get());
        assert!((size..=size + page).contains(&apart));
        assert_eq!(apart / page % 2, 1, "{apart}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn stack_has_no_memory_until_it_is_touched() {
    let mut magazine = Magazine::new(apart());
    let stack = magazine.take().expect("a stack");
    assert_eq!(super::resident(&stack), 0);
    touch(&stack, [1]);
    assert_eq!(super::resident(&stack), 1);
}

#[test]
fn full_magazine_moves_its_colder_half_to_the_depot() {
    let depot = apart();
    let mut magazine = Magazine::new(depot);
    let stacks = taken(&mut magazine, 65);
    let colder = stacks[0].base();
    // Including the surplus of the last refill.
    drop(magazine);
    let spare = depot.spare();
    let mut magazine = Magazine::new(depot);
    for stack in stacks {
        magazine.give(stack);
    }
    assert_eq!(depot.spare(), spare + 32);
    assert!(depot.has_spare(colder));
    drop(magazine);
    assert_eq!(depot.spare(), spare + 65);
}

#[test]
fn magazine_takes_stacks_that_another_returned_to_the_depot() {
    let depot = apart();
    let bases = std::thread::spawn(move || {
        let mut magazine = Magazine::new(depot);
        let stacks = taken(&mut magazine, 20);
        let bases: HashSet<_> = stacks.iter().map(Stack::base).collect();
        for stack in stacks {
            magazine.give(stack);
        }
        bases
    })
    .join()
    .expect("the first worker");
    let mut magazine = Magazine::new(depot);
    let again = taken(&mut magazine, 20);
    let warm = again
        .iter()
        .filter(|stack| bases.contains(&stack.base()))
        .count();
    assert!(warm >= 8, "{warm} of 20");
}

#[test]
fn dropped_stack_returns_to_its_depot() {
    let depot = apart();
    let mut magazine = Magazine::new(depot);
    let stack = magazine.take().expect("a stack");
    let base = stack.base();
    std::thread::spawn(move || drop(stack))
        .join()
        .expect("the thread only drops a stack");
    assert!(depot.has_spare(base));
}

#[test]
fn stack_of_another_size_returns_to_its_own_depot() {
    let (one, other) = (apart(), apart());
    let stack = Magazine::new(other).take().expect("a stack");
    let base = stack.base();
    Magazine::new(one).give(stack);
    assert!(other.has_spare(base));
    assert!(!one.has_spare(base));
}

#[test]
fn concurrent_threads_never_share_a_stack() {
    let depot = apart();
    std::thread::scope(|scope| {
        for id in 1..=4u8 {
            scope.spawn(move || {
                let mut magazine = Magazine::new(depot);
                for round in 0..50 {
                    let stacks = taken(&mut magazine, 20 + round);
                    for stack in &stacks {
                        mark(stack, id);
                    }
                    for stack in stacks {
                        assert_eq!(marked(&stack), id);
                        magazine.give(stack);
                    }
                }
            });
        }
    });
    assert!(depot.spare() <= 4 * 128, "{}", depot.spare());
}

#[test]
fn depot_is_shared_by_stacks_of_one_size() {
    assert!(std::ptr::eq(Depot::of(SIZE), Depot::of(SIZE)));
    assert!(std::ptr::eq(Depot::of(SIZE), Depot::of(SIZE - 1)));
    assert!(!std::ptr::eq(Depot::of(SIZE), Depot::of(2 * SIZE)));
}

#[test]
fn forked_child_uses_its_own_depot() {
    let depot = Depot::of(SIZE);
    let stack = Magazine::new(depot).take().expect("a stack");
    // The lock that another thread may hold during a fork.
    let held = depot.lock();
    // SAFETY: the child needs no other thread, and exits through `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(stack);
        let own = Depot::of(SIZE);
        let taken = Magazine::new(own).take();
        let passed = !std::ptr::eq(own, depot) && taken.is_ok();
        // SAFETY: the call takes no address.
        unsafe { libc::_exit(if passed { 0 } else { 1 }) };
    }
    drop(held);
    let mut status = 0;
    // SAFETY: the status is in this frame.
    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!((waited, status), (child, 0));
}

fn mark(stack: &Stack, id: u8) {
    let place = (stack.base().get() - 1) as *mut u8;
    // SAFETY: rule 2. No code runs on the stack, and the caller owns it.
    unsafe { place.write_volatile(id) };
}

fn marked(stack: &Stack) -> u8 {
    let place = (stack.base().get() - 1) as *const u8;
    // SAFETY: rule 2. No code runs on the stack, and the caller owns it.
    unsafe { place.read_volatile() }
}
