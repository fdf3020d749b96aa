//! The contents of a stall report, and the hook that receives it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thalweg_queue::no_preempt::lock;

use crate::id::ActorId;
use crate::log::{self, Level};

/// A run of an actor that lasted longer than [`Config::stall`](crate::Config::stall), and may still
/// be in progress. Its `Display` text is the message on standard error.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stall {
    /// The worker's number, as in its thread's name: `tw-worker-0`.
    pub worker: usize,
    /// The running actor. `None` if no actor runs, and the worker itself is stalled.
    pub actor: Option<ActorId>,
    /// The actor's name, up to the first 128 bytes. `None` if it has no name, or if there are no
    /// frames.
    pub name: Option<String>,
    /// How long the watcher has observed the run. The run is older by at most a quarter of the
    /// limit. Time that the thread waited for a processor is not included.
    pub lasted: Duration,
    /// The frames, innermost first, as far as 64 KiB of stack show them. Inlined functions are
    /// separate frames. Or the reason why there are no frames.
    pub frames: Result<Vec<Frame>, NoFrames>,
    /// The number of stalls since the last report that were not reported. There are at most five
    /// reports per minute.
    pub left_out: u32,
}

/// A function in the call stack.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// The address of the next instruction, or the return address.
    pub address: usize,
    /// The demangled name, without the hash. `None` if the program or library has no symbol there.
    pub function: Option<String>,
    /// The source file, if there is debug information.
    pub file: Option<PathBuf>,
    /// The line, counted from 1.
    pub line: Option<u32>,
}

/// Why a report has no frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoFrames {
    /// The application has a handler for SIGURG, which stays installed.
    SignalTaken,
    /// The thread did not respond within a second, in three attempts. It is in an uninterruptible
    /// system call, or gets no processor.
    NoAnswer,
    /// The run ended before it could be sampled.
    Over,
    /// The system refused a signal handler. This is the error number.
    System(i32),
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.actor {
            Some(actor) => write!(f, "actor {actor}")?,
            None => f.write_str("no actor, but the worker itself,")?,
        }
        if let Some(name) = &self.name {
            write!(f, " ({name})")?;
        }
        let (worker, ms) = (self.worker, self.lasted.as_millis());
        write!(f, " has kept worker {worker} for {ms} ms")?;
        match &self.frames {
            Ok(frames) => {
                f.write_str(":")?;
                for (nth, frame) in frames.iter().enumerate() {
                    write!(f, "\n{nth:4}: {frame}")?;
                }
            }
            Err(why) => write!(f, "; {why}")?,
        }
        match self.left_out {
            0 => Ok(()),
            1 => f.write_str("\n      one earlier stall was not reported"),
            more => write!(f, "\n      {more} earlier stalls were not reported"),
        }
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.function {
            Some(function) => f.write_str(function)?,
            None => write!(f, "{:#x}", self.address)?,
        }
        if let Some(file) = &self.file {
            write!(f, "\n      at {}", file.display())?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for NoFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SignalTaken => f.write_str(
                "no call stack: the application has a handler for SIGURG, which this report needs",
            ),
            Self::NoAnswer => f.write_str("no call stack: the thread did not respond"),
            Self::Over => f.write_str("no call stack: the run ended before it was sampled"),
            Self::System(error) => write!(
                f,
                "no call stack: {}",
                std::io::Error::from_raw_os_error(*error)
            ),
        }
    }
}

impl std::error::Error for NoFrames {}

/// Receives stall reports.
type Hook = Arc<dyn Fn(&Stall) + Send + Sync>;

static HOOK: std::sync::Mutex<Option<Hook>> = std::sync::Mutex::new(None);

/// Installs a hook that receives the stall reports of all runtimes of the process, instead of the
/// [log](crate::log) or standard error. It is called on the watcher's thread. It must not wait for the end of its
/// runtime, because that waits for the hook. A panic of the hook ends only that call.
///
/// ```
/// use std::time::Duration;
/// use thalweg_runtime::{Config, runtime, stall};
///
/// stall::set_hook(|stall| eprintln!("{:?} is slow: {:?}", stall.name, stall.frames));
/// runtime::init(Config::with_workers(1).stall(Duration::from_millis(50)))?.run(|| ());
/// stall::take_hook();
/// # Ok::<(), thalweg_runtime::StartError>(())
/// ```
pub fn set_hook(hook: impl Fn(&Stall) + Send + Sync + 'static) {
    let before = lock(&HOOK).replace(Arc::new(hook));
    drop(before);
}

/// Removes the hook, so that reports go to the log or standard error again. Returns whether there
/// was a hook.
pub fn take_hook() -> bool {
    let before = lock(&HOOK).take();
    before.is_some()
}

/// Passes a report to the hook, or to the log or standard error.
#[cfg_attr(
    not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(any(miri, loom, thalweg_threads))
    )),
    expect(dead_code, reason = "there is no watcher here")
)]
pub(super) fn report(stall: &Stall) {
    let hook = lock(&HOOK).clone();
    match hook {
        Some(hook) => {
            let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hook(stall)));
            // The process's panic hook has already been called.
            drop(told);
        }
        None => log::report(Level::Warning, "stall", format_args!("{stall}")),
    }
}
