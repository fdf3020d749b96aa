//! Processor affinity: workers that are pinned to one processor, and threads that start on another
//! processor than their creator.

/// Pins the thread to one processor until it is dropped.
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
        // SAFETY: an all-zero `cpu_set_t` is a valid, empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the size is that of the set behind the pointer; 0 is the calling thread.
        let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
        (failed == 0).then_some(set)
    }

    fn set_mask(set: &libc::cpu_set_t) -> bool {
        // SAFETY: as above.
        unsafe { libc::sched_setaffinity(0, size_of_val(set), set) == 0 }
    }

    /// Returns the numbers of the processors that the calling thread may use.
    pub(crate) fn allowed() -> Vec<usize> {
        let Some(set) = mask() else {
            // The machine has more processors than a set has bits.
            return Vec::new();
        };
        (0..libc::CPU_SETSIZE as usize)
            // SAFETY: the number is below the size of the set.
            .filter(|&number| unsafe { libc::CPU_ISSET(number, &set) })
            .collect()
    }

    impl Pinned {
        /// Pins the calling thread to the processor `processors[index % len]`. Returns `None` if
        /// the list is empty or the system refuses, for example because the processor was taken
        /// offline. Such a worker runs on any processor.
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

    /// Moves a new thread to another processor than the caller's. The thread may use the same
    /// processors as the caller.
    ///
    /// The kernel queues a new thread on its creator's processor, behind its creator. If processors
    /// share no cache, as in many virtual machines, the kernel leaves it there for 1 to 3 ms.
    pub(crate) fn move_away(thread: &JoinHandle<()>) {
        let Some(all) = mask() else { return };
        let mut others = all;
        // SAFETY: the call takes no address.
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
            // SAFETY: the thread is neither joined nor detached, because its handle exists; the
            // size is that of the set. If the system refuses, the thread starts where it is.
            unsafe { libc::pthread_setaffinity_np(thread, size_of_val(set), set) };
        }
    }

    impl Drop for Pinned {
        fn drop(&mut self) {
            // If the system refuses, the thread stays where it is.
            set_mask(&self.before);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::Pinned;

    /// This system has no affinity masks.
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
    fn pinned_thread_has_one_processor_until_the_pin_is_dropped() {
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
    fn moved_thread_keeps_its_affinity_mask() {
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
