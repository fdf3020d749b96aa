//! Tests of stacks as a whole. Tests of a single file are in that file.

mod child;
mod guarding;
mod overflowing;
mod pooling;
#[cfg(target_os = "linux")]
mod trimming;

use super::Stack;
use corosensei::stack::Stack as _;

/// Writes one byte at each of these distances from the stack's base, like a call of that depth.
fn touch(stack: &Stack, depths: impl IntoIterator<Item = usize>) {
    for depth in depths {
        let place = (stack.base().get() - depth) as *mut u8;
        // SAFETY: rule 2. No code runs on the stack, and the caller owns it.
        unsafe { place.write_volatile(1) };
    }
}

/// Returns the number of pages in the usable part of the stack that have memory.
#[cfg(target_os = "linux")]
fn resident(stack: &Stack) -> usize {
    let layout = stack.depot.layout();
    let start = stack.limit().get() + layout.guard;
    let len = layout.size - layout.guard;
    let mut pages = vec![0u8; len / super::page_size()];
    // SAFETY: rule 6.
    let result = unsafe { libc::mincore(start as *mut libc::c_void, len, pages.as_mut_ptr()) };
    assert_eq!(result, 0);
    pages.iter().filter(|&&page| page & 1 == 1).count()
}

/// Returns the number of mappings of this process.
#[cfg(target_os = "linux")]
fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux has it");
    maps.lines().count()
}
