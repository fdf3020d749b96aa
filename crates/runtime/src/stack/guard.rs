//! What makes the bottom of a stack fault.
//!
//! Linux 6.13 has guards that live in the page tables: any number of guarded stacks is one mapping. Before that a guard is a
//! page without rights, which splits the mapping around it in two, and a process has 65,530 mappings unless its
//! administrator allows more (`vm.max_map_count`). Measured on 6.18: 32,753 such stacks, and then not even a thread can start.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::page_size;
use super::reservation::{map, unmap};
use super::{Shape, StackError};

/// How guards are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guards {
    /// `MADV_GUARD_INSTALL`: no mapping of its own.
    Light,
    /// `mprotect`: two mappings a stack.
    Heavy,
}

/// How many heavy guards may still be made. They are never taken away, so a budget only shrinks.
#[derive(Debug)]
pub(super) struct Budget {
    most: usize,
    left: AtomicUsize,
}

/// From `include/uapi/asm-generic/mman-common.h`, the same on x86-64 and aarch64.
#[cfg(target_os = "linux")]
const MADV_GUARD_INSTALL: libc::c_int = 102;
/// An advice that no kernel knows.
#[cfg(target_os = "linux")]
const MADV_NONSENSE: libc::c_int = 0x7fff;

impl Guards {
    /// The lighter one that works here. Tried once.
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
        // User-mode emulation (qemu) says yes to every advice and does nothing.
        let works = advise(start.get(), page, MADV_NONSENSE).is_err()
            && advise(start.get(), page, MADV_GUARD_INSTALL).is_ok();
        unmap(start, page);
        if works { Self::Light } else { Self::Heavy }
    }

    #[cfg(not(target_os = "linux"))]
    fn probe() -> Self {
        Self::Heavy
    }

    /// Makes the lowest bytes of a fresh slot, which starts at `start`, fault.
    pub(super) fn install(
        self,
        start: usize,
        shape: Shape,
        budget: &Budget,
    ) -> Result<(), StackError> {
        match self {
            // A process that locks its memory is refused light guards before 6.15.
            Self::Light => light(start, shape.guard).or_else(|_| heavy(start, shape.guard, budget)),
            Self::Heavy => heavy(start, shape.guard, budget),
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
        return Err(StackError::Mappings { most: budget.most });
    }
    // SAFETY: rule 6; rule 2: the slot is being carved, so nothing lies in it yet.
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

/// `start` and `len` are pages of a mapping made here. What it held may be lost.
#[cfg(target_os = "linux")]
pub(super) fn advise(start: usize, len: usize, advice: libc::c_int) -> io::Result<()> {
    // SAFETY: rule 6: the addresses are a mapping's made here, and its callers have what lies there (rule 2).
    let result = unsafe { libc::madvise(start as *mut libc::c_void, len, advice) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

impl Budget {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            most,
            left: AtomicUsize::new(most),
        }
    }

    /// How many may be made in all.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// The one that all depots of the process share: half of the mappings that it may have, two a stack.
    pub(super) fn of_process() -> &'static Self {
        static BUDGET: OnceLock<Budget> = OnceLock::new();
        BUDGET.get_or_init(|| Self::new(most_mappings() / 4))
    }
}

#[cfg(target_os = "linux")]
fn most_mappings() -> usize {
    /// What a kernel has where nobody changed it.
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
