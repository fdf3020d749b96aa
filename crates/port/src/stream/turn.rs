//! Whose turn it is to call: the states of a stream's callback. Each step is made under one lock, which is the stream's queue's, and none of
//! them runs or drops a callback.

/// The callback and who has it.
pub(crate) struct Turn<C, W> {
    place: Place<C>,
    /// Takes the place of the one that is away.
    next: Option<C>,
    /// Who has the turn.
    by: Option<W>,
}

enum Place<C> {
    /// There is none, or none any more.
    Nobody,
    Here(C),
    /// Who has the turn has it.
    Away,
}

/// What is to be done by who has dropped the callback.
pub(crate) enum After<C> {
    /// Nothing: there is none any more.
    Over,
    /// Another one came meanwhile, and nobody has the turn.
    Another,
    /// This one came too late: it is dropped, too.
    Late(C),
}

impl<C, W> Default for Turn<C, W> {
    fn default() -> Self {
        Self {
            place: Place::Nobody,
            next: None,
            by: None,
        }
    }
}

impl<C, W: PartialEq> Turn<C, W> {
    /// Whether there is a callback, here or away.
    pub(crate) fn is_there(&self) -> bool {
        !matches!(self.place, Place::Nobody)
    }

    /// Whether `who` has the turn.
    pub(crate) fn is_of(&self, who: W) -> bool {
        self.by == Some(who)
    }

    /// Takes the turn, if nobody has it.
    pub(crate) fn begin(&mut self, who: impl FnOnce() -> W) -> Option<C> {
        match std::mem::replace(&mut self.place, Place::Away) {
            Place::Here(callback) => {
                self.by = Some(who());
                Some(callback)
            }
            other => {
                self.place = other;
                None
            }
        }
    }

    /// Puts the callback back: the turn is nobody's.
    pub(crate) fn give_back(&mut self, callback: C) {
        self.place = Place::Here(callback);
        self.by = None;
    }

    /// Another callback from now on. The one before it is to be dropped, where it is not away.
    pub(crate) fn replace(&mut self, callback: C) -> Option<C> {
        match &mut self.place {
            Place::Away => self.next.replace(callback),
            place => match std::mem::replace(place, Place::Here(callback)) {
                Place::Here(former) => Some(former),
                _ => None,
            },
        }
    }

    /// By who has the turn: what takes the place of the callback that it has.
    pub(crate) fn next(&mut self) -> Option<C> {
        self.next.take()
    }

    /// Whether there is one.
    pub(crate) fn has_next(&self) -> bool {
        self.next.is_some()
    }

    /// By who had the turn and has dropped the callback.
    pub(crate) fn end(&mut self, closed: bool) -> After<C> {
        match self.next.take() {
            Some(late) if closed => After::Late(late),
            Some(next) => {
                self.give_back(next);
                After::Another
            }
            None => {
                self.place = Place::Nobody;
                self.by = None;
                After::Over
            }
        }
    }
}
