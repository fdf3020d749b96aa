//! The stack that a thread handles its signals on, since its own may be what is full.

use std::marker::PhantomData;
use std::num::NonZeroUsize;

use super::super::reservation::{map, unmap};
use super::super::{StackError, page_size};

/// This thread's alternate signal stack until it is dropped, on the same thread; then the one from before is back.
#[derive(Debug)]
pub(crate) struct AlternateStack {
    start: NonZeroUsize,
    len: usize,
    before: libc::stack_t,
    /// Of the thread that made it.
    not_send: PhantomData<*const ()>,
}

/// Ours needs 1 KiB beside the kernel's frame; a crash reporter that is forwarded to may want much more.
const SIZE: usize = 64 << 10;
/// What our handler takes, generously.
const OURS: usize = 4 << 10;

impl AlternateStack {
    /// One for a thread that has none of any use. The standard library gives its own threads one.
    pub(crate) fn where_missing() -> Option<Self> {
        super::name::touch();
        // SAFETY: rule 6: a valid place for the result, which is plain numbers and a pointer.
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
        // The lowest page faults: a handler that needs more must not write over what lies below.
        let len = page + (SIZE + least()).next_multiple_of(page);
        let start = map(len)?;
        // SAFETY: rule 6: the lowest page of the mapping just made.
        let guarded = unsafe { libc::mprotect(start.get() as *mut _, page, libc::PROT_NONE) };
        let new = libc::stack_t {
            ss_sp: (start.get() + page) as *mut _,
            ss_flags: 0,
            ss_size: len - page,
        };
        let mut before = new;
        // SAFETY: rules 5 and 6: `drop` takes it out of use before it unmaps it.
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
        // SAFETY: rule 6. It is the thread's own from before, whose owner comes to its end after us.
        let result = unsafe { libc::sigaltstack(&self.before, std::ptr::null_mut()) };
        // Refused while a handler runs on it.
        if result == 0 {
            unmap(self.start, self.len);
        }
    }
}

/// What the processor's registers take in the frame of a signal: with AVX-512 and AMX more than the constant of old.
fn least() -> usize {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: rule 6: it takes no address.
        let least = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
        least.max(libc::MINSIGSTKSZ)
    }
    #[cfg(not(target_os = "linux"))]
    {
        libc::MINSIGSTKSZ
    }
}
