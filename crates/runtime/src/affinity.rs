//! Workers that stay on one processor each, or at least begin on another than who starts them.

/// A thread that stays on one processor as long as this is there.
#[derive(Debug)]
pub(crate) struct Pinned {
    #[cfg(target_os = "linux")]
    before: libc::cpu_set_t,
}

#[cfg(target_os = "linux")]
mod system {
    use std::os::unix::thread::JoinHandleExt;
    use std::thread::JoinHandle;

    use super::Pinned;

    fn mask() -> Option<libc::cpu_set_t> {
        // SAFETY: an all-zero cpu_set_t is a valid, empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the size is that of the set behind the pointer; 0 is the calling thread.
        let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
        (failed == 0).then_some(set)
    }

    fn set_mask(set: &libc::cpu_set_t) -> bool {
        // SAFETY: as above.
        unsafe { libc::sched_setaffinity(0, size_of_val(set), set) == 0 }
    }

    /// The processors that the calling thread may use, by number.
    pub(crate) fn allowed() -> Vec<usize> {
        let Some(set) = mask() else {
            // More processors than a set has bits.
            return Vec::new();
        };
        (0..libc::CPU_SETSIZE as usize)
            // SAFETY: the number is below the size of the set.
            .filter(|&number| unsafe { libc::CPU_ISSET(number, &set) })
            .collect()
    }

    impl Pinned {
        /// Pins the calling thread to the processor of the `index`-th of them, in turn; `None` if there are none, or the system refuses,
        /// where a processor has gone since: such a worker runs anywhere.
        pub(crate) fn to(processors: &[usize], index: usize) -> Option<Self> {
            let processor = *processors.get(index.checked_rem(processors.len())?)?;
            let before = mask()?;
            // SAFETY: as above.
            let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
            // SAFETY: the number came from a set of this size.
            unsafe { libc::CPU_SET(processor, &mut set) };
            set_mask(&set).then_some(Self { before })
        }
    }

    /// Puts a thread that was just started, and may use the processors that the caller may, on another than the caller's.
    ///
    /// It is born in the queue of that one, behind who starts it. Where processors share no cache, as in many virtual machines, the kernel leaves
    /// it there for 1 to 3 ms.
    pub(crate) fn move_away(thread: &JoinHandle<()>) {
        let Some(all) = mask() else { return };
        let mut others = all;
        // SAFETY: it takes no address.
        let Ok(here) = usize::try_from(unsafe { libc::sched_getcpu() }) else {
            return;
        };
        if here >= libc::CPU_SETSIZE as usize {
            return;
        }
        // SAFETY: the number is below the size of the set.
        unsafe { libc::CPU_CLR(here, &mut others) };
        // SAFETY: a set is plain data.
        if unsafe { libc::CPU_COUNT(&others) } == 0 {
            return;
        }
        let thread = thread.as_pthread_t();
        for set in [&others, &all] {
            // SAFETY: neither joined nor detached, as the handle is there; the size is that of the set. Refused, the thread begins where it is.
            unsafe { libc::pthread_setaffinity_np(thread, size_of_val(set), set) };
        }
    }

    impl Drop for Pinned {
        fn drop(&mut self) {
            // Refused, the thread stays where it is.
            set_mask(&self.before);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::Pinned;

    /// Not known here.
    pub(crate) fn allowed() -> Vec<usize> {
        Vec::new()
    }

    pub(crate) fn move_away(_: &std::thread::JoinHandle<()>) {}

    impl Pinned {
        pub(crate) fn to(_: &[usize], _: usize) -> Option<Self> {
            None
        }
    }
}

pub(crate) use system::{allowed, move_away};

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{Pinned, allowed, move_away};

    #[test]
    fn a_pinned_thread_has_one_processor_and_then_its_own_again() {
        let before = allowed();
        for index in 0..3 {
            let pinned = Pinned::to(&before, index);
            assert!(pinned.is_some());
            assert_eq!(allowed(), [before[index % before.len()]]);
        }
        assert_eq!(allowed(), before);
        assert!(Pinned::to(&[], 0).is_none());
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the system on which processor it runs")]
    fn a_thread_that_was_moved_away_may_use_the_same_processors_as_before() {
        let (go, goes) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            goes.recv().unwrap();
            assert_eq!(goes.recv(), Ok(allowed()));
        });
        move_away(&thread);
        go.send(Vec::new()).unwrap();
        go.send(allowed()).unwrap();
        thread.join().unwrap();
    }
}
