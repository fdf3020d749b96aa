//! The memory of actors' stacks. Address space is reserved in slabs, and each stack has a guard.
//! Each worker keeps recently used stacks. Memory is returned to the system when a worker sleeps
//! and when a runtime ends.
//!
//! ```text
//!   worker      Magazine    up to 64 slots, no atomics
//!                  |  halves
//!   process     Depot       one for each stack size: slots that came back, and a slab to carve new ones from
//!                  |  slabs
//!   kernel      Reservation one mmap of many slots, never unmapped
//!
//!   a slot      |  guard, 16 KiB  |  touched as it is used                        | colour |
//!               start = limit                                                   base      top
//! ```
//!
//! The rules for the `unsafe` code in this folder:
//!
//! 1. A reservation is mapped readable and writable once and never unmapped. Its addresses belong
//!    to this folder until the process ends, and contain no other object.
//! 2. A slot is carved from a reservation once. From then on it is in exactly one place: a depot, a
//!    magazine or a [`Stack`]. The owner of the slot owns its memory. No code runs on a slot that
//!    is in a depot or a magazine.
//! 3. A slot's guard is installed before the slot is first handed out, and is never removed.
//! 4. The data that a signal handler reads (reservations and previous signal actions) is never
//!    freed, and never changes once the handler can find it. The exception is the name of the
//!    running actor, which the same thread sets and clears around the actor's run.
//! 5. A thread's alternate stack stays mapped until the thread has stopped using it.
//! 6. The system calls here get addresses of mappings that were created here (rules 1 and 5), or
//!    valid memory of the caller for results. Their results are checked.

mod depot;
mod error;
mod guard;
mod list;
mod magazine;
pub(crate) mod overflow;
mod reservation;
#[cfg(test)]
mod tests;
mod touched;
mod trim;

use std::num::NonZeroUsize;

pub(crate) use depot::Depot;
pub use error::StackError;
pub(crate) use magazine::Magazine;
pub(crate) use touched::lowest_touched;

/// The memory that one actor runs on. When dropped, it returns to its depot; [`Magazine::give`] is
/// faster.
#[derive(Debug)]
pub(crate) struct Stack {
    slot: StackSlot,
    depot: &'static Depot,
}

/// The memory of a stack without its owner: the address where its first frame begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StackSlot {
    base: NonZeroUsize,
}

/// The layout of a depot's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SlotLayout {
    /// The bytes from a slot's start to its top, including the guard; a multiple of the page size.
    size: usize,
    /// The bytes at the start that fault; a multiple of the page size.
    guard: usize,
    /// The bytes from one slot's start to the next one's: an odd number of pages.
    ///
    /// Sizes are usually powers of two, so without the additional page all tops would share a few
    /// sets of the TLB. At a distance of 1 MiB, a thousand stacks miss the TLB at each switch; one
    /// more page between them halves the cost of a switch.
    stride: usize,
}

/// Four pages: C code that was compiled without `-fstack-clash-protection` may skip one page
/// without touching it. With both mechanisms, four pages cost the same as one.
const GUARD: usize = 16 << 10;
/// The minimum number of bytes above a slot's guard.
const MIN_USABLE: usize = 16 << 10;
/// The distance between the bases of successive slots, relative to their tops. If all bases were
/// page-aligned, they would share a few sets of the cache.
const COLOUR_STEP: usize = 128;
/// The number of different bases. All of them are in a slot's top page.
const COLOURS: usize = 16;

impl SlotLayout {
    fn new(stack_size: usize) -> Self {
        let page = page_size();
        let guard = GUARD.next_multiple_of(page);
        let least = guard + MIN_USABLE;
        // A size that no mapping can have is left for the kernel to refuse.
        let size = stack_size
            .max(least)
            .checked_next_multiple_of(page)
            .unwrap_or(usize::MAX / page * page);
        let stride = if (size / page).is_multiple_of(2) {
            size + page
        } else {
            size
        };
        Self {
            size,
            guard,
            stride,
        }
    }

    /// Returns the slot that starts at `start`, the `nth` that was carved.
    fn slot(&self, start: NonZeroUsize, nth: usize) -> StackSlot {
        let below_top = self.size - nth % COLOURS * COLOUR_STEP;
        StackSlot {
            base: start
                .checked_add(below_top)
                .expect("a mapping ends below the end of the address space"),
        }
    }

    /// Returns the end of the slot: one past its last byte.
    fn top(&self, slot: StackSlot) -> usize {
        slot.base.get().next_multiple_of(page_size())
    }

    /// Returns the lowest address of the slot, where the guard begins.
    fn start(&self, slot: StackSlot) -> NonZeroUsize {
        NonZeroUsize::new(self.top(slot) - self.size).expect("no mapping begins at 0")
    }
}

#[cfg(test)]
impl Stack {
    /// Returns the bytes from the guard's start to the top: the requested size, in whole pages.
    pub(crate) fn size(&self) -> usize {
        self.depot.layout().size
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.depot.take_back(&[self.slot]);
    }
}

// SAFETY: rules 1 to 3. The memory from `limit` to `base` belongs to this stack alone; above its
// guard it has at least MIN_USABLE bytes less the colour (under a page); the guard faults; and
// `base` is the end of a page less a multiple of 128.
unsafe impl corosensei::stack::Stack for Stack {
    #[inline]
    fn base(&self) -> NonZeroUsize {
        self.slot.base
    }

    #[inline]
    fn limit(&self) -> NonZeroUsize {
        self.depot.layout().start(self.slot)
    }
}

/// Returns the number of stacks that the process may have because of its mappings. `None` if guards
/// need no mappings of their own.
pub(crate) fn max_guarded() -> Option<usize> {
    match guard::Guards::probed() {
        guard::Guards::Light => None,
        guard::Guards::Heavy => Some(guard::Budget::of_process().max()),
    }
}

/// Returns the usable range (without the guard) of the stack that contains `address`, as its lowest
/// address and one past its highest. Only performs loads, so a signal handler may call it.
pub(crate) fn usable_around(address: usize) -> Option<(usize, usize)> {
    let (start, layout) = reservation::slot_around(address)?;
    let usable = (start + layout.guard, start + layout.size);
    (usable.0..usable.1).contains(&address).then_some(usable)
}

fn page_size() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static PAGE: AtomicUsize = AtomicUsize::new(0);
    let known = PAGE.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: rule 6. The call takes no address.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let page = usize::try_from(page).expect("every system has a page size");
    PAGE.store(page, Ordering::Relaxed);
    page
}
