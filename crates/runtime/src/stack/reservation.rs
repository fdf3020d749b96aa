//! Reservations: address space for many stacks at once. Pages get memory when they are touched.

use std::num::NonZeroUsize;

use super::guard::Guards;
use super::list::AppendOnlyList;
use super::{SlotLayout, StackError};

/// A mapping from which slots are carved one after another (rule 1).
#[derive(Debug)]
pub(super) struct Reservation {
    pub(super) start: NonZeroUsize,
    pub(super) slots: usize,
    layout: SlotLayout,
}

/// All reservations, to find the slot of an address.
static RESERVATIONS: AppendOnlyList<Reservation> = AppendOnlyList::new();

impl Reservation {
    /// Reserves space for `slots`, or for fewer if the system does not have that much space.
    pub(super) fn new(
        layout: SlotLayout,
        mut slots: usize,
        guards: Guards,
    ) -> Result<&'static Self, StackError> {
        loop {
            let len = layout.stride.saturating_mul(slots);
            match map(len) {
                Ok(start) => {
                    refuse_huge_pages(start, len, guards);
                    return Ok(RESERVATIONS.add(Self {
                        start,
                        slots,
                        layout,
                    }));
                }
                Err(error) if slots == 1 => return Err(error),
                Err(_) => slots /= 2,
            }
        }
    }

    /// Returns the start of the `nth` slot.
    pub(super) fn slot_start(&self, nth: usize) -> NonZeroUsize {
        self.start
            .checked_add(nth * self.layout.stride)
            .expect("a mapping ends below the end of the address space")
    }
}

/// Returns the start and the layout of the slot that contains `address`, or that precedes it if it
/// is in a gap. Only performs loads (rule 4), so a signal handler may call it.
pub(super) fn slot_around(address: usize) -> Option<(usize, SlotLayout)> {
    RESERVATIONS.iter().find_map(|reservation| {
        let layout = reservation.layout;
        let offset = address.checked_sub(reservation.start.get())?;
        (offset < reservation.slots * layout.stride)
            .then(|| (address - offset % layout.stride, layout))
    })
}

/// Like [`slot_around`], but only if `address` is in the slot's guard.
pub(super) fn slot_guarded_at(address: usize) -> Option<(usize, SlotLayout)> {
    slot_around(address).filter(|(start, layout)| address - start < layout.guard)
}

/// Maps anonymous memory, readable and writable. It uses no memory until it is touched.
pub(super) fn map(len: usize) -> Result<NonZeroUsize, StackError> {
    #[cfg(target_os = "linux")]
    const FLAGS: libc::c_int = libc::MAP_NORESERVE | libc::MAP_STACK;
    #[cfg(not(target_os = "linux"))]
    const FLAGS: libc::c_int = 0;
    // SAFETY: rule 6. The kernel chooses unused addresses.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            FLAGS | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    let start = match NonZeroUsize::new(start.addr()) {
        Some(start) if start.get() != libc::MAP_FAILED.addr() => start,
        _ => return Err(StackError::memory(len)),
    };
    Ok(start)
}

/// Disables huge pages. Otherwise the first touch of a stack could take 2 MiB.
#[cfg(target_os = "linux")]
fn refuse_huge_pages(start: NonZeroUsize, len: usize, guards: Guards) {
    // Since Linux 6.7, MAP_STACK implies this. All kernels with light guards are newer.
    if guards == Guards::Heavy {
        // A kernel without huge pages refuses the advice and does not need it.
        let _ = super::guard::advise(start.get(), len, libc::MADV_NOHUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
fn refuse_huge_pages(_: NonZeroUsize, _: usize, _: Guards) {}

/// Unmaps a whole mapping that [`map`] created and that is unused.
pub(super) fn unmap(start: NonZeroUsize, len: usize) {
    // SAFETY: rule 6. The callers created the mapping and do not use it any more.
    unsafe { libc::munmap(start.get() as *mut libc::c_void, len) };
}
