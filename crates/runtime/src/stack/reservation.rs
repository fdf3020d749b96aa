//! Address space for many stacks at once. Memory comes to it as it is touched.

use std::num::NonZeroUsize;

use super::guard::Guards;
use super::list::List;
use super::{Shape, StackError};

/// One mapping that slots are carved from, one after the other (rule 1).
#[derive(Debug)]
pub(super) struct Reservation {
    pub(super) start: NonZeroUsize,
    pub(super) slots: usize,
    shape: Shape,
}

/// All of them, for who asks whose an address is.
static RESERVATIONS: List<Reservation> = List::new();

impl Reservation {
    /// Room for `slots`, or for as many fewer as the system has room for.
    pub(super) fn new(
        shape: Shape,
        mut slots: usize,
        guards: Guards,
    ) -> Result<&'static Self, StackError> {
        loop {
            let len = shape.stride.saturating_mul(slots);
            match map(len) {
                Ok(start) => {
                    refuse_huge_pages(start, len, guards);
                    return Ok(RESERVATIONS.add(Self {
                        start,
                        slots,
                        shape,
                    }));
                }
                Err(error) if slots == 1 => return Err(error),
                Err(_) => slots /= 2,
            }
        }
    }

    /// Where the `nth` slot starts.
    pub(super) fn slot_start(&self, nth: usize) -> NonZeroUsize {
        self.start
            .checked_add(nth * self.shape.stride)
            .expect("the mapping ends below the address space's end")
    }
}

/// The slot that `address` lies in, or in the gap behind: its start, and its shape. Nothing but loads (rule 4), for a signal handler.
pub(super) fn slot_around(address: usize) -> Option<(usize, Shape)> {
    RESERVATIONS.iter().find_map(|reservation| {
        let shape = reservation.shape;
        let offset = address.checked_sub(reservation.start.get())?;
        (offset < reservation.slots * shape.stride)
            .then(|| (address - offset % shape.stride, shape))
    })
}

/// The same, if it lies in its guard.
pub(super) fn slot_guarded_at(address: usize) -> Option<(usize, Shape)> {
    slot_around(address).filter(|(start, shape)| address - start < shape.guard)
}

/// Anonymous memory, readable and writable, of which nothing is there until it is touched.
pub(super) fn map(len: usize) -> Result<NonZeroUsize, StackError> {
    #[cfg(target_os = "linux")]
    const FLAGS: libc::c_int = libc::MAP_NORESERVE | libc::MAP_STACK;
    #[cfg(not(target_os = "linux"))]
    const FLAGS: libc::c_int = 0;
    // SAFETY: rule 6: the kernel chooses an address where nothing lies.
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

/// Or the first touch of a stack may take 2 MiB.
#[cfg(target_os = "linux")]
fn refuse_huge_pages(start: NonZeroUsize, len: usize, guards: Guards) {
    // Since Linux 6.7 MAP_STACK says it already, and so it does wherever there are light guards.
    if guards == Guards::Heavy {
        // A kernel without huge pages refuses the advice, and needs none.
        let _ = super::guard::advise(start.get(), len, libc::MADV_NOHUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
fn refuse_huge_pages(_: NonZeroUsize, _: usize, _: Guards) {}

/// A whole mapping that [`map`] made and nobody uses.
pub(super) fn unmap(start: NonZeroUsize, len: usize) {
    // SAFETY: rule 6: its callers made the mapping, and end its use with this.
    unsafe { libc::munmap(start.get() as *mut libc::c_void, len) };
}
