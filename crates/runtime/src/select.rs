//! Waiting for the first of several futures on the caller's own stack: the implementation of
//! [`select!`](crate::select).
//!
//! 1. The arms are a nested list: `WithArm(WithArm(NoArms, a), b)`. So the macro needs one step per
//!    arm, and the list is in the caller's frame.
//! 2. The arms are polled in a random order, each permutation with the same probability; so each
//!    ready arm is selected with the same probability. (A fixed order with a random start is not
//!    uniform: an arm after many arms that are not ready is selected more often.) With `biased;`
//!    they are polled in the order of the source. The first ready arm is selected, and no arm is
//!    polled after it.
//! 3. All arms are dropped within the same poll, before the body of the selected arm runs. So the
//!    others have taken nothing, and the operands of all operations can be used in the body.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use thalweg_queue::random;

use crate::block_on::block_on;
use crate::wait;

/// Waits for the first of several operations and runs its body, on the stack of the calling actor
/// or thread.
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
/// An operation is a future: the `_async` forms of channels, locks, timers, sockets and handles, or
/// any other future; `docs/select.md` has a table. `pattern` must be irrefutable. A body may
/// contain `return`, `break`, `?` and another `select!`; the value of `select!` is the value of the
/// body that ran.
///
/// - **Fairness.** If several operations are ready, each is selected with the same probability.
///   With `biased;`, the first one in the source is selected.
/// - **Cancellation safety.** Operations that were not selected are dropped before the body runs.
///   Those of this crate and its channels lose nothing: the message, the permit, the notification
///   or the lock goes to the next waiter.
/// - **Guards.** If a guard is `false`, its arm is disabled and its operation is not created.
/// - **`default`** runs if no operation is ready. It must be the last arm.
/// - It is a [preemption point](crate::check), so a loop of `select!` lets other actors run.
/// - A kill, a cancellation, a scope's deadline and the stop of the runtime end it like any wait:
///   the operations are dropped, and the actor is unwound.
///
/// It does not allocate, unless an operation keeps the waker of an earlier wait, as a
/// [`JoinHandle`](crate::JoinHandle) does that is polled by `&mut`. Up to 64 arms are supported,
/// and more with a higher `recursion_limit`.
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
/// If all guards are `false` and there is no `default`; if an operation or the body panics; if it
/// has to wait in a [`NoPark`](crate::preempt::NoPark) section or in [`native`](crate::native()).
#[macro_export]
macro_rules! select {
    (biased; $($arms:tt)+) => {
        $crate::__select!(selected true [$crate::__select::NoArms] [match selected {}] $($arms)+)
    };
    ($($arms:tt)+) => {
        $crate::__select!(selected false [$crate::__select::NoArms] [match selected {}] $($arms)+)
    };
}

/// Parameters: the name of the result, whether it is biased, the arms and bodies so far, and the
/// remaining tokens.
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
    /// The selected arm and its output.
    type Selected;

    /// Polls the enabled arms in the order of the source.
    fn poll_in_order(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Selected>;

    /// Begins a random order: marks all enabled arms as unpolled, and returns their number.
    fn start_round(self: Pin<&mut Self>) -> usize;

    /// Polls the arm that comes after `skipped` other arms that are unpolled since
    /// [`start_round`](Arms::start_round).
    fn poll_one(
        self: Pin<&mut Self>,
        skipped: usize,
        context: &mut Context<'_>,
    ) -> Poll<Self::Selected>;

    /// Whether an arm is enabled.
    fn has_arm(&self) -> bool;
}

/// The empty list.
#[derive(Debug)]
pub struct NoArms;

/// The output of the empty list, which has no values.
#[derive(Debug)]
pub enum Never {}

/// A list and one more arm, which is `None` if its guard is `false`.
#[derive(Debug)]
pub struct WithArm<A, F> {
    earlier: A,
    arm: Option<F>,
    /// The arm has not been polled in this round.
    is_unpolled: bool,
}

/// The selected arm.
#[derive(Debug)]
pub enum Selected<B, T> {
    /// The last arm of the list.
    Arm(T),
    /// An arm of the list before it.
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
    /// Appends an arm.
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
        // SAFETY: the field is pinned like `self`: it is never moved, and there is no `Drop` that
        // could move it.
        unsafe { self.map_unchecked_mut(|this| &mut this.earlier) }
    }

    #[inline]
    fn poll_arm<B>(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Selected<B, F::Output>> {
        // SAFETY: as in `earlier`.
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
    /// `None` after one was selected.
    arms: Option<A>,
    biased: bool,
}

impl<A: Arms> Future for SelectFuture<A> {
    type Output = A::Selected;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<A::Selected> {
        let biased = self.biased;
        // SAFETY: the arms are pinned like `self`: they are dropped in place.
        let mut slot = unsafe { self.map_unchecked_mut(|this| &mut this.arms) };
        let Some(mut arms) = slot.as_mut().as_pin_mut() else {
            unreachable!("polled after completion");
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

/// Waits for the first ready arm.
#[track_caller]
pub fn select<A: Arms>(arms: A, biased: bool) -> A::Selected {
    assert!(
        arms.has_arm(),
        "select! has nothing to wait for: all guards are false, and there is no default"
    );
    wait::check();
    let arms = Some(arms);
    block_on(SelectFuture { arms, biased })
}

/// Returns the first ready arm, if there is one.
pub fn try_select<A: Arms>(arms: A, biased: bool) -> Option<A::Selected> {
    wait::check();
    let arms = Some(arms);
    let select = pin!(SelectFuture { arms, biased });
    match select.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(selected) => Some(selected),
        Poll::Pending => None,
    }
}
