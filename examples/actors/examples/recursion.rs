//! A tree that is a million levels deep on one side, walked in two ways: with an explicit stack, which takes any depth, and plainly, by an actor whose
//! stack is as large as that takes.
//!
//! It claims that both find the same sum. An actor for each level would be a stack for each level, where one does.

use thalweg::runtime::{Config, init, run, spawn};

const DEPTH: u64 = 1_000_000;
/// What the plain walk can take of it on 64 MiB.
const PLAIN_DEPTH: u64 = 100_000;

/// Each node has a leaf of its own number, and the rest of the tree.
fn children(level: u64, depth: u64) -> (u64, Option<u64>) {
    (level, (level + 1 < depth).then_some(level + 1))
}

fn explicitly(depth: u64) -> u64 {
    let mut stack = vec![0];
    let mut sum = 0;
    while let Some(level) = stack.pop() {
        let (leaf, rest) = children(level, depth);
        sum += leaf;
        stack.extend(rest);
    }
    sum
}

fn plainly(level: u64, depth: u64) -> u64 {
    let (leaf, rest) = children(level, depth);
    leaf + rest.map_or(0, |rest| plainly(rest, depth))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sum = run(|| spawn(|| explicitly(DEPTH)).join())?;
    assert_eq!(sum, DEPTH * (DEPTH - 1) / 2);
    println!("{DEPTH} levels with an explicit stack: {sum}");

    let large = Config {
        stack_size: 64 << 20,
        ..Config::exact(1)
    };
    let plain = init(large)?.run(|| spawn(|| plainly(0, PLAIN_DEPTH)).join())?;
    assert_eq!(plain, explicitly(PLAIN_DEPTH));
    println!("{PLAIN_DEPTH} levels plainly, on 64 MiB: {plain}");
    Ok(())
}
