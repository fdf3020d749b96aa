//! `search_overhead`: the extra cost of a search through Thalweg compared with calling the same
//! search directly.
//!
//! Both sides use the same walker on the same workers and read the same lines. The direct side's
//! sink is a closure that counts on the workers, where it is called. Thalweg's sink is a stream
//! that this thread reads in batches. The difference between the two is the call, the stream, and
//! the second thread that reads it.
//!
//! The programs in C and Python do the same through the library; they are compared with the Rust
//! client's sample of the same round. A round is direct, Rust, C, Python, asyncio; the next round
//! goes backwards. Each sample has the same number of searches: as many as the direct side
//! completes in a second. Rounds during which the machine's speed drifts are repeated (module `steady`).

mod client;
mod direct;
mod steady;

use std::cell::RefCell;
use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::cell::{Cell, Sample};
use crate::child::HostProgram;
use crate::hosts;
use crate::interleave::{Plan, Side};
use crate::judgement::Target;
use crate::lab::Lab;
use crate::placement::Placement;
use crate::problem::Problem;
use crate::processes::{self, CellProcess, PROCESSES, Process};
use crate::report::{Metrics, Row};
use crate::statistics::Samples;
use crate::workloads::Workload;

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "search_overhead",
    group: "boundary",
    what: "A search of real files through Thalweg against the same walker called directly.",
    source: "ripgrep's libraries, offered to other languages: the cost of the boundary in a real program",
    peers: &["direct", "rust"],
    seconds: 320,
    run,
    cells: Some(open),
    ..Workload::USUAL
};

/// Pairs of each side.
const PAIRS: usize = 21;

/// A side beside the direct one.
#[derive(Clone, Copy)]
struct Host {
    name: &'static str,
    language: &'static str,
    mode: &'static str,
    /// The peer, and its place among the sides.
    peer: (&'static str, usize),
    /// The limit of the ratio.
    bar: f64,
}

impl Host {
    const fn new(name: &'static str, language: &'static str, mode: &'static str) -> Self {
        Self {
            name,
            language,
            mode,
            peer: ("rust", 1),
            bar: 1.3,
        }
    }
}

const HOSTS: [Host; 4] = [
    Host {
        peer: ("direct", 0),
        bar: 1.05,
        ..Host::new("rust", "rust", "blocking")
    },
    Host::new("c", "c", "blocking"),
    Host::new("python", "python", "sync"),
    Host::new("asyncio", "python", "asyncio"),
];

/// The minimum duration of every sample.
const SAMPLE: Duration = Duration::from_secs(1);
/// The same in a quick run.
const QUICK_SAMPLE: Duration = Duration::from_millis(100);

/// Number of trial searches; the fastest is used to plan a sample.
const TRIALS: usize = 5;

/// A sample is planned this much longer, so that even an unusually fast one lasts long enough.
const MARGIN: f64 = 1.15;

/// The search pattern.
struct Subject {
    /// Its name in `params`.
    density: &'static str,
    pattern: &'static str,
    /// Whether the targets apply: they are for a search, not for a dump of every line.
    judged: bool,
}

const SUBJECTS: [Subject; 2] = [
    // The same as in `make run`: a match in every few files.
    Subject {
        density: "usual",
        pattern: "unsafe",
        judged: true,
    },
    // More than half of all lines: nearly a copy of the tree through the stream.
    Subject {
        density: "dense",
        pattern: "e",
        judged: false,
    },
];

/// The result of one search. All hosts must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Lines that matched.
    pub matches: u64,
    /// Sum of their line numbers.
    pub lines: u64,
}

/// The searched tree, and its name in a result, without its path.
struct Tree {
    path: PathBuf,
    label: String,
}

impl Tree {
    /// Finds the tree: `THALWEG_BENCH_DIR`, else the sources that cargo fetched for this build.
    fn find() -> Result<Self, Problem> {
        if let Some(path) = env::var_os("THALWEG_BENCH_DIR").map(PathBuf::from) {
            let label = path
                .file_name()
                .unwrap_or(path.as_os_str())
                .to_string_lossy()
                .into_owned();
            return Ok(Self { path, label });
        }
        let cargo_home = env::var_os("CARGO_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
        let sources = cargo_home.map(|home| home.join("registry/src"));
        match sources.filter(|path| path.is_dir()) {
            Some(path) => Ok(Self {
                path,
                label: "cargo's registry/src".to_owned(),
            }),
            None => Err(Problem::NotReady(
                "cargo's registry/src is not there: name a directory in THALWEG_BENCH_DIR"
                    .to_owned(),
            )),
        }
    }
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let tree = Tree::find()?;
    lab.peers.insert(
        "direct".to_owned(),
        "thalweg-search's walker, called as a function".to_owned(),
    );
    lab.peers
        .insert("rust".to_owned(), "Thalweg's own client in Rust".to_owned());
    lab.knobs
        .insert("THALWEG_BENCH_DIR".to_owned(), tree.label.clone());
    let mut rows = Vec::new();
    for subject in &SUBJECTS {
        rows.extend(measure(lab, &tree, subject)?);
    }
    Ok(rows)
}

/// Starts the program of another language.
fn program(language: &'static str, tree: &Tree, pattern: &str) -> Result<HostProgram, Problem> {
    let python = |mode| {
        let mut command = hosts::python_program("search_host.py");
        command.arg(mode);
        command
    };
    let mut command = match language {
        "c" => Command::new(hosts::c_program("search_host")?),
        "python" => python("sync"),
        _ => python("asyncio"),
    };
    command
        .arg(hosts::library("thalweg-search")?)
        .arg(pattern)
        .arg(&tree.path);
    HostProgram::start(language, command, Placement::Free)
}

/// The answer of a program.
#[derive(Deserialize)]
struct Answer {
    ns: u64,
    matches: u64,
    lines: u64,
}

/// The sides of one process: direct, Rust, C, Python, asyncio.
fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let tree = Tree::find()?;
    let pattern = cell.text("pattern")?;
    let times = cell.number("searches")?;
    let known = Found {
        matches: cell.number("matches")?,
        lines: cell.number("lines")?,
    };
    let agree = move |subject: &str, found: Found| match found == known {
        true => Ok(()),
        false => Err(Problem::Check(format!(
            "{subject} found {found:?}, the direct search {known:?}"
        ))),
    };
    let here = |subject: &'static str, search: Box<dyn Fn() -> Result<Found, Problem>>| {
        Side::new(move || {
            let began = Instant::now();
            for _ in 0..times {
                agree(subject, search()?)?;
            }
            Ok(Sample::of(began.elapsed(), times))
        })
    };
    let side = |name: &String| {
        let language = match name.as_str() {
            "direct" => {
                let direct = direct::Direct::new(pattern, &tree.path)?;
                return Ok(here("direct", Box::new(move || direct.search())));
            }
            "rust" => {
                let rust = client::Client::open(pattern, &tree.path)?;
                return Ok(here("rust", Box::new(move || rust.search())));
            }
            "c" => "c",
            "python" => "python",
            "asyncio" => "asyncio",
            other => {
                return Err(Problem::Usage(format!("`{other}` is no subject here")));
            }
        };
        let mut program = program(language, &tree, pattern)?;
        Ok(Side::new(move || {
            let answer: Answer = program.ask(&format!("search {times}"))?;
            let Answer { ns, matches, lines } = answer;
            agree(language, Found { matches, lines })?;
            Ok(Sample::of(Duration::from_nanos(ns), times))
        }))
    };
    cell.subjects.iter().map(side).collect()
}

fn measure(lab: &Lab, tree: &Tree, subject: &Subject) -> Result<Vec<Row>, Problem> {
    let direct = direct::Direct::new(subject.pattern, &tree.path)?;
    // The first search warms the file cache; the fastest of the next ones determines the number per
    // sample.
    let known = direct.search()?;
    let mut once = Duration::MAX;
    for _ in 0..TRIALS {
        let began = Instant::now();
        direct.search()?;
        once = once.min(began.elapsed());
    }
    let wanted = if lab.quick() { QUICK_SAMPLE } else { SAMPLE };
    let times = (wanted.as_secs_f64() * MARGIN / once.as_secs_f64())
        .ceil()
        .max(1.0) as u64;
    let (matches, searches) = (known.matches.to_string(), times.to_string());
    let params = [
        ("density", subject.density),
        ("pattern", subject.pattern),
        ("matches", &matches),
        ("searches", &searches),
        ("lines", &known.lines.to_string()),
    ];
    let names: Vec<&str> = ["direct"]
        .into_iter()
        .chain(HOSTS.map(|host| host.name))
        .collect();
    let cell = Cell::new(WORKLOAD.name, &params, &names);

    let plan = lab.plan(Some(PAIRS));
    let shares = processes::shares(plan.rounds, PROCESSES);
    let warm_ups = plan.warm_up * shares.len();
    let title = format!("search_overhead {}", subject.density);
    lab.begin(&title, names.len() * (warm_ups + plan.rounds));
    let mut taken: Vec<Samples<f64>> = names.iter().map(|_| Samples::default()).collect();
    let (mut discarded, mut unsteady) = (0, 0);
    for (number, rounds) in (0..).zip(shares) {
        let process = RefCell::new(CellProcess::start(&cell)?);
        let side = |place| {
            let process = &process;
            Side::new(move || process.borrow_mut().take(place))
        };
        let mut sides: Vec<Side<'_, Sample>> = (0..names.len()).map(side).collect();
        let share = Plan { rounds, ..plan };
        let rounds = steady::rounds(&mut sides, share, steady::calibrate, || lab.step())?;
        drop(sides);
        process.into_inner().finish()?;
        discarded += rounds.discarded;
        unsteady += rounds.unsteady;
        for (all, new) in taken.iter_mut().zip(rounds.taken) {
            // In seconds per sample.
            all.extend(number, new.iter().map(|one| one.ns * times as f64 / 1e9));
        }
    }

    let shortest = taken.iter().flat_map(|side| side.iter().copied());
    let shortest = shortest.fold(f64::INFINITY, f64::min);
    let drifts = (unsteady > 0).then_some("the machine's speed drifted in too many rounds");
    let workers = direct.workers().to_string();
    let row = |(place, host): (usize, Host)| {
        let Host {
            language,
            mode,
            peer,
            bar,
            ..
        } = host;
        let params = [
            ("language", language),
            ("mode", mode),
            ("density", subject.density),
            ("pattern", subject.pattern),
            ("dir", &tree.label),
            ("workers", &workers),
            ("matches", &matches),
            ("searches", &searches),
        ];
        let mut row = Row::new(
            (WORKLOAD.name, WORKLOAD.group),
            &params,
            "s",
            ("thalweg", taken[place].clone()),
            Some((peer.0, taken[peer.1].clone())),
        )
        .checked(format!(
            "every search found {matches} matches with the same sum of line numbers"
        ))
        .checked(format!(
            "the shortest sample of any side lasted {shortest:.2} s"
        ))
        .checked(format!(
            "{discarded} rounds were repeated because the machine's speed drifted by more than {} %",
            100.0 * steady::LIMIT
        ));
        let mut metrics = Metrics::default();
        metrics.count("discarded_rounds", discarded as f64);
        metrics.count("unsteady_rounds", unsteady as f64);
        row.add_metrics("", metrics);
        if subject.judged {
            row.held_to(&Target::Ratio(bar), lab.refusal().or(drifts))
        } else {
            row
        }
    };
    Ok((1..).zip(HOSTS).map(row).collect())
}
