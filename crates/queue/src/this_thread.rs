//! The identity of the calling thread.

/// A number that identifies this thread among the live threads. It is not 0.
///
/// It is the thread pointer: the address of the thread's control block. The address of a
/// thread-local variable would do as well, but in a shared library it takes a call.
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(any(loom, miri))))]
#[inline(always)]
pub(crate) fn this_thread() -> usize {
    let pointer: usize;
    // SAFETY: in the x86-64 ABI, the word at `fs:0` has its own address.
    unsafe {
        std::arch::asm!(
            "mov {}, fs:[0]",
            out(reg) pointer,
            options(nostack, preserves_flags, readonly)
        );
    }
    pointer
}

/// The same on AArch64.
#[cfg(all(target_os = "linux", target_arch = "aarch64", not(any(loom, miri))))]
#[inline(always)]
pub(crate) fn this_thread() -> usize {
    let pointer: usize;
    // SAFETY: any program may read this register, in which the system keeps the thread pointer.
    unsafe {
        std::arch::asm!(
            "mrs {}, tpidr_el0",
            out(reg) pointer,
            options(nomem, nostack, preserves_flags)
        );
    }
    pointer
}

/// The same elsewhere: the address of a thread-local variable.
#[cfg(not(any(
    loom,
    all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(miri)
    )
)))]
pub(crate) fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

#[cfg(loom)]
pub(crate) use crate::barrier::model::this_thread;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::this_thread;

    #[test]
    fn live_threads_have_different_numbers() {
        let here = this_thread();
        assert_ne!(here, 0);
        assert_eq!(here, this_thread());
        let barrier = std::sync::Barrier::new(2);
        let number = || {
            let number = this_thread();
            barrier.wait();
            number
        };
        let (one, other) = std::thread::scope(|scope| {
            let (one, other) = (scope.spawn(number), scope.spawn(number));
            (one.join().unwrap(), other.join().unwrap())
        });
        assert!(here != one && here != other && one != other);
    }
}
