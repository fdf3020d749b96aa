//! Waiting for the first of several futures on the caller's own stack: [`select!`](crate::select), of which this is what it expands to.
//!
//! 1. Arms are a list that is built from the first to the last, each around those before it: `Also(Also(NoArms, a), b)`. So the list needs one step
//!    of the macro an arm, and lies in the frame of who waits.
//! 2. They are polled in a random order, each order with the same probability: so each arm that is ready wins with the same probability. (An
//!    order that only begins at a random arm is not uniform: an arm behind many that are not ready wins more often.) With `biased;` they are
//!    polled as written. The first that is ready has won, and none is polled after it.
//! 3. All arms are dropped, still within that poll, before the winner's body runs: what a loser had is where it was, and its operation's operands
//!    are free.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use thalweg_queue::random;

use crate::block_on::block_on;
use crate::wait;

/// Waits for the first of several operations, and runs the body of that one: on the stack of the actor, or of the thread, that says it.
///
/// ```text
/// select! {
///     [biased;]
///     pattern = operation [, if guard] => body,
///     ...
///     [default => body,]
/// }
/// ```
///
/// An operation is a future: what channels, locks, timers, sockets and handles have beside their blocking calls, mostly with `_async` behind the name, or
/// anybody's; `docs/select.md` has a table of them. `pattern` must match whatever comes of it.
/// A body may be anything, `return`, `break`, `?` and another `select!` too; the value of `select!` is that of the body that ran.
///
/// - **Chance.** Where several are ready each of them wins with the same probability. With `biased;` the first as written wins.
/// - **Nothing is lost.** Operations that did not win are dropped before the body runs. Those of this crate and its channels lose nothing by it: the
///   message, the permit, the wake-up and the lock are there for the next one.
/// - **Guards.** An arm whose guard is `false` is not there: its operation is not made.
/// - **`default`** runs where no operation is ready at once. It comes last.
/// - It is a [point](crate::check) of preemption, so a loop of it does not keep the worker.
/// - A kill, a cancellation, a scope's deadline and the end of the runtime end it as any wait: the operations are dropped, and the actor is unwound.
///
/// It allocates nothing for itself, unless one of its operations keeps a waker of an earlier wait, as a [`JoinHandle`](crate::JoinHandle) does that is asked by `&mut`.
/// There may be 64 arms, and more where the crate has a higher `recursion_limit`.
///
/// ```
/// use std::time::Duration;
/// use thalweg_runtime::{channel, run, select, sleep_async, spawn};
///
/// run(|| {
///     let (sender, mut numbers) = channel();
///     let child = spawn(move || (1..=3).for_each(|n| sender.send(n).unwrap()));
///     let (mut sum, mut open) = (0, true);
///     let mut ended = child.pid().monitor();
///     loop {
///         select! {
///             biased;
///             number = numbers.recv_async(), if open => match number {
///                 Ok(number) => sum += number,
///                 Err(_) => open = false,
///             },
///             down = &mut ended => break assert_eq!(down.reason.kind(), "normal"),
///             () = sleep_async(Duration::from_secs(60)) => panic!("it is slow"),
///         }
///     }
///     assert_eq!(sum, 6);
/// });
/// ```
///
/// # Panics
/// Where the guards of all arms are `false` and there is no `default`; with the panic of an operation or of the body; in a
/// [`NoPark`](crate::preempt::NoPark) section and in [`native`](crate::native()), if it has to wait.
#[macro_export]
macro_rules! select {
    (biased; $($arms:tt)+) => {
        $crate::__select!(won true [$crate::__select::NoArms] [match won {}] $($arms)+)
    };
    ($($arms:tt)+) => {
        $crate::__select!(won false [$crate::__select::NoArms] [match won {}] $($arms)+)
    };
}

/// `won`, whether it is biased, the arms and their bodies so far, and what is left.
#[doc(hidden)]
#[macro_export]
macro_rules! __select {
    ($won:ident $biased:literal [$arms:expr] [$bodies:expr]) => {{
        let $won = $crate::__select::wait($arms, $biased);
        $bodies
    }};
    ($won:ident $biased:literal [$arms:expr] [$bodies:expr] default => $body:expr $(,)?) => {{
        let now = $crate::__select::now($arms, $biased);
        match now {
            Some($won) => $bodies,
            None => $body,
        }
    }};
    ($won:ident $biased:literal [$arms:expr] [$bodies:expr]
        $pattern:pat = $operation:expr, if $guard:expr => $body:block, $($rest:tt)*) => {
        $crate::__select!($won $biased
            [$crate::__select::Also::new($arms, if $guard { Some($operation) } else { None })]
            [match $won {
                $crate::__select::Won::This($pattern) => $body,
                $crate::__select::Won::Before($won) => $bodies,
            }]
            $($rest)*)
    };
    ($won:ident $biased:literal [$arms:expr] [$bodies:expr]
        $pattern:pat = $operation:expr, if $guard:expr => $body:block $($rest:tt)*) => {
        $crate::__select!($won $biased
            [$crate::__select::Also::new($arms, if $guard { Some($operation) } else { None })]
            [match $won {
                $crate::__select::Won::This($pattern) => $body,
                $crate::__select::Won::Before($won) => $bodies,
            }]
            $($rest)*)
    };
    ($won:ident $biased:literal [$arms:expr] [$bodies:expr]
        $pattern:pat = $operation:expr, if $guard:expr => $body:expr $(, $($rest:tt)*)?) => {
        $crate::__select!($won $biased
            [$crate::__select::Also::new($arms, if $guard { Some($operation) } else { None })]
            [match $won {
                $crate::__select::Won::This($pattern) => $body,
                $crate::__select::Won::Before($won) => $bodies,
            }]
            $($($rest)*)?)
    };
    ($won:ident $biased:literal [$arms:expr] [$bodies:expr]
        $pattern:pat = $operation:expr => $body:block, $($rest:tt)*) => {
        $crate::__select!($won $biased
            [$crate::__select::Also::new($arms, Some($operation))]
            [match $won {
                $crate::__select::Won::This($pattern) => $body,
                $crate::__select::Won::Before($won) => $bodies,
            }]
            $($rest)*)
    };
    ($won:ident $biased:literal [$arms:expr] [$bodies:expr]
        $pattern:pat = $operation:expr => $body:block $($rest:tt)*) => {
        $crate::__select!($won $biased
            [$crate::__select::Also::new($arms, Some($operation))]
            [match $won {
                $crate::__select::Won::This($pattern) => $body,
                $crate::__select::Won::Before($won) => $bodies,
            }]
            $($rest)*)
    };
    ($won:ident $biased:literal [$arms:expr] [$bodies:expr]
        $pattern:pat = $operation:expr => $body:expr $(, $($rest:tt)*)?) => {
        $crate::__select!($won $biased
            [$crate::__select::Also::new($arms, Some($operation))]
            [match $won {
                $crate::__select::Won::This($pattern) => $body,
                $crate::__select::Won::Before($won) => $bodies,
            }]
            $($($rest)*)?)
    };
}

/// A list of arms: rule 1.
pub trait Arms {
    /// Which has won, and with what.
    type Won;

    /// Polls those that there are, as written.
    fn poll_in_order(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Won>;

    /// Before a random order: no arm has been polled; how many there are.
    fn begin(self: Pin<&mut Self>) -> usize;

    /// Polls one of those that were not polled since [`begin`](Arms::begin): the one behind `skipped` others.
    fn poll_one(self: Pin<&mut Self>, skipped: usize, context: &mut Context<'_>)
    -> Poll<Self::Won>;

    /// Whether there is one to wait for.
    fn is_any(&self) -> bool;
}

/// None.
#[derive(Debug)]
pub struct NoArms;

/// What none of no arms gives.
#[derive(Debug)]
pub enum Never {}

/// Some, and one more, which is `None` if its guard keeps it out.
#[derive(Debug)]
pub struct Also<A, F> {
    before: A,
    arm: Option<F>,
    /// It has not been polled in this order yet.
    is_due: bool,
}

/// What an arm gave.
#[derive(Debug)]
pub enum Won<B, T> {
    /// The last one.
    This(T),
    /// One of those before it.
    Before(B),
}

impl Arms for NoArms {
    type Won = Never;

    #[inline]
    fn poll_in_order(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Never> {
        Poll::Pending
    }

    #[inline]
    fn begin(self: Pin<&mut Self>) -> usize {
        0
    }

    #[inline]
    fn poll_one(self: Pin<&mut Self>, _: usize, _: &mut Context<'_>) -> Poll<Never> {
        Poll::Pending
    }

    #[inline]
    fn is_any(&self) -> bool {
        false
    }
}

impl<A: Arms, F: Future> Also<A, F> {
    /// One more.
    #[inline]
    pub fn new(before: A, arm: Option<impl IntoFuture<IntoFuture = F>>) -> Self {
        let arm = arm.map(IntoFuture::into_future);
        Self {
            before,
            arm,
            is_due: false,
        }
    }

    #[inline]
    fn before(self: Pin<&mut Self>) -> Pin<&mut A> {
        // SAFETY: the field is pinned as this is: it is not moved, and there is no `Drop` that could.
        unsafe { self.map_unchecked_mut(|this| &mut this.before) }
    }

    #[inline]
    fn poll_this<B>(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Won<B, F::Output>> {
        // SAFETY: as in `before`.
        let arm = unsafe { self.map_unchecked_mut(|this| &mut this.arm) };
        match arm.as_pin_mut() {
            Some(arm) => arm.poll(context).map(Won::This),
            None => Poll::Pending,
        }
    }

    #[inline]
    fn is_due(self: Pin<&mut Self>) -> &mut bool {
        // SAFETY: nothing is moved out, and this field is not pinned.
        unsafe { &mut self.get_unchecked_mut().is_due }
    }
}

impl<A: Arms, F: Future> Arms for Also<A, F> {
    type Won = Won<A::Won, F::Output>;

    #[inline]
    fn poll_in_order(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Won> {
        match self.as_mut().before().poll_in_order(context) {
            Poll::Ready(won) => Poll::Ready(Won::Before(won)),
            Poll::Pending => self.poll_this(context),
        }
    }

    #[inline]
    fn begin(mut self: Pin<&mut Self>) -> usize {
        let is_there = self.arm.is_some();
        *self.as_mut().is_due() = is_there;
        self.before().begin() + usize::from(is_there)
    }

    #[inline]
    fn poll_one(
        mut self: Pin<&mut Self>,
        mut skipped: usize,
        context: &mut Context<'_>,
    ) -> Poll<Self::Won> {
        if self.is_due {
            if skipped == 0 {
                *self.as_mut().is_due() = false;
                return self.poll_this(context);
            }
            skipped -= 1;
        }
        self.before().poll_one(skipped, context).map(Won::Before)
    }

    #[inline]
    fn is_any(&self) -> bool {
        self.arm.is_some() || self.before.is_any()
    }
}

struct Select<A> {
    /// Until one has won.
    arms: Option<A>,
    biased: bool,
}

impl<A: Arms> Future for Select<A> {
    type Output = A::Won;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<A::Won> {
        let biased = self.biased;
        // SAFETY: the arms are pinned as this is: they are dropped where they are.
        let mut place = unsafe { self.map_unchecked_mut(|this| &mut this.arms) };
        let Some(mut arms) = place.as_mut().as_pin_mut() else {
            unreachable!("it is not polled after its end");
        };
        // Rule 2.
        let mut won = Poll::Pending;
        if biased {
            won = arms.poll_in_order(context);
        } else {
            let mut left = arms.as_mut().begin();
            while left > 0 && won.is_pending() {
                won = arms.as_mut().poll_one(random::below(left), context);
                left -= 1;
            }
        }
        if won.is_ready() {
            // Rule 3.
            place.set(None);
        }
        won
    }
}

/// Waits for the first arm.
#[track_caller]
pub fn wait<A: Arms>(arms: A, biased: bool) -> A::Won {
    assert!(
        arms.is_any(),
        "select! has nothing to wait for: the guards of all arms are false, and there is no default"
    );
    wait::check();
    let arms = Some(arms);
    block_on(Select { arms, biased })
}

/// The first arm, if it is ready.
pub fn now<A: Arms>(arms: A, biased: bool) -> Option<A::Won> {
    wait::check();
    let arms = Some(arms);
    let select = pin!(Select { arms, biased });
    match select.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(won) => Some(won),
        Poll::Pending => None,
    }
}
