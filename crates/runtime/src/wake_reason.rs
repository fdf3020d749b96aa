//! Why a wait returned.

/// Why [`wait::park`](crate::wait::park) returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeReason {
    /// The waker was woken. This may have happened before the call, and may be spurious.
    Woken,
    /// The deadline passed.
    TimedOut,
    /// A signal was handled on this thread. Never in an actor.
    Interrupted,
    /// The actor's runtime stops, the actor got an exit signal, its scope is cancelled, or it is
    /// being unwound and cannot wait, as a thread in a [`NoWait`](crate::preempt::NoWait) section.
    /// Give up and return.
    Stopping,
}
