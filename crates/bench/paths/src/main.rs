//! The hot paths, each alone and in one process.
//!
//! `cargo run --release -p thalweg-hot-paths` prints nanoseconds per operation as a first estimate;
//! quoted figures come from `thalweg-bench`, which compares with peers. `hot_paths PATH COUNT` runs
//! one path COUNT times and prints nothing, for a profiler: `crates/bench/instructions.sh` counts
//! instructions that way. `hot_paths --names` lists the paths.

use std::process::ExitCode;
use std::time::Instant;

mod actors;
mod boundary;
mod channels;
mod load_ffi;
mod sync;

/// A path: its name, the number of repetitions for a time estimate, and the path itself.
type Path = (&'static str, u64, fn(u64));

const PATHS: [Path; 34] = [
    ("spsc_pair", 10_000_000, channels::spsc_pair),
    ("spsc_pair_rtrb", 10_000_000, channels::spsc_pair_rtrb),
    ("spsc_batch_64", 1_000_000, channels::spsc_batch_64),
    ("spsc_empty", 10_000_000, channels::spsc_empty),
    ("mpsc_pair", 10_000_000, channels::mpsc_pair),
    ("mpsc_empty", 10_000_000, channels::mpsc_empty),
    ("mpmc_pair", 10_000_000, channels::mpmc_pair),
    ("mpmc_empty", 10_000_000, channels::mpmc_empty),
    ("broadcast_pair", 10_000_000, channels::broadcast_pair),
    (
        "broadcast_pair_tokio",
        10_000_000,
        channels::broadcast_pair_tokio,
    ),
    ("oneshot_pair", 1_000_000, channels::oneshot_pair),
    ("mutex_pair", 10_000_000, sync::mutex_pair),
    ("read_pair", 10_000_000, sync::read_pair),
    ("permit_pair", 10_000_000, sync::permit_pair),
    ("notify_pair", 10_000_000, sync::notify_pair),
    ("spawn_join", 1_000_000, actors::spawn_join),
    ("scope_spawn", 1_000_000, actors::scope_spawn),
    ("supervised_spawn", 1_000_000, actors::supervised_spawn),
    ("yield_turn", 10_000_000, actors::yield_turn),
    ("wake_park", 10_000_000, actors::wake_park),
    ("actor_cast", 1_000_000, actors::actor_cast),
    ("actor_call", 1_000_000, actors::actor_call),
    ("encode_request", 10_000_000, boundary::encode_request),
    ("encode_match", 1_000_000, boundary::encode_match),
    ("view_match", 1_000_000, boundary::view_match),
    ("stream_match", 1_000_000, boundary::stream_match),
    ("stream_event", 1_000_000, boundary::stream_event),
    ("stream_direct", 1_000_000, boundary::stream_direct),
    (
        "stream_direct_reserved",
        1_000_000,
        boundary::stream_direct_reserved,
    ),
    ("call", 20_000, boundary::call),
    ("call_async", 20_000, boundary::call_async),
    ("call_brief", 1_000_000, boundary::call_brief),
    ("submit_reap_64", 100_000, boundary::submit_reap_64),
    ("load_ffi_call", 20_000, load_ffi::load_ffi_call),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => {
            time_all();
            ExitCode::SUCCESS
        }
        ["--names"] => {
            PATHS.iter().for_each(|(name, _, _)| println!("{name}"));
            ExitCode::SUCCESS
        }
        [name, count] => run(name, count),
        _ => usage(),
    }
}

fn time_all() {
    for (name, count, path) in PATHS {
        path(count / 10);
        let began = Instant::now();
        path(count);
        let ns = began.elapsed().as_secs_f64() * 1e9 / count as f64;
        println!("{name:16} {ns:10.1} ns");
    }
}

fn run(name: &str, count: &str) -> ExitCode {
    let path = PATHS.iter().find(|(known, _, _)| *known == name);
    match (path, count.parse()) {
        (Some((_, _, path)), Ok(count)) => {
            path(count);
            ExitCode::SUCCESS
        }
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    let names = PATHS.map(|(name, _, _)| name).join(", ");
    eprintln!("usage: hot_paths PATH COUNT, with a path of {names}");
    ExitCode::from(2)
}
