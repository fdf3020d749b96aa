//! Walks a tree that is a million levels deep on one side, in two ways: with an explicit stack,
//! which supports any depth, and recursively, in an actor with a large stack.
//!
//! The program asserts that both find the same sum. An actor per level would need a stack per
//! level, where one stack is enough.

use thalweg::runtime::{Config, init, run, spawn};

const DEPTH: u64 = 1_000_000;
/// The depth that the recursive walk supports on a stack of 64 MiB.
const RECURSIVE_DEPTH: u64 = 100_000;

/// The children of a node: a leaf with the number of its level, and the rest of the tree.
fn children(level: u64, depth: u64) -> (u64, Option<u64>) {
    (level, (level + 1 < depth).then_some(level + 1))
}

fn sum_with_stack(depth: u64) -> u64 {
    let mut stack = vec![0];
    let mut sum = 0;
    while let Some(level) = stack.pop() {
        let (leaf, rest) = children(level, depth);
        sum += leaf;
        stack.extend(rest);
    }
    sum
}

fn sum_recursively(level: u64, depth: u64) -> u64 {
    let (leaf, rest) = children(level, depth);
    leaf + rest.map_or(0, |rest| sum_recursively(rest, depth))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sum = run(|| spawn(|| sum_with_stack(DEPTH)).join())?;
    assert_eq!(sum, DEPTH * (DEPTH - 1) / 2);
    println!("{DEPTH} levels with an explicit stack: {sum}");

    let large = Config {
        stack_size: 64 << 20,
        ..Config::with_workers(1)
    };
    let recursive = init(large)?.run(|| spawn(|| sum_recursively(0, RECURSIVE_DEPTH)).join())?;
    assert_eq!(recursive, sum_with_stack(RECURSIVE_DEPTH));
    println!("{RECURSIVE_DEPTH} levels recursively, on 64 MiB: {recursive}");
    Ok(())
}
