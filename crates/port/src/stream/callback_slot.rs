//! The states of a stream's callback. All transitions are made under one lock, that of the stream's
//! queue. None of them calls or drops a callback.

use crate::stream::lease::{Lease, Runner};

/// The callback, and the thread or actor that runs it.
pub(crate) struct CallbackSlot<C> {
    location: Location<C>,
    /// Replaces the running callback.
    replacement: Option<C>,
    /// The thread or actor that runs the callback.
    runner: Option<Runner>,
}

enum Location<C> {
    /// There is no callback, or no longer one.
    Unset,
    Idle(C),
    /// The runner has taken it.
    Running,
    /// The only writer holds the lease.
    Lent,
    /// The lease was revoked during a call, whose runner will take the callback back.
    Returning,
}

/// What the runner must do after it has dropped the callback.
pub(crate) enum AfterCallback<C> {
    /// Nothing: there is no other callback.
    Dropped,
    /// Another callback was set in the meantime, and has no runner.
    Replaced,
    /// This callback was set too late and must be dropped as well.
    Discard(C),
}

impl<C> Default for CallbackSlot<C> {
    fn default() -> Self {
        Self {
            location: Location::Unset,
            replacement: None,
            runner: None,
        }
    }
}

impl<C> CallbackSlot<C> {
    /// Whether there is a callback, idle or running.
    pub(crate) fn is_set(&self) -> bool {
        !matches!(self.location, Location::Unset)
    }

    /// Whether the lease was revoked during a call that is still running.
    pub(crate) fn is_returning(&self) -> bool {
        matches!(self.location, Location::Returning)
    }

    /// Whether `runner` is running the callback.
    pub(crate) fn is_running_on(&self, runner: Runner) -> bool {
        self.runner == Some(runner)
    }

    /// Takes the callback if it is idle.
    // An event to a callback runs this and another function that is inlined in the same way. As calls
    // they cost 37 instructions together.
    #[inline(always)]
    pub(crate) fn take(&mut self, runner: impl FnOnce() -> Runner) -> Option<C> {
        match std::mem::replace(&mut self.location, Location::Running) {
            Location::Idle(callback) => {
                self.runner = Some(runner());
                Some(callback)
            }
            other => {
                self.location = other;
                None
            }
        }
    }

    /// Puts the callback back. It has no runner afterwards.
    pub(crate) fn put_back(&mut self, callback: C) {
        self.location = Location::Idle(callback);
        self.runner = None;
    }

    /// Lends the callback if it is idle and nothing replaces it. The lease is not held. `sequence` is
    /// the number of its first record.
    pub(crate) fn lend(&mut self, lease: &Lease<C>, sequence: u64) -> bool {
        if self.replacement.is_some() || !matches!(self.location, Location::Idle(_)) {
            return false;
        }
        if let Location::Idle(callback) = std::mem::replace(&mut self.location, Location::Lent) {
            // SAFETY: every state but `Lent` and `Returning` excludes a holder.
            unsafe { lease.grant(callback, sequence) };
        }
        true
    }

    /// Revokes the lease, if there is one. The callback is then idle, or its runner will take it
    /// back.
    pub(crate) fn revoke(&mut self, lease: &Lease<C>) -> bool {
        if !matches!(self.location, Location::Lent) {
            return false;
        }
        match lease.revoke() {
            Ok(callback) => self.location = callback.map_or(Location::Unset, Location::Idle),
            Err(runner) => {
                (self.location, self.runner) = (Location::Returning, Some(runner));
            }
        }
        true
    }

    /// For the writer that held the lease and is in no call: the callback is idle after this, unless
    /// another thread has it.
    pub(crate) fn take_back(&mut self, lease: &Lease<C>) {
        self.revoke(lease);
        if matches!(self.location, Location::Returning) {
            // SAFETY: the caller is the former holder.
            let callback = unsafe { lease.take() };
            self.location = callback.map_or(Location::Unset, Location::Idle);
            self.runner = None;
        }
    }

    /// Sets another callback, unless the current one is lent. Returns the previous one, for the
    /// caller to drop, unless it is running.
    pub(crate) fn replace(&mut self, callback: C) -> Option<C> {
        match &mut self.location {
            Location::Running | Location::Returning | Location::Lent => {
                self.replacement.replace(callback)
            }
            location => match std::mem::replace(location, Location::Idle(callback)) {
                Location::Idle(former) => Some(former),
                _ => None,
            },
        }
    }

    /// For the runner: the callback that replaces the one it has taken.
    pub(crate) fn take_replacement(&mut self) -> Option<C> {
        self.replacement.take()
    }

    /// Whether there is a replacement.
    pub(crate) fn has_replacement(&self) -> bool {
        self.replacement.is_some()
    }

    /// Called by the runner after it has dropped the callback.
    pub(crate) fn finish(&mut self, closed: bool) -> AfterCallback<C> {
        match self.replacement.take() {
            Some(discard) if closed => AfterCallback::Discard(discard),
            Some(replacement) => {
                self.put_back(replacement);
                AfterCallback::Replaced
            }
            None => {
                self.location = Location::Unset;
                self.runner = None;
                AfterCallback::Dropped
            }
        }
    }
}
