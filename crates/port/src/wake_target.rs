//! The descriptor that an armed port wakes: its eventfd, or the caller's descriptor instead.
//!
//! 1. The target is chosen when the port is woken, not when it is armed, under the lock under which
//!    the caller sets another descriptor. After a descriptor was removed it is not written again.
//! 2. A completion is in the ring before its thread wakes the target. The thread that sets a
//!    descriptor checks the ring afterwards. If a completion woke the earlier target, the check
//!    finds it, so a caller that watches only the new descriptor misses nothing.
//! 3. An armed port wakes its target once. A descriptor therefore receives one write per arming,
//!    and one if it was set while there were completions.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::task::Wake;

use thalweg_queue::EventFd;

use crate::sync::{Mutex, lock};
use crate::wake_fd::WakeFd;

/// The target of a port's wake-ups.
#[derive(Debug)]
pub(crate) struct WakeTarget {
    event: EventFd,
    descriptor: Mutex<Option<WakeFd>>,
}

impl WakeTarget {
    pub(crate) fn new(event: EventFd) -> Self {
        Self {
            event,
            descriptor: Mutex::new(None),
        }
    }

    /// Rule 1: wakes `descriptor` from now on, or the eventfd if it is `None`.
    pub(crate) fn set(&self, descriptor: Option<WakeFd>) {
        let before = std::mem::replace(&mut *lock(&self.descriptor), descriptor);
        drop(before);
    }

    /// Makes the eventfd unreadable.
    pub(crate) fn reset(&self) {
        self.event.reset();
    }
}

impl AsFd for WakeTarget {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Wake for WakeTarget {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        match &*lock(&self.descriptor) {
            Some(descriptor) => descriptor.wake(),
            None => self.event.signal(),
        }
    }
}
