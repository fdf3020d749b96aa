//! The states of a stream's callback. All transitions are made under one lock, that of the stream's
//! queue. None of them calls or drops a callback.

/// The callback, and the thread or actor that runs it.
pub(crate) struct CallbackSlot<C, W> {
    location: Location<C>,
    /// Replaces the running callback.
    replacement: Option<C>,
    /// The thread or actor that runs the callback.
    runner: Option<W>,
}

enum Location<C> {
    /// There is no callback, or no longer one.
    Unset,
    Idle(C),
    /// The runner has taken it.
    Running,
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

impl<C, W> Default for CallbackSlot<C, W> {
    fn default() -> Self {
        Self {
            location: Location::Unset,
            replacement: None,
            runner: None,
        }
    }
}

impl<C, W: PartialEq> CallbackSlot<C, W> {
    /// Whether there is a callback, idle or running.
    pub(crate) fn is_set(&self) -> bool {
        !matches!(self.location, Location::Unset)
    }

    /// Whether `runner` is running the callback.
    pub(crate) fn is_running_on(&self, runner: W) -> bool {
        self.runner == Some(runner)
    }

    /// Takes the callback if it is idle.
    // An event to a callback runs this and another function that is inlined in the same way. As calls
    // they cost 37 instructions together.
    #[inline(always)]
    pub(crate) fn take(&mut self, runner: impl FnOnce() -> W) -> Option<C> {
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

    /// Sets another callback. Returns the previous one, for the caller to drop, unless it is
    /// running.
    pub(crate) fn replace(&mut self, callback: C) -> Option<C> {
        match &mut self.location {
            Location::Running => self.replacement.replace(callback),
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
