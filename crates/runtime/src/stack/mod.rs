//! Memory for actors' stacks: reserved in slabs, guarded, kept warm by each worker, given back when a worker sleeps and when a runtime ends.
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
//! The rules that the `unsafe` in this folder rests on:
//!
//! 1. A reservation is mapped readable and writable once and never unmapped: its addresses stay this folder's until the
//!    process ends, and no other object lies there.
//! 2. A slot is carved from a reservation once. From then on it is in exactly one place: a depot, a magazine or a [`Stack`].
//!    Who has it has its memory, and nobody runs on one in a depot or a magazine.
//! 3. A slot's guard is there before the slot is first handed out, and is never taken away.
//! 4. What a signal handler reads is never freed and never changes once it can be found: reservations and the actions of
//!    before. The exception is the name of the running actor, which the same thread sets and removes around its life.
//! 5. A thread's alternate stack is mapped until the thread has stopped using it.
//! 6. The system calls here get addresses of mappings made here (rules 1 and 5), or valid memory of the caller for results, and
//!    their result is looked at.

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

/// Memory that one actor runs on. Dropped, it goes back to its depot; [`Magazine::give`] is the quick way.
#[derive(Debug)]
pub(crate) struct Stack {
    slot: Slot,
    depot: &'static Depot,
}

/// A stack's memory without its owner: where its first frame begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    base: NonZeroUsize,
}

/// How a depot's slots are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// Bytes from a slot's start to its top, guard and all; pages.
    size: usize,
    /// Bytes at the start that fault; pages.
    guard: usize,
    /// Bytes from one slot's start to the next one's: an odd number of pages.
    ///
    /// Sizes are powers of two, mostly, and then all tops would share a few sets of the processor's table of pages (TLB): at 1 MiB
    /// apart a thousand stacks miss it at each switch. One page more between them, and a switch costs half.
    stride: usize,
}

/// C that was built without `-fstack-clash-protection` may step over one page without touching it. A guard of four costs the
/// same with either mechanism.
const GUARD: usize = 16 << 10;
/// What a slot has at least above its guard.
const LEAST_USABLE: usize = 16 << 10;
/// Tops that are all page-aligned share their cache sets. Successive slots' bases are this far apart ..
const COLOUR_STEP: usize = 128;
/// .. and repeat after so many, so that all lie in a slot's top page.
const COLOURS: usize = 16;

impl Shape {
    fn new(stack_size: usize) -> Self {
        let page = page_size();
        let guard = GUARD.next_multiple_of(page);
        let least = guard + LEAST_USABLE;
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

    /// The slot that starts at `start`, the `nth` carved.
    fn slot(&self, start: NonZeroUsize, nth: usize) -> Slot {
        let below_top = self.size - nth % COLOURS * COLOUR_STEP;
        Slot {
            base: start
                .checked_add(below_top)
                .expect("a mapping ends below the address space's end"),
        }
    }

    /// The end of the slot: one past its last byte.
    fn top(&self, slot: Slot) -> usize {
        slot.base.get().next_multiple_of(page_size())
    }

    /// The lowest address, where the guard begins.
    fn start(&self, slot: Slot) -> NonZeroUsize {
        NonZeroUsize::new(self.top(slot) - self.size).expect("no mapping begins at 0")
    }
}

#[cfg(test)]
impl Stack {
    /// Bytes from the guard's start to the top: the size that was asked for, in whole pages.
    pub(crate) fn size(&self) -> usize {
        self.depot.shape().size
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.depot.take_back(&[self.slot]);
    }
}

// SAFETY: rules 1 to 3: the memory from `limit` to `base` is this stack's alone, it has at least LEAST_USABLE bytes less the
// colour (under a page) above its guard, the guard faults, and `base` is a page's end less a multiple of 128.
unsafe impl corosensei::stack::Stack for Stack {
    #[inline]
    fn base(&self) -> NonZeroUsize {
        self.slot.base
    }

    #[inline]
    fn limit(&self) -> NonZeroUsize {
        self.depot.shape().start(self.slot)
    }
}

/// Stacks that the process may have by the number of its mappings; `None`: guards need none of their own.
pub(crate) fn most_guarded() -> Option<usize> {
    match guard::Guards::probed() {
        guard::Guards::Light => None,
        guard::Guards::Heavy => Some(guard::Budget::of_process().most()),
    }
}

/// The stack of ours that `address` lies on, above its guard: its lowest address that can be read, and the one behind its highest. Nothing but loads,
/// for a signal handler.
pub(crate) fn usable_around(address: usize) -> Option<(usize, usize)> {
    let (start, shape) = reservation::slot_around(address)?;
    let usable = (start + shape.guard, start + shape.size);
    (usable.0..usable.1).contains(&address).then_some(usable)
}

fn page_size() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static PAGE: AtomicUsize = AtomicUsize::new(0);
    let known = PAGE.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: rule 6: it takes no address.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let page = usize::try_from(page).expect("every system has a page size");
    PAGE.store(page, Ordering::Relaxed);
    page
}
