//! One wait at a primitive: a future, which an actor or a thread drives by parking.
//!
//! 1. A wait ends in one of three ways: it has what it waited for, or it leaves the line, or it is dropped, which leaves the line too. Who
//!    leaves with a gift that it has not used passes it on ([`Primitive::left`]).
//! 2. [`wait::park`] is called with the node in the line and may panic (in a `NoPark` section); then the drop cleans up. It does
//!    not unwind an actor that is to end: it says so, and the wait leaves the line first.
//! 3. A wake-up says nothing: a wait looks at its gift. So a wake-up for something else, or one too many, does no harm.

use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use thalweg_queue::{Parker, Wake, clock};

use super::error::WaitError;
use super::line::{Gift, Held, Line, Node, Queue, Wakes};
use crate::exit;
use crate::wait::{self, Woke};

/// What the line's lock is asked for.
pub(super) enum Ask<T> {
    /// It is there.
    Done(T),
    /// Behind all others.
    Behind,
    /// It was the first before.
    InFront,
}

/// What is waited for: one word or state, and a line.
pub(super) trait Primitive {
    /// What is known beside the line, under its lock.
    type State;
    /// What a wait knows of itself.
    type Wish;
    type Output;

    fn line(&self) -> &Line<Self::State>;

    /// Under the line's lock, for one who does not stand in it: takes what it waits for, or sends it into the line.
    fn ask(
        &self,
        queue: &mut Queue<Self::State>,
        wish: &mut Self::Wish,
        wakes: &mut Wakes,
    ) -> Ask<Self::Output>;

    /// One who waited was given this. `None`: it has to ask again.
    fn given(&self, gift: Gift, wish: &mut Self::Wish) -> Option<Self::Output>;

    /// One who waited has left, with a gift that it will not use or without one.
    fn left(&self, queue: Held<'_, Self::State>, gift: Option<Gift>, wish: &Self::Wish);
}

/// See the head of the module.
pub(super) struct Waiting<'a, P: Primitive> {
    primitive: &'a P,
    wish: P::Wish,
    /// In the line, or was taken out with a gift that has not been looked at.
    entered: bool,
    node: Node,
}

// SAFETY: `line`'s rules 2 and 3 say who touches the node; all else may be sent.
unsafe impl<P: Primitive + Sync> Send for Waiting<'_, P> where P::Wish: Send {}

impl<'a, P: Primitive> Waiting<'a, P> {
    /// `wants`: see [`Queue::first_wants`].
    pub(super) fn new(primitive: &'a P, wish: P::Wish, wants: usize) -> Self {
        Self {
            primitive,
            wish,
            entered: false,
            node: Node::new(wants),
        }
    }

    /// Has what it waited for, or stands in the line and will have `waker` woken.
    pub(super) fn look(self: Pin<&mut Self>, waker: &Waker) -> Poll<P::Output> {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        let mut spare = None;
        while this.entered {
            if let Some(gift) = this.node.take_gift() {
                this.entered = false;
                if let Some(output) = this.primitive.given(gift, &mut this.wish) {
                    return Poll::Ready(output);
                }
                break;
            }
            let mut queue = this.primitive.line().lock();
            // SAFETY: it has entered, and has not looked at a gift.
            if unsafe { queue.rearm(&this.node, waker, &mut spare) } {
                return Poll::Pending;
            }
            drop(queue);
            spare.get_or_insert_with(|| waker.clone());
        }
        let waker = waker.clone();
        let mut wakes = Wakes::default();
        let mut queue = this.primitive.line().lock();
        let at_front = match this.primitive.ask(&mut queue, &mut this.wish, &mut wakes) {
            Ask::Done(output) => {
                drop(queue);
                wakes.wake();
                return Poll::Ready(output);
            }
            Ask::Behind => false,
            Ask::InFront => true,
        };
        // SAFETY: it is in no line, and pinned; its drop leaves.
        unsafe { queue.push(&this.node, waker, at_front) };
        this.entered = true;
        Poll::Pending
    }

    /// Leaves the line. What it had been given is the answer; a mere wake-up is passed on.
    fn last_look(self: Pin<&mut Self>) -> Option<P::Output> {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        let (queue, gift, _waker) = this.take_out()?;
        let output = gift.and_then(|gift| this.primitive.given(gift, &mut this.wish));
        if output.is_none() {
            this.primitive.left(queue, gift, &this.wish);
        }
        output
    }

    /// Leaves the line, and passes on what it had been given.
    fn leave(self: Pin<&mut Self>) {
        // SAFETY: nothing is moved out of it.
        unsafe { self.get_unchecked_mut() }.pass_on();
    }

    fn pass_on(&mut self) {
        if let Some((queue, gift, _waker)) = self.take_out() {
            self.primitive.left(queue, gift, &self.wish);
        }
    }

    /// `None`: it was in no line.
    fn take_out(&mut self) -> Option<Left<'a, P::State>> {
        if !self.entered {
            return None;
        }
        self.entered = false;
        let mut queue = self.primitive.line().lock();
        // SAFETY: it has entered, and has not looked at a gift.
        let (gift, waker) = unsafe { queue.leave(&self.node) };
        Some((queue, gift, waker))
    }
}

/// The line, locked; what was given; and a waker to drop when it is not locked any more.
type Left<'a, S> = (Held<'a, S>, Option<Gift>, Option<Waker>);

impl<P: Primitive> Drop for Waiting<'_, P> {
    fn drop(&mut self) {
        self.pass_on();
    }
}

impl<P: Primitive> Future for Waiting<'_, P> {
    type Output = P::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<P::Output> {
        self.look(context.waker())
    }
}

/// Waits until `deadline` ([`clock`]; `None`: for ever). The end of its runtime comes to an actor as an error first; a signal that ends it unwinds it.
pub(super) fn until<P: Primitive>(
    waiting: Pin<&mut Waiting<'_, P>>,
    deadline: Option<u64>,
) -> Result<P::Output, WaitError> {
    wait::tell();
    let ended = drive(waiting, deadline);
    if ended.is_err() {
        exit::raise_if_due();
    }
    ended
}

/// Waits for as long as it takes. An actor that is to end is unwound.
pub(super) fn for_ever<P: Primitive>(mut waiting: Pin<&mut Waiting<'_, P>>) -> P::Output {
    drive(waiting.as_mut(), None).unwrap_or_else(|_| {
        wait::give_up();
        on_thread(waiting)
    })
}

/// At an error it has left the line.
pub(super) fn drive<P: Primitive>(
    mut waiting: Pin<&mut Waiting<'_, P>>,
    deadline: Option<u64>,
) -> Result<P::Output, WaitError> {
    let me = wait::waker();
    loop {
        if let Poll::Ready(output) = waiting.as_mut().look(&me) {
            return Ok(output);
        }
        match wait::park(deadline) {
            Woke::Woken | Woke::Interrupted => {}
            // It may have been chosen meanwhile.
            Woke::TimedOut => return waiting.last_look().ok_or(WaitError::TimedOut),
            Woke::Stopping => {
                waiting.leave();
                return Err(WaitError::Stopping);
            }
        }
    }
}

/// From when on an actor that keeps its worker waiting says so.
const SILENCE: Duration = Duration::from_secs(1);

/// An actor that cannot be put aside, and must have what it waits for: its worker's thread sleeps. Who could end the wait may be an actor of that very
/// worker, which nobody can know; so it is not left unsaid.
#[cold]
fn on_thread<P: Primitive>(mut waiting: Pin<&mut Waiting<'_, P>>) -> P::Output {
    let parker = Parker::new();
    let waker = parker.waker();
    let mut silence = Some(clock::deadline(SILENCE));
    loop {
        if let Poll::Ready(output) = waiting.as_mut().look(&waker) {
            return output;
        }
        if parker.park(silence) == Wake::TimedOut && silence.take().is_some() {
            let who = wait::current().map_or(0, |id| id.number());
            // Where nobody reads it nobody misses it.
            let _ = writeln!(
                std::io::stderr(),
                "thalweg: actor {who} waits in a destructor, where it cannot be put aside: its worker waits with it, for ever if \
                 what it waits for is to be done by an actor of that worker"
            );
        }
    }
}
