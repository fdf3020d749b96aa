//! What is reported, and to whom.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thalweg_queue::quiet::lock;

use crate::id::ActorId;

/// A turn that lasted longer than [`Config::stall`](crate::Config::stall), and perhaps still does. Its text is what goes to standard error.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stall {
    /// The worker's number, as in its thread's name: `tw-worker-0`.
    pub worker: usize,
    /// Who has the turn. `None`: nobody, it is the worker itself that does not come on.
    pub actor: Option<ActorId>,
    /// What the actor is called, as far as the first 128 bytes go. `None`: it has no name, or there are no frames either.
    pub name: Option<String>,
    /// How long the watcher has seen the turn, so it is a quarter of the limit older at most; without the time that the thread waited for a processor.
    pub lasted: Duration,
    /// Where it is, innermost first: as much as 64 KiB of stack show; inlined functions as frames of their own. Or why that is not known.
    pub frames: Result<Vec<Frame>, NoFrames>,
    /// Stalls since the last report that were not reported: there are five in a minute.
    pub left_out: u32,
}

/// A function that is being executed, or waits for the one before it in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// The instruction that comes next, or that it comes back to.
    pub address: usize,
    /// Demangled, without the hash. `None`: the program or library has no symbol there.
    pub function: Option<String>,
    /// The place in the source, where there is debug information.
    pub file: Option<PathBuf>,
    /// From 1.
    pub line: Option<u32>,
}

/// Why a report has no frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoFrames {
    /// The application handles SIGURG itself, and keeps it.
    SignalTaken,
    /// The thread did not answer, three times, within a second: it is in the kernel and cannot be interrupted, or gets no processor.
    NoAnswer,
    /// The turn was over before it could be asked.
    Over,
    /// The system does not let its signals be handled: the error's number.
    System(i32),
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.actor {
            Some(actor) => write!(f, "actor {actor}")?,
            None => f.write_str("no actor but the worker itself")?,
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
            1 => f.write_str("\n      one stall before it was not reported"),
            more => write!(f, "\n      {more} stalls before it were not reported"),
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
                "where it is, is not known: the application handles SIGURG itself, by which it would be asked",
            ),
            Self::NoAnswer => f.write_str("where it is, is not known: its thread did not answer"),
            Self::Over => f.write_str("it was over before it was asked where it is"),
            Self::System(error) => write!(
                f,
                "where it is, is not known: {}",
                std::io::Error::from_raw_os_error(*error)
            ),
        }
    }
}

impl std::error::Error for NoFrames {}

/// Who hears of stalls.
type Hook = Arc<dyn Fn(&Stall) + Send + Sync>;

static HOOK: std::sync::Mutex<Option<Hook>> = std::sync::Mutex::new(None);

/// From now on `hook` gets the stalls of all runtimes of the process, and standard error does not. It is called on the watcher's thread, to whose
/// runtime's end it must not wait: that waits for the call. A panic of it ends that call alone.
///
/// ```
/// use std::time::Duration;
/// use thalweg_runtime::{Config, runtime, stall};
///
/// stall::set_hook(|stall| eprintln!("{:?} is slow: {:?}", stall.name, stall.frames));
/// runtime::init(Config::exact(1).stall(Duration::from_millis(50)))?.run(|| ());
/// stall::take_hook();
/// # Ok::<(), thalweg_runtime::StartError>(())
/// ```
pub fn set_hook(hook: impl Fn(&Stall) + Send + Sync + 'static) {
    let before = lock(&HOOK).replace(Arc::new(hook));
    drop(before);
}

/// From now on stalls go to standard error again. Whether there was a hook.
pub fn take_hook() -> bool {
    let before = lock(&HOOK).take();
    before.is_some()
}

/// Tells whoever is to hear.
#[cfg_attr(
    not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(any(miri, loom, thalweg_threads))
    )),
    expect(dead_code, reason = "nobody watches here")
)]
pub(super) fn report(stall: &Stall) {
    let hook = lock(&HOOK).clone();
    match hook {
        Some(hook) => {
            let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hook(stall)));
            // The process's panic hook has had its say.
            drop(told);
        }
        None => eprintln!("thalweg: {stall}"),
    }
}
