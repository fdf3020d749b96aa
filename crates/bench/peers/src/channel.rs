//! What a subject of the lab can do.

/// A channel of `u64` between one sender and one receiver.
///
/// Every function is one call of the subject's own, so that its cost is what is measured. A subject that is closed while
/// it is measured is a defect of the lab, and ends the process with a panic.
pub trait Channel: 'static {
    /// Its public name.
    const NAME: &'static str;
    /// How a side waits that finds it full or empty: its own blocking call, or looking again.
    const WAITING: Waiting;
    /// The sending side.
    type Sender: Send + 'static;
    /// The receiving side.
    type Receiver: Send + 'static;

    /// A new one that holds at most `capacity` messages.
    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver);

    /// Sends, and waits while it is full.
    fn send(sender: &mut Self::Sender, message: u64);

    /// Receives, and waits while it is empty.
    fn receive(receiver: &mut Self::Receiver) -> u64;

    /// Sends if there is room now.
    fn try_send(sender: &mut Self::Sender, message: u64) -> bool;

    /// Receives if there is a message now.
    fn try_receive(receiver: &mut Self::Receiver) -> Option<u64>;

    /// Sends `first`, `first + 1`, .. as one batch of `count`: one by one where it knows no batches.
    #[inline]
    fn send_batch(sender: &mut Self::Sender, first: u64, count: usize) {
        for message in first..first + count as u64 {
            Self::send(sender, message);
        }
    }

    /// Receives exactly `count` messages and gives each to `each`: one by one where it knows no batches.
    #[inline]
    fn receive_batch(receiver: &mut Self::Receiver, count: usize, mut each: impl FnMut(u64)) {
        for _ in 0..count {
            each(Self::receive(receiver));
        }
    }

    /// How often the channel woke a sleeping receiver so far, if it counts that.
    #[must_use]
    fn wakes(_receiver: &Self::Receiver) -> Option<u64> {
        None
    }
}

/// A channel whose sending side can be cloned: one clone a thread.
pub trait ManySenders: Channel<Sender: Clone> {
    /// One that grows without bound, if it comes as such.
    #[must_use]
    fn unbounded() -> Option<(Self::Sender, Self::Receiver)> {
        None
    }
}

/// A channel whose receiving side can be cloned, too. A message goes to one of them.
pub trait ManyReceivers: ManySenders<Receiver: Clone> {}

/// How a side waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// By the subject's own blocking call.
    Own,
    /// It has none: the caller looks again, as [`crate::patience`] does for all of these alike.
    Looks,
}

impl Waiting {
    /// As a result's row says it.
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
