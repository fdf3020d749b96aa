//! Whose turn it is to call: the states of a stream's callback. Each step is made under one lock, which is the stream's queue's, and none of
//! them runs or drops a callback.

/// The callback and who has it.
pub(crate) struct CallbackSlot<C, W> {
    location: Location<C>,
    /// Takes the place of the one that is away.
    replacement: Option<C>,
    /// Who has the turn.
    runner: Option<W>,
}

enum Location<C> {
    /// There is none, or none any more.
    Unset,
    Idle(C),
    /// Who has the turn has it.
    Running,
}

/// What is to be done by who has dropped the callback.
pub(crate) enum AfterCallback<C> {
    /// Nothing: there is none any more.
    Dropped,
    /// Another one came meanwhile, and nobody has the turn.
    Replaced,
    /// This one came too late: it is dropped, too.
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
    /// Whether there is a callback, here or away.
    pub(crate) fn is_set(&self) -> bool {
        !matches!(self.location, Location::Unset)
    }

    /// Whether `runner` has the turn.
    pub(crate) fn is_running_on(&self, runner: W) -> bool {
        self.runner == Some(runner)
    }

    /// Takes the turn, if nobody has it.
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

    /// Puts the callback back: the turn is nobody's.
    pub(crate) fn put_back(&mut self, callback: C) {
        self.location = Location::Idle(callback);
        self.runner = None;
    }

    /// Another callback from now on. The one before it is to be dropped, where it is not away.
    pub(crate) fn replace(&mut self, callback: C) -> Option<C> {
        match &mut self.location {
            Location::Running => self.replacement.replace(callback),
            location => match std::mem::replace(location, Location::Idle(callback)) {
                Location::Idle(former) => Some(former),
                _ => None,
            },
        }
    }

    /// By who has the turn: what takes the place of the callback that it has.
    pub(crate) fn take_replacement(&mut self) -> Option<C> {
        self.replacement.take()
    }

    /// Whether there is one.
    pub(crate) fn has_replacement(&self) -> bool {
        self.replacement.is_some()
    }

    /// By who had the turn and has dropped the callback.
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
