//! How actors end, and who hears of it: exit reasons, links, monitors, trapped exits and kill, as OTP has them.
//!
//! | | |
//! | --- | --- |
//! | [`Pid`] | names one incarnation of an actor, whatever it is; what it does with one that has ended is an error |
//! | [`ExitReason`] | why an actor ended, or is to end |
//! | [`Pid::link`] | two actors that end together: the end of one is an exit signal to the other, unless it was [`Normal`](ExitReason::Normal) |
//! | [`Pid::monitor`] | hears of one end, once; goes one way; as many as one likes |
//! | [`Pid::exit`] | an exit signal: the other ends with this reason, or, where it [traps exits](trap_exits), has it as a message |
//! | [`Pid::kill`] | an exit signal that is not trapped; others see [`Killed`](ExitReason::Killed) |
//! | [`exit`] | ends the actor that calls it |
//! | [`NoKill`] | a stretch in which no exit signal ends the actor |
//!
//! An actor that a signal ends is unwound where it waits, yields or has a [point](crate::check) next: its destructors run. It is sticky: an unwinding
//! that was caught comes again. One that never reaches such a point is not ended; one in [`native`](crate::native) code not before it comes back. A
//! behaviour actor that handles no message ends at once.
//!
//! ```
//! use thalweg_runtime::{ExitReason, run, sleep, spawn};
//!
//! run(|| {
//!     let sleeper = spawn(|| sleep(std::time::Duration::from_secs(3600)));
//!     let pid = sleeper.pid();
//!     let monitor = pid.monitor();
//!     pid.kill().expect("it sleeps");
//!     assert!(matches!(monitor.wait().reason, ExitReason::Killed));
//!     assert!(pid.kill().is_err(), "it has ended");
//! });
//! ```

mod control;
mod kill_flag;
mod monitor;
mod pid;
mod reason;
mod signal;
mod watches;

use std::fmt;

use thalweg_queue::mpsc;

pub(crate) use self::control::{Control, Hears, Kind, Marked, Numbers, Reach, Reached, Watch};
pub(crate) use self::kill_flag::KillFlag;
pub use self::monitor::Monitor;
pub use self::pid::{NotAlive, Pid};
pub use self::reason::ExitReason;
pub use self::signal::Signal;
use crate::cancel::Cancelling;
use crate::id::ActorId;
use crate::{preempt, wait, worker};

/// The end of an actor that was monitored.
#[derive(Clone, Debug)]
pub struct Down {
    /// Whose.
    pub id: ActorId,
    /// Why; [`ExitReason::NoActor`]: it had ended before it was monitored.
    pub reason: ExitReason,
}

/// An exit signal that was trapped.
#[derive(Clone, Debug)]
pub struct Exit {
    /// Who ended, or sent it. `None`: a thread did.
    pub from: Option<ActorId>,
    /// Why.
    pub reason: ExitReason,
}

/// What an actor is unwound with that ends by its own will or by a signal.
pub(crate) struct Exiting(pub(crate) ExitReason);

/// Ends the actor that calls it, with this reason. Its destructors run.
///
/// ```
/// use thalweg_runtime::{ExitReason, JoinError, exit, run, spawn};
///
/// run(|| {
///     let ended = spawn(|| exit(ExitReason::from("no more work"))).join();
///     assert!(matches!(ended, Err(JoinError::Exit(reason)) if reason.to_string() == "no more work"));
/// });
/// ```
///
/// # Panics
/// If the caller is no actor, or is unwound already.
pub fn exit(reason: ExitReason) -> ! {
    assert!(wait::is_actor(), "exit is for actors");
    assert!(
        !std::thread::panicking(),
        "the actor ends already: {reason}"
    );
    std::panic::resume_unwind(Box::new(Exiting(reason)))
}

/// From now on exit signals to the caller, but for [`Pid::kill`], are messages here and do not end it, until this is dropped. A behaviour
/// actor rather has [`Context::trap_exits`](crate::Context::trap_exits), by which they are messages like others.
///
/// ```
/// use thalweg_runtime::{ExitReason, run, spawn, trap_exits};
///
/// run(|| {
///     let exits = trap_exits();
///     let child = spawn(|| panic!("no luck today"));
///     child.pid().link();
///     let exit = exits.recv().expect("it ends");
///     assert_eq!(exit.from, Some(child.id()));
///     assert!(matches!(exit.reason, ExitReason::Panic(panic) if panic.message() == Some("no luck today")));
/// });
/// ```
///
/// # Panics
/// If the caller is no actor.
pub fn trap_exits() -> mpsc::Receiver<Exit> {
    let me = Pid::current().expect("trap_exits is for actors");
    let (sender, receiver) = mpsc::unbounded();
    me.control().trap(sender);
    receiver
}

/// While it is there no exit signal ends the actor that made it, a kill neither; what came meanwhile ends it at its next wait or point after. They
/// nest. On a thread it does nothing.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use thalweg_runtime::{JoinError, NoKill, run, spawn, yield_now};
///
/// static SAVED: AtomicBool = AtomicBool::new(false);
///
/// run(|| {
///     let writer = spawn(|| {
///         {
///             let _whole = NoKill::new();
///             yield_now();
///             SAVED.store(true, Ordering::Relaxed);
///         }
///         loop {
///             yield_now();
///         }
///     });
///     yield_now();
///     writer.pid().kill().expect("it yields");
///     assert!(matches!(writer.join(), Err(JoinError::Exit(_))));
///     assert!(SAVED.load(Ordering::Relaxed));
/// });
/// ```
#[derive(Debug)]
#[must_use = "the stretch ends when this is dropped"]
pub struct NoKill {
    /// Made by an actor.
    counts: bool,
    of_one_thread: std::marker::PhantomData<*const ()>,
}

impl NoKill {
    /// Begins a stretch.
    #[expect(
        clippy::new_without_default,
        reason = "a guard that appears by default is one that nobody sees"
    )]
    pub fn new() -> Self {
        let running = worker::running();
        if let Some(task) = running {
            let masks = &task.header().masks;
            masks.set(masks.get() + 1);
        }
        Self {
            counts: running.is_some(),
            of_one_thread: std::marker::PhantomData,
        }
    }
}

impl Drop for NoKill {
    fn drop(&mut self) {
        if self.counts
            && let Some(task) = worker::running()
        {
            let masks = &task.header().masks;
            masks.set(masks.get() - 1);
        }
    }
}

/// Unwinds what runs here where a signal ends it or its scope is cancelled, and it can be: an unwind within an unwind would end the process, and frames
/// of another language may lie between.
#[cold]
pub(crate) fn raise_if_due() {
    let Some(task) = worker::running() else {
        return;
    };
    let can_be = !task.header().ending.get() && !std::thread::panicking() && !preempt::is_native();
    if !can_be || !task.is_interrupted() {
        return;
    }
    if task.must_unwind() {
        task.header().raised.set(true);
        std::panic::resume_unwind(Box::new(Exiting(task.exit_reason())));
    }
    std::panic::resume_unwind(Box::new(Cancelling));
}

/// Runs the destructors of who ends: as in an unwinding its waits end with an error if a signal ends it, and nothing is raised. `f` catches what
/// it throws.
pub(crate) fn ending<R>(f: impl FnOnce() -> R) -> R {
    let task = worker::running();
    let set = |ending| {
        if let Some(task) = task {
            task.header().ending.set(ending);
        }
    };
    set(true);
    let result = f();
    set(false);
    result
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            Some(id) => write!(f, "actor {id}: {}", self.reason),
            None => write!(f, "a thread: {}", self.reason),
        }
    }
}

impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "actor {} ended: {}", self.id, self.reason)
    }
}
