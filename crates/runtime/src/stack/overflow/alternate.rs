//! The alternate stack on which a thread handles its signals, because its own stack may be full.

use std::marker::PhantomData;
use std::num::NonZeroUsize;

use super::super::reservation::{map, unmap};
use super::super::{StackError, page_size};

/// This thread's alternate signal stack. When it is dropped, on the same thread, the previous
/// alternate stack is restored.
#[derive(Debug)]
pub(crate) struct AlternateStack {
    start: NonZeroUsize,
    len: usize,
    before: libc::stack_t,
    /// Belongs to the thread that created it.
    not_send: PhantomData<*const ()>,
}

/// The handler of this crate needs 1 KiB in addition to the kernel's frame. A crash reporter to
/// which a signal is forwarded may need much more.
const SIZE: usize = 64 << 10;
/// An upper bound for the needs of this crate's handler.
const OURS: usize = 4 << 10;

impl AlternateStack {
    /// Creates an alternate stack if the thread has none of sufficient size. The standard library
    /// creates one for each of its own threads.
    pub(crate) fn where_missing() -> Option<Self> {
        super::name::touch();
        // SAFETY: rule 6. The result is written to a valid place; it consists of plain numbers and
        // a pointer.
        let known = unsafe {
            let mut known: libc::stack_t = std::mem::zeroed();
            (libc::sigaltstack(std::ptr::null(), &mut known) == 0).then_some(known)
        };
        let is_there = known.is_some_and(|known| {
            known.ss_flags & libc::SS_DISABLE == 0 && known.ss_size >= least() + OURS
        });
        if is_there { None } else { Self::new().ok() }
    }

    pub(crate) fn new() -> Result<Self, StackError> {
        super::name::touch();
        let page = page_size();
        // The lowest page faults: a handler that needs more must not overwrite the memory below.
        let len = page + (SIZE + least()).next_multiple_of(page);
        let start = map(len)?;
        // SAFETY: rule 6. It is the lowest page of the mapping that was just created.
        let guarded = unsafe { libc::mprotect(start.get() as *mut _, page, libc::PROT_NONE) };
        let new = libc::stack_t {
            ss_sp: (start.get() + page) as *mut _,
            ss_flags: 0,
            ss_size: len - page,
        };
        let mut before = new;
        // SAFETY: rules 5 and 6. `drop` takes it out of use before it unmaps it.
        if guarded != 0 || unsafe { libc::sigaltstack(&new, &mut before) } != 0 {
            let error = StackError::memory(len);
            unmap(start, len);
            return Err(error);
        }
        Ok(Self {
            start,
            len,
            before,
            not_send: PhantomData,
        })
    }
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        // SAFETY: rule 6. It is the thread's previous stack, whose owner outlives this object.
        let result = unsafe { libc::sigaltstack(&self.before, std::ptr::null_mut()) };
        // The system refuses this while a handler runs on it.
        if result == 0 {
            unmap(self.start, self.len);
        }
    }
}

/// Returns the minimum size of a signal frame, which contains the processor's registers. With
/// AVX-512 and AMX it exceeds the traditional constant.
fn least() -> usize {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: rule 6. The call takes no address.
        let least = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
        least.max(libc::MINSIGSTKSZ)
    }
    #[cfg(not(target_os = "linux"))]
    {
        libc::MINSIGSTKSZ
    }
}
