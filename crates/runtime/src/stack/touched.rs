//! The depth to which a stack has memory: the depth to which it was used since its memory was last
//! returned.

use super::page_size;

/// The number of pages for one call of `mincore`.
const BATCH: usize = 256;

/// Returns the lowest address with memory. `start` and `end` come from
/// [`usable_around`](super::usable_around). `None` if there is no memory, or if the system does not
/// report it. Any thread may call this: stacks are never unmapped (rule 1), so the result describes
/// that memory, regardless of its current owner.
#[cfg(target_os = "linux")]
pub(crate) fn lowest_touched(start: usize, end: usize) -> Option<usize> {
    let page = page_size();
    let mut from = start;
    while from < end {
        let mut pages = [0_u8; BATCH];
        let count = (end - from).div_ceil(page).min(BATCH);
        let address = std::ptr::without_provenance_mut(from);
        // SAFETY: rule 6. The address is in a mapping of this folder, and `pages` has space for one
        // byte per page.
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
