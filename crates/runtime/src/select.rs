//! Waiting for the first of several futures on the caller's own stack: [`select!`](crate::select), of which this is what it expands to.
//!
//! 1. Arms are a list that is built from the first to the last, each around those before it: `WithArm(WithArm(NoArms, a), b)`. So the list needs one step
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
        $crate::__select!(selected true [$crate::__select::NoArms] [match selected {}] $($arms)+)
    };
    ($($arms:tt)+) => {
        $crate::__select!(selected false [$crate::__select::NoArms] [match selected {}] $($arms)+)
    };
}

/// `won`, whether it is biased, the arms and their bodies so far, and what is left.
#[doc(hidden)]
#[macro_export]
macro_rules! __select {
    ($selected:ident $biased:literal [$arms:expr] [$bodies:expr]) => {{
        let $selected = $crate::__select::select($arms, $biased);
        $bodies
    }};
    ($selected:ident $biased:literal [$arms:expr] [$bodies:expr] default => $body:expr $(,)?) => {{
        let selected = $crate::__select::try_select($arms, $biased);
        match selected {
            Some($selected) => $bodies,
            None => $body,
        }
    }};
    ($selected:ident $biased:literal [$arms:expr] [$bodies:expr]
        $pattern:pat = $operation:expr, if $guard:expr => $body:block, $($rest:tt)*) => {
        $crate::__select!($selected $biased
            [$crate::__select::WithArm::new($arms, if $guard { Some($operation) } else { None })]
            [match $selected {
                $crate::__select::Selected::Arm($pattern) => $body,
                $crate::__select::Selected::Earlier($selected) => $bodies,
            }]
            $($rest)*)
    };
    ($selected:ident $biased:literal [$arms:expr] [$bodies:expr]
        $pattern:pat = $operation:expr, if $guard:expr => $body:block $($rest:tt)*) => {
        $crate::__select!($selected $biased
            [$crate::__select::WithArm::new($arms, if $guard { Some($operation) } else { None })]
            [match $selected {
                $crate::__select::Selected::Arm($pattern) => $body,
                $crate::__select::Selected::Earlier($selected) => $bodies,
            }]
            $($rest)*)
    };
    ($selected:ident $biased:literal [$arms:expr] [$bodies:expr]
        $pattern:pat = $operation:expr, if $guard:expr => $body:expr $(, $($rest:tt)*)?) => {
        $crate::__select!($selected $biased
            [$crate::__select::WithArm::new($arms, if $guard { Some($operation) } else { None })]
            [match $selected {
                $crate::__select::Selected::Arm($pattern) => $body,
                $crate::__select::Selected::Earlier($selected) => $bodies,
            }]
            $($($rest)*)?)
    };
    ($selected:ident $biased:literal [$arms:expr] [$bodies:expr]
        $pattern:pat = $operation:expr => $body:block, $($rest:tt)*) => {
        $crate::__select!($selected $biased
            [$crate::__select::WithArm::new($arms, Some($operation))]
            [match $selected {
                $crate::__select::Selected::Arm($pattern) => $body,
                $crate::__select::Selected::Earlier($selected) => $bodies,
            }]
            $($rest)*)
    };
    ($selected:ident $biased:literal [$arms:expr] [$bodies:expr]
        $pattern:pat = $operation:expr => $body:block $($rest:tt)*) => {
        $crate::__select!($selected $biased
            [$crate::__select::WithArm::new($arms, Some($operation))]
            [match $selected {
                $crate::__select::Selected::Arm($pattern) => $body,
                $crate::__select::Selected::Earlier($selected) => $bodies,
            }]
            $($rest)*)
    };
    ($selected:ident $biased:literal [$arms:expr] [$bodies:expr]
        $pattern:pat = $operation:expr => $body:expr $(, $($rest:tt)*)?) => {
        $crate::__select!($selected $biased
            [$crate::__select::WithArm::new($arms, Some($operation))]
            [match $selected {
                $crate::__select::Selected::Arm($pattern) => $body,
                $crate::__select::Selected::Earlier($selected) => $bodies,
            }]
            $($($rest)*)?)
    };
}

/// A list of arms: rule 1.
pub trait Arms {
    /// Which has won, and with what.
    type Selected;

    /// Polls those that there are, as written.
    fn poll_in_order(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Selected>;

    /// Before a random order: no arm has been polled; how many there are.
    fn start_round(self: Pin<&mut Self>) -> usize;

    /// Polls one of those that were not polled since [`start_round`](Arms::start_round): the one behind `skipped` others.
    fn poll_one(
        self: Pin<&mut Self>,
        skipped: usize,
        context: &mut Context<'_>,
    ) -> Poll<Self::Selected>;

    /// Whether there is one to wait for.
    fn has_arm(&self) -> bool;
}

/// None.
#[derive(Debug)]
pub struct NoArms;

/// What none of no arms gives.
#[derive(Debug)]
pub enum Never {}

/// Some, and one more, which is `None` if its guard keeps it out.
#[derive(Debug)]
pub struct WithArm<A, F> {
    earlier: A,
    arm: Option<F>,
    /// It has not been polled in this order yet.
    is_unpolled: bool,
}

/// What an arm gave.
#[derive(Debug)]
pub enum Selected<B, T> {
    /// The last one.
    Arm(T),
    /// One of those before it.
    Earlier(B),
}

impl Arms for NoArms {
    type Selected = Never;

    #[inline]
    fn poll_in_order(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Never> {
        Poll::Pending
    }

    #[inline]
    fn start_round(self: Pin<&mut Self>) -> usize {
        0
    }

    #[inline]
    fn poll_one(self: Pin<&mut Self>, _: usize, _: &mut Context<'_>) -> Poll<Never> {
        Poll::Pending
    }

    #[inline]
    fn has_arm(&self) -> bool {
        false
    }
}

impl<A: Arms, F: Future> WithArm<A, F> {
    /// One more.
    #[inline]
    pub fn new(earlier: A, arm: Option<impl IntoFuture<IntoFuture = F>>) -> Self {
        let arm = arm.map(IntoFuture::into_future);
        Self {
            earlier,
            arm,
            is_unpolled: false,
        }
    }

    #[inline]
    fn earlier(self: Pin<&mut Self>) -> Pin<&mut A> {
        // SAFETY: the field is pinned as this is: it is not moved, and there is no `Drop` that could.
        unsafe { self.map_unchecked_mut(|this| &mut this.earlier) }
    }

    #[inline]
    fn poll_arm<B>(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Selected<B, F::Output>> {
        // SAFETY: as in `before`.
        let arm = unsafe { self.map_unchecked_mut(|this| &mut this.arm) };
        match arm.as_pin_mut() {
            Some(arm) => arm.poll(context).map(Selected::Arm),
            None => Poll::Pending,
        }
    }

    #[inline]
    fn is_unpolled(self: Pin<&mut Self>) -> &mut bool {
        // SAFETY: nothing is moved out, and this field is not pinned.
        unsafe { &mut self.get_unchecked_mut().is_unpolled }
    }
}

impl<A: Arms, F: Future> Arms for WithArm<A, F> {
    type Selected = Selected<A::Selected, F::Output>;

    #[inline]
    fn poll_in_order(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Selected> {
        match self.as_mut().earlier().poll_in_order(context) {
            Poll::Ready(selected) => Poll::Ready(Selected::Earlier(selected)),
            Poll::Pending => self.poll_arm(context),
        }
    }

    #[inline]
    fn start_round(mut self: Pin<&mut Self>) -> usize {
        let is_enabled = self.arm.is_some();
        *self.as_mut().is_unpolled() = is_enabled;
        self.earlier().start_round() + usize::from(is_enabled)
    }

    #[inline]
    fn poll_one(
        mut self: Pin<&mut Self>,
        mut skipped: usize,
        context: &mut Context<'_>,
    ) -> Poll<Self::Selected> {
        if self.is_unpolled {
            if skipped == 0 {
                *self.as_mut().is_unpolled() = false;
                return self.poll_arm(context);
            }
            skipped -= 1;
        }
        self.earlier()
            .poll_one(skipped, context)
            .map(Selected::Earlier)
    }

    #[inline]
    fn has_arm(&self) -> bool {
        self.arm.is_some() || self.earlier.has_arm()
    }
}

struct SelectFuture<A> {
    /// Until one has won.
    arms: Option<A>,
    biased: bool,
}

impl<A: Arms> Future for SelectFuture<A> {
    type Output = A::Selected;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<A::Selected> {
        let biased = self.biased;
        // SAFETY: the arms are pinned as this is: they are dropped where they are.
        let mut slot = unsafe { self.map_unchecked_mut(|this| &mut this.arms) };
        let Some(mut arms) = slot.as_mut().as_pin_mut() else {
            unreachable!("it is not polled after its end");
        };
        // Rule 2.
        let mut selected = Poll::Pending;
        if biased {
            selected = arms.poll_in_order(context);
        } else {
            let mut unpolled = arms.as_mut().start_round();
            while unpolled > 0 && selected.is_pending() {
                selected = arms.as_mut().poll_one(random::below(unpolled), context);
                unpolled -= 1;
            }
        }
        if selected.is_ready() {
            // Rule 3.
            slot.set(None);
        }
        selected
    }
}

/// Waits for the first arm.
#[track_caller]
pub fn select<A: Arms>(arms: A, biased: bool) -> A::Selected {
    assert!(
        arms.has_arm(),
        "select! has nothing to wait for: the guards of all arms are false, and there is no default"
    );
    wait::check();
    let arms = Some(arms);
    block_on(SelectFuture { arms, biased })
}

/// The first arm, if it is ready.
pub fn try_select<A: Arms>(arms: A, biased: bool) -> Option<A::Selected> {
    wait::check();
    let arms = Some(arms);
    let select = pin!(SelectFuture { arms, biased });
    match select.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(selected) => Some(selected),
        Poll::Pending => None,
    }
}
