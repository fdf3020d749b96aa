//! What holds for stacks as a whole; what holds for one file stands there.

mod child;
mod guarding;
mod overflowing;
mod pooling;
#[cfg(target_os = "linux")]
mod trimming;

use super::Stack;
use corosensei::stack::Stack as _;

/// Writes one byte at each of these distances from the stack's base, as a call that deep would.
fn touch(stack: &Stack, depths: impl IntoIterator<Item = usize>) {
    for depth in depths {
        let place = (stack.base().get() - depth) as *mut u8;
        // SAFETY: rule 2: nothing runs on the stack, and who calls this has it.
        unsafe { place.write_volatile(1) };
    }
}

/// Pages of the stack's usable part that have memory.
#[cfg(target_os = "linux")]
fn resident(stack: &Stack) -> usize {
    let shape = stack.depot.shape();
    let start = stack.limit().get() + shape.guard;
    let len = shape.size - shape.guard;
    let mut pages = vec![0u8; len / super::page_size()];
    // SAFETY: rule 6.
    let result = unsafe { libc::mincore(start as *mut libc::c_void, len, pages.as_mut_ptr()) };
    assert_eq!(result, 0);
    pages.iter().filter(|&&page| page & 1 == 1).count()
}

/// Mappings of this process.
#[cfg(target_os = "linux")]
fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux has it");
    maps.lines().count()
}
