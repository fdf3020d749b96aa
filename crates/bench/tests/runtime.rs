//! Runs each subject of the runtime workloads once, in small, in separate processes because they
//! change the panic hook.

use std::io::Write;
use std::process::{Command, Stdio};

use thalweg_bench::cell::Cell;
use thalweg_bench::workloads::WORKLOADS;

/// Parameters that make a workload small, or select a variant.
type Form = &'static [(&'static str, &'static str)];

/// Each workload, with all of its variants.
const SMALL: &[(&str, &[Form])] = &[
    (
        "chained_spawn",
        &[&[("actors", "20")], &[("actors", "20"), ("drivers", "all")]],
    ),
    ("ping_pong_oneshot", &[&[("rounds", "20")]]),
    (
        "spawn_storm_busy",
        &[&[("actors", "50"), ("yielders", "2")]],
    ),
    ("yield_many", &[&[("actors", "5"), ("yields", "20")]]),
    ("yield_in_hot_loop", &[&[("actors", "1"), ("yields", "20")]]),
    ("many_timers", &[&[("sleeps", "50")]]),
    ("fan_out_compute", &[&[("chunks", "4")]]),
    ("multi_thread_scaling", &[&[("chunks", "4")]]),
    (
        "deep_recursion",
        &[
            &[("depth", "20"), ("form", "plain")],
            &[("depth", "20"), ("form", "actor_per_level")],
        ],
    ),
    ("mpsc_contention", &[&[("producers", "3"), ("each", "100")]]),
    (
        "uncontended_channel",
        &[&[("producers", "1"), ("each", "100")]],
    ),
    (
        "io_echo",
        &[
            &[("connections", "1x3"), ("drivers", "all")],
            &[("connections", "7x5"), ("drivers", "all")],
        ],
    ),
    (
        "catch_unwind_panics",
        &[
            &[("actors", "20"), ("hook", "silent")],
            &[("actors", "20"), ("hook", "default")],
        ],
    ),
    ("skynet", &[&[("actors", "100")]]),
    (
        "supervised_spawn",
        &[
            &[("actors", "20"), ("by", "join_set")],
            &[("actors", "20"), ("by", "spawn_under")],
        ],
    ),
    (
        "wake",
        &[
            &[("rounds", "20"), ("from", "actor")],
            &[("rounds", "20"), ("from", "thread")],
        ],
    ),
];

/// The workloads that are compared with actor libraries, and those libraries.
const OF_ACTORS: &[(&str, Form, &[&str])] = &[
    (
        "actor_call",
        &[("rounds", "20"), ("deadline", "default")],
        &["ractor", "kameo"],
    ),
    (
        "actor_call",
        &[("rounds", "20"), ("deadline", "same")],
        &["ractor", "kameo"],
    ),
    (
        "actor_cast",
        &[("messages", "200"), ("mailbox", "16")],
        &["kameo"],
    ),
    (
        "actor_cast",
        &[("messages", "200"), ("mailbox", "unbounded")],
        &["ractor", "kameo"],
    ),
    (
        "actor_spawn_stop",
        &[("actors", "20")],
        &["ractor", "kameo"],
    ),
];

/// The workloads without a peer; a process takes one sample of each.
const ALONE: [(&str, &[Form]); 2] = [
    (
        "live_actors",
        &[
            &[("actors", "20"), ("kind", "behaviour"), ("seconds", "1")],
            &[("actors", "20"), ("kind", "parked"), ("seconds", "1")],
        ],
    ),
    (
        "failure",
        &[
            &[("of", "monitor")],
            &[("of", "link")],
            &[("of", "cancelled")],
            &[("of", "cancelled_deadline")],
            &[("of", "stop_restart")],
            &[("of", "kill_restart")],
        ],
    ),
];

/// The workload whose subjects have a separate program.
const COUNTED: &str = "actor_memory";

#[test]
fn every_workload_of_the_group_is_tried_here() {
    let group = WORKLOADS.iter().filter(|one| one.group == "runtime");
    let names: Vec<&str> = group.map(|one| one.name).collect();
    let of_actors = OF_ACTORS.iter().map(|(name, ..)| *name);
    let mut tried: Vec<&str> = SMALL.iter().map(|(name, _)| *name).collect();
    tried.extend(of_actors);
    tried.extend(ALONE.iter().map(|(name, _)| *name));
    tried.push(COUNTED);
    tried.dedup();
    assert_eq!(names, tried);
}

#[test]
fn every_subject_takes_a_sample_cold_and_warm_on_one_worker_and_on_two() {
    for (name, forms) in SMALL {
        for form in *forms {
            for (workers, peer) in [("1", "tokio_current_thread"), ("2", "tokio_multi_thread")] {
                for lifetime in ["cold", "warm"] {
                    let cell = at_point(name, form, &["thalweg", peer], (workers, lifetime));
                    let (said, told) = answers(&cell);
                    let lines: Vec<&str> = said.lines().collect();
                    assert_eq!(lines.len(), 4, "{name} {workers} {lifetime}: {said}{told}");
                    for sample in &lines[2..] {
                        assert!(sample.starts_with(r#"{"ns":"#), "{name}: {sample}");
                    }
                    assert_eq!(told, "", "{name}: panics that are planned are not printed");
                }
            }
        }
    }
}

/// A quick cell of this form; other parameters have their usual values.
fn at_point(name: &str, form: Form, subjects: &[&str], (workers, lifetime): (&str, &str)) -> Cell {
    let mut cell = Cell::new(name, form, subjects);
    cell.quick = true;
    for (knob, value) in [
        ("workers", workers),
        ("lifetime", lifetime),
        ("drivers", "time"),
        ("hook", "silent"),
        ("allocator", "system"),
    ] {
        let knob = cell.params.entry(knob.to_owned());
        knob.or_insert_with(|| value.to_owned());
    }
    cell
}

#[test]
fn every_library_of_actors_takes_a_sample_on_one_worker_and_on_two() {
    for (name, form, libraries) in OF_ACTORS {
        for (workers, tokio) in [("1", "tokio_current_thread"), ("2", "tokio_multi_thread")] {
            let mut subjects = vec!["thalweg", tokio];
            subjects.extend(*libraries);
            let cell = at_point(name, form, &subjects, (workers, "warm"));
            let asked_for: String = (0..subjects.len())
                .map(|side| format!("{side}\n"))
                .collect();
            let (said, told) = asked(&cell, "thalweg-bench", &asked_for);
            let samples = said.matches(r#"{"ns":"#).count();
            assert_eq!(samples, subjects.len(), "{name} {form:?}: {said}{told}");
        }
    }
}

#[test]
fn a_library_without_such_a_mailbox_is_not_measured_with_one() {
    let form = &[("messages", "200"), ("mailbox", "16")];
    let cell = at_point("actor_cast", form, &["thalweg", "ractor"], ("1", "warm"));
    let (said, _) = answers(&cell);
    assert!(said.contains("ractor is not measured"), "{said}");
}

#[test]
fn what_an_idle_actor_takes_is_counted_for_every_subject() {
    for subject in ["thalweg", "tokio_current_thread", "ractor", "kameo"] {
        let found = Command::new(env!("CARGO_BIN_EXE_thalweg-bench-memory"))
            .args(["actors", subject, "500"])
            .output()
            .expect("cargo has just built it");
        let found: serde_json::Value = serde_json::from_slice(&found.stdout)
            .unwrap_or_else(|error| panic!("{subject}: {error}: {found:?}"));
        let heap = found["heap"].as_f64().expect("it is a number");
        assert!((64.0..20_000.0).contains(&heap), "{subject}: {found}");
    }
    let unknown = Command::new(env!("CARGO_BIN_EXE_thalweg-bench-memory"))
        .args(["actors", "warp", "5"])
        .output()
        .expect("cargo has just built it");
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn a_workload_without_a_peer_says_what_it_found() {
    let besides: [&[&str]; 2] = [
        &["bytes", "mappings", "cpu_percent", "context_switches"],
        &[],
    ];
    for ((name, forms), besides) in ALONE.iter().zip(besides) {
        for form in *forms {
            let mut cell = Cell::new(name, form, &["thalweg"]);
            cell.quick = true;
            let (said, told) = asked(&cell, "thalweg-bench", "0\n");
            let sample = said.lines().nth(2).unwrap_or_default();
            for metric in [&["ns"], besides].concat() {
                assert!(sample.contains(metric), "{name}: {said}{told}");
            }
        }
    }
}

#[test]
fn our_other_form_is_measured_as_a_peer() {
    let params = [
        ("actors", "20"),
        ("by", "join_set"),
        ("workers", "1"),
        ("lifetime", "warm"),
        ("drivers", "time"),
        ("hook", "silent"),
        ("allocator", "system"),
    ];
    let cell = Cell::new("supervised_spawn", &params, &["thalweg", "thalweg@bare"]);
    let (said, told) = answers(&cell);
    assert_eq!(said.matches(r#"{"ns":"#).count(), 2, "{said}{told}");
}

#[test]
fn a_variable_that_no_knob_is_for_is_refused() {
    let params = [
        ("actors", "1"),
        ("workers", "1"),
        ("lifetime", "warm"),
        ("drivers", "time"),
        ("hook", "silent"),
        ("allocator", "system"),
    ];
    let cell = Cell::new("chained_spawn", &params, &["thalweg"]);
    for (variable, value, refused) in [
        ("THALWEG_WORKERS", "2", true),
        ("THALWEG_STACK_SIZE", "65536", true),
        ("THALWEG_TIMESLICE", "warp", true),
        ("THALWEG_TIMESLICE", "50us", false),
        ("THALWEG_ALLOC_INTERVAL", "32", false),
    ] {
        let mut command = program("thalweg-bench");
        let (said, _) = served(command.env(variable, value), &cell, "0\n");
        let told = said.contains(&format!("{variable} is"));
        assert_eq!(told, refused, "{variable}={value}: {said}");
    }
}

#[test]
fn what_preempts_in_allocations_is_measured_in_the_program_that_does() {
    let params = [
        ("actors", "200"),
        ("yielders", "2"),
        ("workers", "2"),
        ("lifetime", "warm"),
        ("drivers", "time"),
        ("hook", "silent"),
        ("allocator", "preempting"),
    ];
    let mut cell = Cell::new("spawn_storm_busy", &params, &["thalweg"]);
    cell.quick = true;
    let (said, told) = asked(&cell, "thalweg-bench-preempting", "0\n");
    assert_eq!(said.matches(r#"{"ns":"#).count(), 1, "{said}{told}");
}

#[test]
fn what_a_cell_does_not_know_is_answered() {
    let params = [
        ("actors", "1"),
        ("workers", "1"),
        ("drivers", "time"),
        ("hook", "silent"),
        ("allocator", "system"),
    ];
    let answer = |lifetime, peer| {
        let mut cell = Cell::new("chained_spawn", &params, &["thalweg", peer]);
        cell.params
            .insert("lifetime".to_owned(), String::from(lifetime));
        answers(&cell).0
    };
    assert!(answer("hot", "tokio_current_thread").contains("cold or warm, not `hot`"));
    assert!(answer("cold", "tokio_multi_thread").contains("is not measured on 1 workers"));
}

/// The answers of a process that opens this cell and takes a sample of each of two subjects, and
/// its other output.
fn answers(cell: &Cell) -> (String, String) {
    asked(cell, "thalweg-bench", "0\n1\n")
}

/// The same for the program `name` and these samples.
fn asked(cell: &Cell, name: &str, samples: &str) -> (String, String) {
    served(&mut program(name), cell, samples)
}

fn program(name: &str) -> Command {
    Command::new(match name {
        "thalweg-bench" => env!("CARGO_BIN_EXE_thalweg-bench"),
        _ => env!("CARGO_BIN_EXE_thalweg-bench-preempting"),
    })
}

fn served(command: &mut Command, cell: &Cell, samples: &str) -> (String, String) {
    let mut child = command
        .arg("cell")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("cargo has just built it");
    let line = serde_json::to_string(cell).expect("a cell has no odd keys");
    let mut input = child.stdin.take().expect("it was just piped");
    write!(input, "{line}\n{samples}").expect("it reads to its input's end");
    drop(input);
    let output = child.wait_with_output().expect("it was just started");
    let text = |bytes| String::from_utf8(bytes).expect("the lab speaks UTF-8");
    (text(output.stdout), text(output.stderr))
}
