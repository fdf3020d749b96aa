//! Waiting for the first of several futures on the caller's own stack: [`select!`](crate::select), of which this is what it expands to.
//!
//! 1. Arms are a list that is built from the first to the last, each around those before it: `Also(Also(NoArms, a), b)`. So the list needs one step
//!    of the macro an arm, and lies in the frame of who waits.
//! 2. They are polled in their order from one that is chosen by chance to the last, and then from the first. The first that is ready has won, and none is
//!    polled after it.
//! 3. All arms are dropped, still within that poll, before the winner's body runs: what a loser had is where it was, and its operation's operands
//!    are free.

use std::cell::Cell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use thalweg_queue::clock;

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
/// - **Chance.** Where several are ready the first from an arm that is chosen by chance has won, so none is left out for long. With `biased;` it is the first as written.
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
    /// How many.
    const COUNT: usize;
    /// Which has won, and with what.
    type Won;

    /// Polls those from one to before another, in order.
    fn poll(
        self: Pin<&mut Self>,
        from: usize,
        to: usize,
        context: &mut Context<'_>,
    ) -> Poll<Self::Won>;

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
    const COUNT: usize = 0;
    type Won = Never;

    #[inline]
    fn poll(self: Pin<&mut Self>, _: usize, _: usize, _: &mut Context<'_>) -> Poll<Never> {
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
        Self { before, arm }
    }
}

impl<A: Arms, F: Future> Arms for Also<A, F> {
    const COUNT: usize = A::COUNT + 1;
    type Won = Won<A::Won, F::Output>;

    #[inline]
    fn poll(
        self: Pin<&mut Self>,
        from: usize,
        to: usize,
        context: &mut Context<'_>,
    ) -> Poll<Self::Won> {
        // SAFETY: both fields are pinned as this is: neither is moved, and there is no `Drop` that could.
        let (before, arm) = unsafe {
            let this = self.get_unchecked_mut();
            (
                Pin::new_unchecked(&mut this.before),
                Pin::new_unchecked(&mut this.arm),
            )
        };
        if from < A::COUNT
            && let Poll::Ready(won) = before.poll(from, to, context)
        {
            return Poll::Ready(Won::Before(won));
        }
        if (from..to).contains(&A::COUNT)
            && let Some(arm) = arm.as_pin_mut()
            && let Poll::Ready(value) = arm.poll(context)
        {
            return Poll::Ready(Won::This(value));
        }
        Poll::Pending
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
        let first = if self.biased { 0 } else { chance(A::COUNT) };
        // SAFETY: the arms are pinned as this is: they are dropped where they are.
        let mut place = unsafe { self.map_unchecked_mut(|this| &mut this.arms) };
        let Some(mut arms) = place.as_mut().as_pin_mut() else {
            unreachable!("it is not polled after its end");
        };
        // Rule 2.
        let mut won = arms.as_mut().poll(first, A::COUNT, context);
        if won.is_pending() && first > 0 {
            won = arms.poll(0, first, context);
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

thread_local! {
    static CHANCE: Cell<u64> = const { Cell::new(0) };
}

/// A number below `count`. They need not be good ones, but two selects that take turns must not each have every other of a sequence that counts:
/// Marsaglia, "Xorshift RNGs" (2003).
fn chance(count: usize) -> usize {
    if count < 2 {
        return 0;
    }
    let next = CHANCE.try_with(|place| {
        let mut x = place.get();
        if x == 0 {
            x = clock::now() ^ (&raw const *place).addr() as u64 | 1;
        }
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        place.set(x);
        x
    });
    // A thread whose thread-locals are gone begins with the first.
    let above = next.unwrap_or(0) >> 32;
    ((above * count as u64) >> 32) as usize
}
