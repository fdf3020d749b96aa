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
//! completes in a second.

mod client;
mod direct;

use std::cell::RefCell;
use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::child::HostProgram;
use crate::hosts;
use crate::interleave::{Side, interleave};
use crate::judgement::Target;
use crate::lab::Lab;
use crate::placement::Placement;
use crate::problem::Problem;
use crate::report::Row;
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
    ..Workload::USUAL
};

/// Pairs of each side.
const PAIRS: usize = 20;

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

/// One of the programs in other languages.
struct Program {
    language: &'static str,
    mode: &'static str,
    program: RefCell<HostProgram>,
}

impl Program {
    fn start(
        language: &'static str,
        mode: &'static str,
        mut command: Command,
        tree: &Tree,
        subject: &Subject,
    ) -> Result<Self, Problem> {
        command
            .arg(hosts::library("thalweg-search")?)
            .arg(subject.pattern)
            .arg(&tree.path);
        let program = HostProgram::start(language, command, Placement::Free)?;
        Ok(Self {
            language,
            mode,
            program: RefCell::new(program),
        })
    }
}

fn programs(tree: &Tree, subject: &Subject) -> Result<[Program; 3], Problem> {
    let c = Command::new(hosts::c_program("search_host")?);
    let python = |mode| {
        let mut command = hosts::python_program("search_host.py");
        command.arg(mode);
        command
    };
    Ok([
        Program::start("c", "blocking", c, tree, subject)?,
        Program::start("python", "sync", python("sync"), tree, subject)?,
        Program::start("python", "asyncio", python("asyncio"), tree, subject)?,
    ])
}

/// The answer of a program.
#[derive(Deserialize)]
struct Answer {
    ns: u64,
    matches: u64,
    lines: u64,
}

fn measure(lab: &Lab, tree: &Tree, subject: &Subject) -> Result<Vec<Row>, Problem> {
    let plan = lab.plan(Some(PAIRS));
    lab.begin(
        &format!("search_overhead {}", subject.density),
        5 * (plan.warm_up + plan.rounds),
    );
    let direct = direct::Direct::new(subject.pattern, &tree.path)?;
    let rust = client::Client::open(subject.pattern, &tree.path)?;
    let programs = programs(tree, subject)?;

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

    let agree = |who: &str, found: Found| {
        if found == known {
            Ok(())
        } else {
            Err(Problem::Check(format!(
                "{who} found {found:?}, the direct search {known:?}"
            )))
        }
    };
    let here = |who: &'static str, search: &dyn Fn() -> Result<Found, Problem>| {
        let began = Instant::now();
        for _ in 0..times {
            agree(who, search()?)?;
        }
        Ok(began.elapsed().as_secs_f64())
    };
    let mut sides = vec![
        Side::new(|| here("direct", &|| direct.search())),
        Side::new(|| here("rust", &|| rust.search())),
    ];
    for program in &programs {
        sides.push(Side::new(|| {
            let answer: Answer = program
                .program
                .borrow_mut()
                .ask(&format!("search {times}"))?;
            agree(
                program.language,
                Found {
                    matches: answer.matches,
                    lines: answer.lines,
                },
            )?;
            Ok(answer.ns as f64 / 1e9)
        }));
    }
    let taken = interleave(&mut sides, plan, || lab.step())?;
    drop(sides);

    let shortest = taken
        .iter()
        .flatten()
        .copied()
        .fold(f64::INFINITY, f64::min);
    let row = |place: usize, peer: (&str, usize), language: &str, mode: &str, bar: f64| {
        let params = [
            ("language", language),
            ("mode", mode),
            ("density", subject.density),
            ("pattern", subject.pattern),
            ("dir", &tree.label),
            ("workers", &direct.workers().to_string()),
            ("matches", &known.matches.to_string()),
            ("searches", &times.to_string()),
        ];
        let row = Row::new(
            (WORKLOAD.name, WORKLOAD.group),
            &params,
            "s",
            ("thalweg", taken[place].clone()),
            Some((peer.0, taken[peer.1].clone())),
        )
        .checked(format!(
            "every search found {} matches with the same sum of line numbers",
            known.matches
        ))
        .checked(format!(
            "the shortest sample of any side lasted {shortest:.2} s"
        ));
        if subject.judged {
            row.held_to(&Target::Ratio(bar), lab.refusal())
        } else {
            row
        }
    };
    let mut rows = vec![row(1, ("direct", 0), "rust", "blocking", 1.05)];
    for (place, program) in (2..).zip(&programs) {
        rows.push(row(place, ("rust", 1), program.language, program.mode, 1.3));
    }
    for program in programs {
        program.program.into_inner().finish()?;
    }
    Ok(rows)
}
