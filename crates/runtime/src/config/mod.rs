//! The configuration of a runtime, and the errors of its start.

mod describe;
mod profile;
mod settings;

use std::time::Duration;

pub use describe::{Description, Machine, Setting, Source, Value};
pub use profile::Profile;

use crate::{stall, tsc};

/// The settings of a runtime. Environment variables take precedence over the values that are set
/// here, and these over the defaults.
///
/// By default a runtime that is started with `init(Config::default())` or
/// [`Runtime::start`](crate::Runtime::start) has one worker per processor. [`run`](crate::run) has
/// one worker; to use several, call `init(config)?.run(main)` ([`init`](crate::init)).
///
/// | field | variable | range |
/// | --- | --- | --- |
/// | `workers` | `THALWEG_WORKERS` | 1 to 64 |
/// | `stack_size` | `THALWEG_STACK_SIZE` | bytes, 64 KiB to 1 GiB |
/// | `max_stacks` | `THALWEG_MAX_STACKS` | one per worker to 1,048,576 |
/// | `timeslice` | `THALWEG_TIMESLICE` (`100us`, `1ms`) or `THALWEG_TIMESLICE_CYCLES` | 1 us to 1 s |
/// | `alloc_interval` | `THALWEG_ALLOC_INTERVAL` | 1 to 1,000,000 |
/// | `affinity` | `THALWEG_AFFINITY` | `on` (Linux) or `off` |
/// | `blocking_threads` | `THALWEG_BLOCKING_THREADS` | 1 to 32,768 |
/// | `stall` | `THALWEG_STALL` (`100ms`, `off`) | 1 ms to 1 h, or off |
/// | `inspect` | `THALWEG_INSPECT` | `on` or `off` |
/// | `shutdown_timeout` | `THALWEG_SHUTDOWN_TIMEOUT` (`500ms`, `30s`) | 0 s to 1 h |
/// | `report_overflow`, `note_panics` | | |
///
/// It is an error if a variable is empty, is not UTF-8, or is out of range.
/// [`describe`](Self::describe) returns the effective settings and the source of each. You can set
/// fields, or call the methods of the same names:
///
/// ```
/// use std::time::Duration;
/// use thalweg_runtime::{Config, Profile};
///
/// let fields = Config { workers: 2, timeslice: Duration::from_micros(50), ..Config::default() };
/// assert_eq!(Config::with_workers(2).timeslice(Duration::from_micros(50)), fields);
/// assert_eq!(Config::profile(Profile::ManySleepers).workers(2), fields);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The number of threads that run actors, 1 to 64. Default: the number of processors that the
    /// process may use, by its affinity mask and its control group's quota.
    ///
    /// An actor that blocks its thread stops all started actors of its worker: see
    /// [`run`](crate::run#calls-that-block-the-thread).
    pub workers: usize,
    /// The address space of one stack in bytes, at least 64 KiB. Memory is used only when it is
    /// touched. Default: 1 MiB, which a regular expression parser needs at its nesting limit in a
    /// debug build.
    pub stack_size: usize,
    /// The maximum number of actors that have a stack at the same time. Each worker has an equal
    /// share. An actor that is spawned beyond the limit ends with
    /// [`JoinError::NoStack`](crate::JoinError::NoStack). A child of a supervisor, and an actor
    /// that was spawned by [`Handle::spawn_queued`](crate::Handle::spawn_queued), wait until a
    /// stack is returned. So do turns of behaviour actors, supervisors and services, for which each
    /// worker has 16 additional stacks. Default: 1,048,576. Before Linux 6.13, each stack needs two
    /// mappings, and all stacks together may use half of `vm.max_map_count`; with its default value
    /// that is 16,382 stacks.
    pub max_stacks: usize,
    /// Whether an actor that overflows its stack is named on standard error before the process
    /// ends. This installs handlers for SIGSEGV and SIGBUS, which forward signals with other
    /// causes. Default: `true`. It is off in [`Runtime::global`](crate::Runtime::global), which may
    /// be part of another language's process.
    pub report_overflow: bool,
    /// Whether a panic hook records the location of an actor's [`Panic`](crate::Panic). The hook
    /// calls the previous hook. Default: `true`. It is off in
    /// [`Runtime::global`](crate::Runtime::global).
    pub note_panics: bool,
    /// How long an actor may run while other tasks wait. It then yields at the next
    /// [`check!`](crate::check), send or receive, or, if enabled, allocation. Default: 100 us.
    pub timeslice: Duration,
    /// The number of allocations of a worker between two preemption points, if the application uses
    /// [`preempting_allocator!`](crate::preempting_allocator). Default: 128. A clock reading costs
    /// 25 ns, so that is 0.2 ns per allocation.
    pub alloc_interval: u32,
    /// Whether workers are pinned to processors. Worker i is pinned to the i-th processor (modulo
    /// their number) that the thread which starts the runtime may use. Linux only. A pinned worker
    /// does not spin before it sleeps. Default: `false`, because a pinned worker waits for its
    /// processor although another one is idle.
    pub affinity: bool,
    /// The maximum number of threads of [`io::blocking`](crate::io::blocking). They are started
    /// when they are needed; further closures are queued. Default: 512, as in tokio: these threads
    /// wait for disks and resolvers and do not compete for processors.
    pub blocking_threads: usize,
    /// How long an actor may run without yielding before it is reported ([`stall`](crate::stall)),
    /// with its call stack. `None`: stalls are not reported. Requires Linux on x86-64 or aarch64.
    /// Default: 100 ms (a thousand time slices) if debug assertions are enabled, otherwise `None`.
    /// [`Runtime::global`](crate::Runtime::global) has `None`. It costs a thread that sleeps while
    /// the workers sleep, and, from the first report, the handler of SIGURG, if there is none.
    pub stall: Option<Duration>,
    /// Whether statistics of each actor are recorded: the [list](crate::inspect) then includes idle
    /// behaviour actors, with parent and slices, and the time that each actor has used its worker.
    /// It costs two clock readings per slice (50 ns), and for each behaviour actor a lock at its
    /// start and end and about 100 bytes. Default: `false`.
    pub inspect: bool,
    /// How long the actors may take to end when the runtime is dropped or [shut
    /// down](crate::Runtime::shutdown). [`ShutdownError`](crate::ShutdownError) describes what
    /// happens to actors that take longer. Default: 20 s. That is less than the 30 s that
    /// Kubernetes gives a container between SIGTERM and SIGKILL, so the report is written before
    /// the process is killed.
    pub shutdown_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            workers: thalweg_queue::spin::processors().min(MAX_WORKERS),
            stack_size: 1 << 20,
            max_stacks: 1 << 20,
            report_overflow: true,
            note_panics: true,
            timeslice: Duration::from_micros(100),
            alloc_interval: 128,
            affinity: false,
            blocking_threads: 512,
            stall: (stall::IS_SUPPORTED && cfg!(debug_assertions))
                .then_some(Duration::from_millis(100)),
            inspect: false,
            shutdown_timeout: Duration::from_secs(20),
        }
    }
}

/// The word of idle workers has one bit per worker.
pub(crate) const MAX_WORKERS: usize = 64;

/// Why a runtime could not be started.
#[derive(Debug)]
pub enum StartError {
    /// A setting is out of range. The values are its name (the field, or the environment variable
    /// from which it came), its value, and the permitted range.
    Setting(&'static str, String, &'static str),
    /// The system refused a thread.
    Thread(std::io::Error),
    /// The program is built with `panic = "abort"`. Actors are ended by unwinding: after a panic, a
    /// kill, the end of a link, a cancellation, or the end of the runtime. Queues, channels and
    /// [`sync`](crate::sync) between threads need no runtime and work.
    Abort,
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Setting(name, value, range) => write!(f, "{name} is {value}, it must be {range}"),
            Self::Thread(error) => write!(f, "the system has no thread for the runtime: {error}"),
            Self::Abort => f.write_str(
                "the program is built with panic = \"abort\", but actors are ended by unwinding: build it with panic = \"unwind\"",
            ),
        }
    }
}

impl std::error::Error for StartError {}

/// One method per field. The values are checked when a runtime is started or
/// [`init`](crate::runtime::init) is called.
impl Config {
    /// Returns the default configuration with this number of workers.
    #[must_use]
    pub fn with_workers(workers: usize) -> Self {
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

    /// Sets [`timeslice`](Self#structfield.timeslice) to the duration of this many counts of
    /// [`preempt::rdtsc`](crate::preempt::rdtsc). The rate of the counter is measured at the first
    /// call ([`preempt::tsc_hz`](crate::preempt::tsc_hz)).
    ///
    /// ```
    /// use thalweg_runtime::{Config, preempt};
    ///
    /// let config = Config::default().timeslice_cycles(preempt::tsc_hz() / 10_000);
    /// assert!((99..=100).contains(&config.timeslice.as_micros()));
    /// ```
    #[must_use]
    pub fn timeslice_cycles(self, cycles: u64) -> Self {
        self.timeslice(tsc::duration_of(cycles))
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

    /// Applies the environment and checks the result. Also checks that actors can be unwound in
    /// this program.
    pub(crate) fn checked(self) -> Result<Self, StartError> {
        if cfg!(panic = "abort") {
            return Err(StartError::Abort);
        }
        settings::resolve(self, &settings::environment).map(|(config, _)| config)
    }
}
