//! How far down a stack has memory: what was used of it since its memory was last given back.

use super::page_size;

/// Pages that the kernel is asked for at once.
const AT_ONCE: usize = 256;

/// The lowest address from `start` on, which [`usable_around`](super::usable_around) gave, that has memory; `None`: none has, or the system does not say.
/// From any thread: stacks are never unmapped (rule 1), so the answer is about that memory, whoever has it by now.
#[cfg(target_os = "linux")]
pub(crate) fn lowest_touched(start: usize, end: usize) -> Option<usize> {
    let page = page_size();
    let mut from = start;
    while from < end {
        let mut pages = [0_u8; AT_ONCE];
        let count = (end - from).div_ceil(page).min(AT_ONCE);
        let address = std::ptr::without_provenance_mut(from);
        // SAFETY: rule 6: a mapping of ours; and `pages` has room for as many bytes.
        let asked = unsafe { libc::mincore(address, count * page, pages.as_mut_ptr()) };
        if asked != 0 {
            return None;
        }
        if let Some(first) = pages[..count].iter().position(|page| page & 1 != 0) {
            return Some(from + first * page);
        }
        from += count * page;
    }
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn lowest_touched(_: usize, _: usize) -> Option<usize> {
    None
}
