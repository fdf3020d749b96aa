//! The operations of a subject of the lab.

/// A channel of `u64` between one sender and one receiver.
///
/// Every function is one call of the subject itself, so that only its cost is measured. If a
/// subject is closed during a measurement, this is a defect of the lab, and the process panics.
pub trait Channel: 'static {
    /// Its public name.
    const NAME: &'static str;
    /// How a side waits that finds the channel full or empty: in its own blocking call, or by
    /// retrying.
    const WAITING: Waiting;
    /// The sending side.
    type Sender: Send + 'static;
    /// The receiving side.
    type Receiver: Send + 'static;

    /// A new channel that accepts at most `capacity` messages.
    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver);

    /// Sends a message; waits while the channel is full.
    fn send(sender: &mut Self::Sender, message: u64);

    /// Receives a message; waits while the channel is empty.
    fn receive(receiver: &mut Self::Receiver) -> u64;

    /// Sends if there is space now.
    fn try_send(sender: &mut Self::Sender, message: u64) -> bool;

    /// Receives if there is a message now.
    fn try_receive(receiver: &mut Self::Receiver) -> Option<u64>;

    /// Receives `count` messages, one after the other, and passes each to `each`. A subject whose
    /// documentation recommends another loop than one call per message has that loop here.
    #[inline]
    fn receive_each(receiver: &mut Self::Receiver, count: u64, mut each: impl FnMut(u64)) {
        for _ in 0..count {
            each(Self::receive(receiver));
        }
    }

    /// How often the channel has woken a sleeping receiver, if it counts that.
    #[must_use]
    fn wakes(_receiver: &Self::Receiver) -> Option<u64> {
        None
    }
}

/// The rule for a batch that does not fit, or is not there, as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partial {
    /// The part that fits, or is there, is moved now.
    Yes,
    /// Nothing is moved until the whole batch fits or is there.
    No,
}

/// A channel that moves batches in place.
pub trait Batches: Channel {
    /// Whether the subject can follow [`Partial::No`].
    const WHOLE: bool = true;

    /// Sends the first of `first`, `first + 1`, .. as one batch of at most `count`, and returns
    /// their number; 0 if the rule allows none now.
    fn send_batch(sender: &mut Self::Sender, first: u64, count: usize, rule: Partial) -> usize;

    /// Passes at most `count` messages to `each`, and returns their number; 0 if the rule allows
    /// none now.
    fn receive_batch(
        receiver: &mut Self::Receiver,
        count: usize,
        rule: Partial,
        each: impl FnMut(u64),
    ) -> usize;
}

/// A channel whose sending side can be cloned: one clone per thread.
pub trait ManySenders: Channel<Sender: Clone> {
    /// An unbounded channel, if the subject has one.
    #[must_use]
    fn unbounded() -> Option<(Self::Sender, Self::Receiver)> {
        None
    }
}

/// A channel whose receiving side can be cloned, too. Each message goes to one receiver.
pub trait ManyReceivers: ManySenders<Receiver: Clone> {}

/// How a side waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The subject's own blocking call.
    Own,
    /// The subject has no blocking call: the caller retries with [`crate::patience`], which is the
    /// same for all of these.
    Looks,
}

impl Waiting {
    /// The text in a result's row.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Own => "waits by its own blocking calls",
            Self::Looks => {
                "has no blocking calls: looks again at once, and yields where threads outnumber processors"
            }
        }
    }
}
