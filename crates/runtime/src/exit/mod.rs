//! How actors end and how others are notified: exit reasons, links, monitors, trapped exits and
//! kill, as in OTP.
//!
//! | | |
//! | --- | --- |
//! | [`Pid`] | identifies one incarnation of an actor of any kind; an operation on one that has ended returns an error |
//! | [`ExitReason`] | why an actor ended or is to end |
//! | [`Pid::link`] | links two actors: when one ends, the other receives an exit signal, unless the reason is [`Normal`](ExitReason::Normal) |
//! | [`Pid::monitor`] | reports one exit, once and in one direction; an actor can have any number of monitors |
//! | [`Pid::exit`] | sends an exit signal: the actor ends with this reason or, if it [traps exits](trap_exits), receives it as a message |
//! | [`Pid::kill`] | sends an exit signal that cannot be trapped; others see [`Killed`](ExitReason::Killed) |
//! | [`exit`] | ends the calling actor |
//! | [`NoKill`] | a section in which no exit signal ends the actor |
//!
//! A signal unwinds the actor at its next wait, yield or [preemption point](crate::check), so its
//! destructors run. If the unwinding is caught, it is raised again at the next such point. An actor
//! that never reaches one is not ended, and an actor in [`native`](crate::native) code only after
//! that code has returned. A behaviour actor that handles no message ends at once.
//!
//! ```
//! use thalweg_runtime::{ExitReason, run, sleep, spawn};
//!
//! run(|| {
//!     let sleeper = spawn(|| sleep(std::time::Duration::from_secs(3600)));
//!     let pid = sleeper.pid();
//!     let monitor = pid.monitor();
//!     pid.kill().expect("the actor sleeps");
//!     assert!(matches!(monitor.wait().reason, ExitReason::Killed));
//!     assert!(pid.kill().is_err(), "the actor has ended");
//! });
//! ```

mod monitor;
mod pid;
mod signal;

use thalweg_queue::mpsc;

pub use self::monitor::Monitor;
pub use self::pid::{NotAlive, Pid};
pub use self::signal::Signal;
use crate::control::Exit;
use crate::reason::{ExitReason, ExitUnwind};
use crate::{wait, worker};

/// Ends the calling actor with this reason. Its destructors run.
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
/// If the caller is not an actor, or is already unwinding.
pub fn exit(reason: ExitReason) -> ! {
    assert!(wait::is_actor(), "exit requires an actor");
    assert!(
        !std::thread::panicking(),
        "the actor is already unwinding: {reason}"
    );
    std::panic::resume_unwind(Box::new(ExitUnwind(reason)))
}

/// Traps exits: until the receiver is dropped, exit signals to the caller other than [`Pid::kill`]
/// are sent to it and do not end the actor. In a behaviour actor use
/// [`Context::trap_exits`](crate::Context::trap_exits), which delivers them like other messages.
///
/// ```
/// use thalweg_runtime::{ExitReason, run, spawn, trap_exits};
///
/// run(|| {
///     let exits = trap_exits();
///     let child = spawn(|| panic!("no luck today"));
///     child.pid().link();
///     let exit = exits.recv().expect("the child ends");
///     assert_eq!(exit.from, Some(child.id()));
///     assert!(matches!(exit.reason, ExitReason::Panic(panic) if panic.message() == Some("no luck today")));
/// });
/// ```
///
/// # Panics
/// If the caller is not an actor.
pub fn trap_exits() -> mpsc::Receiver<Exit> {
    let me = Pid::current().expect("trap_exits requires an actor");
    let (sender, receiver) = mpsc::unbounded();
    me.control().trap(sender);
    receiver
}

/// A guard: while it exists, no exit signal ends the actor that created it, not even a kill. A
/// signal that arrives meanwhile ends the actor at its next wait or preemption point after the
/// guard. Guards nest. On a thread, a guard has no effect.
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
///             let _guard = NoKill::new();
///             yield_now();
///             SAVED.store(true, Ordering::Relaxed);
///         }
///         loop {
///             yield_now();
///         }
///     });
///     yield_now();
///     writer.pid().kill().expect("the actor yields");
///     assert!(matches!(writer.join(), Err(JoinError::Exit(_))));
///     assert!(SAVED.load(Ordering::Relaxed));
/// });
/// ```
#[derive(Debug)]
#[must_use = "the section ends when this is dropped"]
pub struct NoKill {
    /// Whether an actor created it.
    is_actor: bool,
    of_one_thread: std::marker::PhantomData<*const ()>,
}

impl NoKill {
    /// Begins a section.
    #[expect(
        clippy::new_without_default,
        reason = "a guard from a default would be easy to overlook"
    )]
    pub fn new() -> Self {
        let running = worker::running();
        if let Some(task) = running {
            let masks = &task.header().masks;
            masks.set(masks.get() + 1);
        }
        Self {
            is_actor: running.is_some(),
            of_one_thread: std::marker::PhantomData,
        }
    }
}

impl Drop for NoKill {
    fn drop(&mut self) {
        if self.is_actor
            && let Some(task) = worker::running()
        {
            let masks = &task.header().masks;
            masks.set(masks.get() - 1);
        }
    }
}
