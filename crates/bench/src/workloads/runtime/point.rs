//! A point of measurement: the workers, the lifetime, the panic hook and the knobs.

use thalweg_runtime::runtime::{CheckedConfig, init};
use thalweg_runtime::{Config, Source};

use crate::cell::Cell;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::placement::allowed;
use crate::problem::Problem;
use crate::workloads::{Knob, Workload};

/// Whether the runtime's start and stop are timed.
pub const LIFETIME: Knob = Knob {
    name: "lifetime",
    default: "cold,warm",
    what: "cold: including the runtime's start and stop, warm: without, as a list",
};

/// The number of threads that run actors.
pub const WORKERS: Knob = Knob {
    name: "workers",
    default: "1,2",
    what: "threads that run actors, as a list; 1 is measured against tokio's current_thread; `each`: 1, 2, 4 .. all processors",
};

/// The drivers that tokio runs between tasks.
pub const DRIVERS: Knob = Knob {
    name: "drivers",
    default: "time",
    what: "the drivers that tokio runs between tasks, time or all, as a list; targets apply to time",
};

/// The panic hook.
pub const HOOK: Knob = Knob {
    name: "hook",
    default: "silent",
    what: "the panic hook: silent, or default with standard error to /dev/null, as a list",
};

/// The knobs of our runtime. It reads those that begin with `THALWEG_` from the environment itself.
pub const OWN: [Knob; 3] = [
    Knob {
        name: "THALWEG_TIMESLICE",
        default: "100us",
        what: "our runtime's: how long an actor may run while others wait, with its unit",
    },
    Knob {
        name: "THALWEG_ALLOC_INTERVAL",
        default: "128",
        what: "our runtime's: allocations between two preemption points, with allocator=preempting",
    },
    ALLOCATOR,
];

/// The allocator of both sides.
pub const ALLOCATOR: Knob = Knob {
    name: "allocator",
    default: "system",
    what: "system, or preempting: the system's with our runtime's preemption points, in a separate program, as a list",
};

/// A value of [`ALLOCATOR`].
pub const PREEMPTING: &str = "preempting";

/// The knobs of a usual workload: those of its point, and its own sizes as (name, default, what).
macro_rules! knobs {
    ($(($name:literal, $default:literal, $what:literal)),*) => {
        &[
            $crate::workloads::runtime::point::LIFETIME,
            $crate::workloads::runtime::point::WORKERS,
            $crate::workloads::runtime::point::DRIVERS,
            $crate::workloads::runtime::point::HOOK,
            $crate::workloads::runtime::point::OWN[0],
            $crate::workloads::runtime::point::OWN[1],
            $crate::workloads::runtime::point::OWN[2],
            $($crate::workloads::Knob {
                name: $name,
                default: $default,
                what: $what,
            }),*
        ]
    };
}
pub(crate) use knobs;

/// A knob value that is short for several: see [`WORKERS`].
pub const EACH: &str = "each";

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Whether the time includes start and stop.
    pub cold: bool,
    /// Threads that run actors.
    pub workers: usize,
    /// Whether tokio also drives sockets.
    pub io: bool,
    /// Whether panics are not printed.
    pub silent: bool,
}

impl Point {
    /// The point of `cell`.
    ///
    /// # Errors
    /// A parameter is missing, or a value is not allowed.
    pub fn of(cell: &Cell) -> Result<Self, Problem> {
        either(cell, ALLOCATOR.name, PREEMPTING, "system")?;
        Ok(Self {
            cold: either(cell, LIFETIME.name, "cold", "warm")?,
            workers: cell.number(WORKERS.name)? as usize,
            io: either(cell, DRIVERS.name, "all", "time")?,
            silent: either(cell, HOOK.name, "silent", "default")?,
        })
    }

    /// The peer.
    #[must_use]
    pub fn peer(self) -> &'static str {
        match self.workers {
            1 => "tokio_current_thread",
            _ => "tokio_multi_thread",
        }
    }

    /// Our runtime, before it has anything to run.
    ///
    /// # Errors
    /// The error that the runtime reports.
    pub fn ready(self) -> Result<CheckedConfig, Problem> {
        // Disables stall detection: a machine that is slow for a moment is not a stall to report.
        init(Config::with_workers(self.workers).stall(None))
            .map_err(|error| Problem::NotReady(error.to_string()))
    }

    /// Checks that the environment configures our runtime only through our recorded knobs: any
    /// other variable would change figures without a trace in the result.
    ///
    /// # Errors
    /// Another variable is set, or a knob has an invalid value.
    pub fn check_environment(self) -> Result<(), Problem> {
        let described = Config::with_workers(self.workers)
            .describe()
            .map_err(|error| Problem::Usage(error.to_string()))?;
        let mut heard = described.settings.iter().filter_map(|setting| {
            let variable = setting.variable?;
            let ours = OWN.iter().any(|knob| knob.name == variable);
            (setting.source == Source::Environment && !ours).then_some(variable)
        });
        match heard.next() {
            None => Ok(()),
            Some(variable) => Err(Problem::Usage(format!(
                "{variable} is set, and no knob of these workloads: a result would not say so"
            ))),
        }
    }

    /// Whether a target applies: no panic is printed, and tokio drives only what our runtime
    /// drives.
    #[must_use]
    pub fn is_barred(self) -> bool {
        self.silent && !self.io
    }

    /// A limit of the ratio for one worker and another for two; none for more, or if [no target
    /// applies](Self::is_barred).
    #[must_use]
    pub fn bars(self, one: f64, two: f64) -> Option<Target> {
        match self.workers {
            1 => Some(Target::Ratio(one)),
            2 => Some(Target::Ratio(two)),
            _ => None,
        }
        .filter(|_| self.is_barred())
    }
}

/// Whether the parameter `name` of `cell` is `yes`.
///
/// # Errors
/// It is neither `yes` nor `no`.
pub fn either(cell: &Cell, name: &str, yes: &str, no: &str) -> Result<bool, Problem> {
    match cell.text(name)? {
        text if text == yes => Ok(true),
        text if text == no => Ok(false),
        other => Err(Problem::Usage(format!(
            "{name} is {yes} or {no}, not `{other}`"
        ))),
    }
}

/// A cell for each combination of the values that the knobs of `workload` list, without its
/// subjects. A knob is a parameter; the knobs of our runtime are variables of the cell's
/// environment.
#[must_use]
pub fn points(lab: &Lab, workload: &Workload) -> Vec<Cell> {
    let mut cells = vec![Cell::new(workload.name, &[], &[])];
    for knob in workload.knobs {
        if knob.name.starts_with("THALWEG_") {
            for cell in &mut cells {
                cell.environment
                    .insert(knob.name.to_owned(), lab.knob(knob));
            }
            continue;
        }
        let values = values(&lab.knob(knob), allowed().len());
        cells = cells
            .iter()
            .flat_map(|cell| {
                values.iter().map(|value| {
                    let mut cell = cell.clone();
                    cell.params.insert(knob.name.to_owned(), value.clone());
                    cell
                })
            })
            .collect();
    }
    cells
}

/// The values in a list; [`EACH`] means the powers of two below `processors`, and `processors`.
fn values(text: &str, processors: usize) -> Vec<String> {
    if text == EACH {
        let powers = (0..).map(|power| 1 << power);
        return powers
            .take_while(|workers| *workers < processors)
            .chain([processors])
            .map(|workers| workers.to_string())
            .collect();
    }
    let words = text.split(',').map(str::trim);
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}
