//! The word that one thread sleeps on.

#[cfg(not(loom))]
mod linux;
#[cfg(loom)]
mod loom;

#[cfg(not(loom))]
pub(crate) use self::linux::Futex;
#[cfg(loom)]
pub(crate) use self::loom::Futex;

/// Why [`Parker::park`](crate::Parker::park) returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParkResult {
    /// The thread was unparked, perhaps before it parked.
    Woken,
    /// The deadline passed.
    TimedOut,
    /// A signal handler ran on this thread. Run the pending signal work, then park again.
    Interrupted,
}
