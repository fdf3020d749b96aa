//! What a runtime can be told, and why it may refuse to start.

mod describe;
mod profile;
mod settings;

use std::time::Duration;

pub use describe::{Description, Machine, Setting, Source, Value};
pub use profile::Profile;

use crate::{preempt, stall};

/// Settings of a runtime. The environment goes before what is set here, which goes before the default:
///
/// | field | variable | range |
/// | --- | --- | --- |
/// | `workers` | `THALWEG_WORKERS` | 1 to 64 |
/// | `stack_size` | `THALWEG_STACK_SIZE` | bytes, 64 KiB to 1 GiB |
/// | `max_stacks` | `THALWEG_MAX_STACKS` | one a worker to 1,048,576 |
/// | `timeslice` | `THALWEG_TIMESLICE` (`100us`, `1ms`) or `THALWEG_TIMESLICE_CYCLES` | 1 us to 1 s |
/// | `alloc_interval` | `THALWEG_ALLOC_INTERVAL` | 1 to 1,000,000 |
/// | `affinity` | `THALWEG_AFFINITY` | `on` (Linux) or `off` |
/// | `blocking_threads` | `THALWEG_BLOCKING_THREADS` | 1 to 32,768 |
/// | `stall` | `THALWEG_STALL` (`100ms`, `off`) | 1 ms to 1 h, or off |
/// | `inspect` | `THALWEG_INSPECT` | `on` or `off` |
/// | `shutdown_timeout` | `THALWEG_SHUTDOWN_TIMEOUT` (`500ms`, `30s`) | 0 s to 1 h |
/// | `report_overflow`, `note_panics` | | |
///
/// A variable that is set and empty, is not UTF-8, or is out of range is an error. [`describe`](Self::describe) says what holds and where it
/// came from. Fields and methods are two ways of saying the same:
///
/// ```
/// use std::time::Duration;
/// use thalweg_runtime::{Config, Profile};
///
/// let fields = Config { workers: 2, timeslice: Duration::from_micros(50), ..Config::default() };
/// assert_eq!(Config::exact(2).timeslice(Duration::from_micros(50)), fields);
/// assert_eq!(Config::profile(Profile::ManySleepers).workers(2), fields);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Threads that run actors, 1 to 64. Default: the processors that the process may use, by its affinity mask and its control group's quota.
    pub workers: usize,
    /// Bytes of address space for one stack, 64 KiB at least; memory is used as it is touched. Default: 1 MiB, which a
    /// regular expression's parser needs at its nesting limit in a debug build.
    pub stack_size: usize,
    /// Actors that may hold a stack at a time, each worker its share of them. One more that is
    /// spawned ends with [`JoinError::NoStack`](crate::JoinError::NoStack). A child of a supervisor
    /// and what [`Handle::spawn_queued`](crate::Handle::spawn_queued) spawns wait until a stack is
    /// returned. So do turns of behaviour actors, supervisors and services, for which each worker
    /// has 16 stacks more. Default: 1,048,576. Before Linux 6.13 each is two mappings, and there is
    /// an end at half of `vm.max_map_count`, which is 16,382 stacks where nobody changed it.
    pub max_stacks: usize,
    /// Whether an actor that overflows its stack is named on standard error before the process ends. It takes the handlers of SIGSEGV and
    /// SIGBUS, and hands on what is not its own. Default: `true`; [`Runtime::global`](crate::Runtime::global), which may live in
    /// another language's process, has it off.
    pub report_overflow: bool,
    /// Whether the process's panic hook notes down for an actor's [`Panic`](crate::Panic) where it was; the hook from before is asked all the
    /// same. Default: `true`; [`Runtime::global`](crate::Runtime::global) has it off.
    pub note_panics: bool,
    /// How long an actor runs while others wait, before [`check!`](crate::check), a send, a receive or, by choice, an allocation lets them.
    /// Default: 100 us.
    pub timeslice: Duration,
    /// Allocations of a worker from one point to the next, where the application has chosen
    /// [`preempting_allocator!`](crate::preempting_allocator). Default: 128: a look at the clock costs 25 ns, 0.2 ns an allocation.
    pub alloc_interval: u32,
    /// Whether worker i stays on the i-th processor, in turn, of those that the thread which starts the runtime may use. Linux only. Such a worker has one
    /// processor and does not spin before it sleeps. Default: `false`: a pinned worker waits for its processor although another one is free.
    pub affinity: bool,
    /// Threads of [`io::blocking`](crate::io::blocking), which are started as they are needed; more closures queue. Default: 512, as tokio: they wait
    /// for disks and resolvers, and share no processor.
    pub blocking_threads: usize,
    /// How long one turn of an actor may last before it is reported ([`stall`](crate::stall)): who it is, and where. `None`: nobody looks. Linux on x86-64
    /// and aarch64 only. Default: 100 ms where debug assertions are on, a thousand slices; else `None`; [`Runtime::global`](crate::Runtime::global) has
    /// `None`. Costs a thread that sleeps while the workers do, and in a report's moment the handler of SIGURG, where that has none.
    pub stall: Option<Duration>,
    /// Whether books are kept of each actor: behaviour actors at rest are in the [list](crate::inspect), with parent and slices, and the time on its worker is
    /// known of all. Costs two looks at the clock a slice, 50 ns, and for each behaviour actor a lock at its start and end and some 100 bytes. Default:
    /// `false`.
    pub inspect: bool,
    /// How long the actors may take to end when the runtime is dropped or [shut down](crate::Runtime::shutdown). What becomes of those that take longer is
    /// described at [`ShutdownError`](crate::ShutdownError). Default: 20 s, which is less than the 30 s that Kubernetes gives a container between SIGTERM
    /// and SIGKILL, so that the report comes before the end of the process.
    pub shutdown_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            workers: thalweg_queue::spin::processors().min(MOST_WORKERS),
            stack_size: 1 << 20,
            max_stacks: 1 << 20,
            report_overflow: true,
            note_panics: true,
            timeslice: Duration::from_micros(100),
            alloc_interval: 128,
            affinity: false,
            blocking_threads: 512,
            stall: (stall::IS_KNOWN && cfg!(debug_assertions))
                .then_some(Duration::from_millis(100)),
            inspect: false,
            shutdown_timeout: Duration::from_secs(20),
        }
    }
}

/// One bit each in the word of idle workers.
pub(crate) const MOST_WORKERS: usize = 64;

/// Why a runtime did not start.
#[derive(Debug)]
pub enum StartError {
    /// A setting is out of its range: which (the field, or the variable of the environment that it came from), the value, and what it must be.
    Setting(&'static str, String, &'static str),
    /// The system gave no thread.
    Thread(std::io::Error),
    /// The program is built with `panic = "abort"`. An actor is ended by unwinding it: by its own panic, a kill, a link, a cancellation, the end of its
    /// runtime. Queues, channels and [`sync`](crate::sync) among threads need no runtime.
    Abort,
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Setting(name, value, range) => write!(f, "{name} is {value}, it must be {range}"),
            Self::Thread(error) => write!(f, "the system has no thread for the runtime: {error}"),
            Self::Abort => f.write_str(
                "the program is built with panic = \"abort\", and actors are ended by unwinding: build it with panic = \"unwind\"",
            ),
        }
    }
}

impl std::error::Error for StartError {}

/// One method for each field. Nothing is checked before a runtime starts, or [`init`](crate::runtime::init).
impl Config {
    /// The default with so many workers.
    #[must_use]
    pub fn exact(workers: usize) -> Self {
        Self::default().workers(workers)
    }

    /// Sets [`workers`](Self#structfield.workers).
    #[must_use]
    pub fn workers(self, workers: usize) -> Self {
        Self { workers, ..self }
    }

    /// Sets [`stack_size`](Self#structfield.stack_size).
    #[must_use]
    pub fn stack_size(self, stack_size: usize) -> Self {
        Self { stack_size, ..self }
    }

    /// Sets [`max_stacks`](Self#structfield.max_stacks).
    #[must_use]
    pub fn max_stacks(self, max_stacks: usize) -> Self {
        Self { max_stacks, ..self }
    }

    /// Sets [`report_overflow`](Self#structfield.report_overflow).
    #[must_use]
    pub fn report_overflow(self, report_overflow: bool) -> Self {
        Self {
            report_overflow,
            ..self
        }
    }

    /// Sets [`note_panics`](Self#structfield.note_panics).
    #[must_use]
    pub fn note_panics(self, note_panics: bool) -> Self {
        Self {
            note_panics,
            ..self
        }
    }

    /// Sets [`timeslice`](Self#structfield.timeslice).
    #[must_use]
    pub fn timeslice(self, timeslice: Duration) -> Self {
        Self { timeslice, ..self }
    }

    /// Sets [`timeslice`](Self#structfield.timeslice) to what so many counts of [`preempt::rdtsc`] take on this machine, whose rate
    /// is measured at the first call ([`preempt::tsc_hz`]).
    ///
    /// ```
    /// use thalweg_runtime::{Config, preempt};
    ///
    /// let config = Config::default().timeslice_cycles(preempt::tsc_hz() / 10_000);
    /// assert!((99..=100).contains(&config.timeslice.as_micros()));
    /// ```
    #[must_use]
    pub fn timeslice_cycles(self, cycles: u64) -> Self {
        self.timeslice(preempt::duration_of(cycles))
    }

    /// Sets [`alloc_interval`](Self#structfield.alloc_interval).
    #[must_use]
    pub fn alloc_interval(self, alloc_interval: u32) -> Self {
        Self {
            alloc_interval,
            ..self
        }
    }

    /// Sets [`affinity`](Self#structfield.affinity).
    #[must_use]
    pub fn affinity(self, affinity: bool) -> Self {
        Self { affinity, ..self }
    }

    /// Sets [`blocking_threads`](Self#structfield.blocking_threads).
    #[must_use]
    pub fn blocking_threads(self, blocking_threads: usize) -> Self {
        Self {
            blocking_threads,
            ..self
        }
    }

    /// Sets [`stall`](Self#structfield.stall).
    #[must_use]
    pub fn stall(self, stall: impl Into<Option<Duration>>) -> Self {
        let stall = stall.into();
        Self { stall, ..self }
    }

    /// Sets [`inspect`](Self#structfield.inspect).
    #[must_use]
    pub fn inspect(self, inspect: bool) -> Self {
        Self { inspect, ..self }
    }

    /// Sets [`shutdown_timeout`](Self#structfield.shutdown_timeout).
    #[must_use]
    pub fn shutdown_timeout(self, shutdown_timeout: Duration) -> Self {
        Self {
            shutdown_timeout,
            ..self
        }
    }

    /// With what the environment says, and in range; in a program in which actors can be ended.
    pub(crate) fn checked(self) -> Result<Self, StartError> {
        if cfg!(panic = "abort") {
            return Err(StartError::Abort);
        }
        settings::resolve(self, &settings::environment).map(|(config, _)| config)
    }
}
