//! Stack guards, which make the bottom of a stack fault.
//!
//! Linux 6.13 supports guards in the page tables, so any number of guarded stacks is one mapping.
//! On earlier kernels a guard is a page without access rights, which splits the mapping around it
//! in two, and a process may have 65,530 mappings unless the administrator raises the limit
//! (`vm.max_map_count`). Measured on 6.18: with 32,753 such stacks, not even a thread can be
//! started.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::page_size;
use super::reservation::{map, unmap};
use super::{SlotLayout, StackError};

/// How guards are installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guards {
    /// `MADV_GUARD_INSTALL`: no mapping of its own.
    Light,
    /// `mprotect`: two mappings per stack.
    Heavy,
}

/// The number of heavy guards that may still be installed. Guards are never removed, so a budget
/// only shrinks.
#[derive(Debug)]
pub(super) struct Budget {
    max: usize,
    left: AtomicUsize,
}

/// From `include/uapi/asm-generic/mman-common.h`; the same on x86-64 and aarch64.
#[cfg(target_os = "linux")]
const MADV_GUARD_INSTALL: libc::c_int = 102;
/// An advice that no kernel supports.
#[cfg(target_os = "linux")]
const MADV_NONSENSE: libc::c_int = 0x7fff;

impl Guards {
    /// Returns the lighter kind that works here. Probed once.
    pub(super) fn probed() -> Self {
        static PROBED: OnceLock<Guards> = OnceLock::new();
        *PROBED.get_or_init(Self::probe)
    }

    #[cfg(target_os = "linux")]
    fn probe() -> Self {
        let page = page_size();
        let Ok(start) = map(page) else {
            return Self::Heavy;
        };
        // User-mode emulation (qemu) accepts every advice and does nothing.
        let works = advise(start.get(), page, MADV_NONSENSE).is_err()
            && advise(start.get(), page, MADV_GUARD_INSTALL).is_ok();
        unmap(start, page);
        if works { Self::Light } else { Self::Heavy }
    }

    #[cfg(not(target_os = "linux"))]
    fn probe() -> Self {
        Self::Heavy
    }

    /// Makes the lowest bytes of a new slot fault. The slot starts at `start`.
    pub(super) fn install(
        self,
        start: usize,
        layout: SlotLayout,
        budget: &Budget,
    ) -> Result<(), StackError> {
        match self {
            // Before Linux 6.15, light guards are refused in memory that the process has locked.
            Self::Light => {
                light(start, layout.guard).or_else(|_| heavy(start, layout.guard, budget))
            }
            Self::Heavy => heavy(start, layout.guard, budget),
        }
    }
}

#[cfg(target_os = "linux")]
fn light(start: usize, len: usize) -> io::Result<()> {
    advise(start, len, MADV_GUARD_INSTALL)
}

#[cfg(not(target_os = "linux"))]
fn light(_: usize, _: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn heavy(start: usize, len: usize, budget: &Budget) -> Result<(), StackError> {
    let one_less = |left: usize| left.checked_sub(1);
    let taken = budget
        .left
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
    if taken.is_err() {
        return Err(StackError::Mappings { max: budget.max });
    }
    // SAFETY: rule 6. By rule 2 the slot is being carved, so nothing is in it yet.
    let result = unsafe { libc::mprotect(start as *mut libc::c_void, len, libc::PROT_NONE) };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    budget.left.fetch_add(1, Ordering::Relaxed);
    Err(if error.raw_os_error() == Some(libc::ENOMEM) {
        // The rest of the process has used up the mappings.
        StackError::Memory { bytes: len, error }
    } else {
        StackError::Guard { error }
    })
}

/// Calls `madvise`. `start` and `len` are pages of a mapping that was created here. Its contents
/// may be lost.
#[cfg(target_os = "linux")]
pub(super) fn advise(start: usize, len: usize, advice: libc::c_int) -> io::Result<()> {
    // SAFETY: rule 6. The addresses belong to a mapping that was created here, and the callers own
    // its contents (rule 2).
    let result = unsafe { libc::madvise(start as *mut libc::c_void, len, advice) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

impl Budget {
    pub(super) const fn new(max: usize) -> Self {
        Self {
            max,
            left: AtomicUsize::new(max),
        }
    }

    /// Returns the total number of heavy guards that may be installed.
    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// Returns the budget that all depots of the process share: half of the mappings that the
    /// process may have, at two per stack.
    pub(super) fn of_process() -> &'static Self {
        static BUDGET: OnceLock<Budget> = OnceLock::new();
        BUDGET.get_or_init(|| Self::new(most_mappings() / 4))
    }
}

#[cfg(target_os = "linux")]
fn most_mappings() -> usize {
    /// The value of an unmodified kernel.
    const DEFAULT: usize = 65_530;
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count");
    text.ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(DEFAULT)
}

#[cfg(not(target_os = "linux"))]
fn most_mappings() -> usize {
    usize::MAX
}
