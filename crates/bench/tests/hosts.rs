//! Tests the host programs in Rust, C, C++ and Nim, line by line. The lab itself runs the Python one, if
//! its package is installed.

use std::process::Command;

use serde::Deserialize;
use thalweg_bench::child::HostProgram;
use thalweg_bench::guests::Guest;
use thalweg_bench::hosts;
use thalweg_bench::placement::Placement;
use thalweg_bench::workloads::lab_hosts;
use thalweg_bench::workloads::view_read::CAPACITY;
use thalweg_lab::{Contents, ticks};

#[derive(Deserialize)]
struct Block {
    latencies: Vec<u64>,
}

#[derive(Deserialize)]
struct Read {
    ns: u64,
    records: u64,
    checksum: u64,
}

#[derive(Deserialize)]
struct Verified {
    records: u64,
    digest: String,
}

fn rust() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg-bench"));
    command.arg("host");
    command
}

fn c() -> Command {
    let mut command = Command::new(hosts::c_program("lab_host").expect("cc is there"));
    command.arg(hosts::library("thalweg-lab").expect("cargo builds it with this test"));
    command
}

fn cpp(mode: &str) -> Command {
    let mut command = Command::new(hosts::cpp_program("lab_host").expect("c++ is there"));
    command.arg(mode);
    command.arg(hosts::library("thalweg-lab").expect("cargo builds it with this test"));
    command
}

/// The answers to calls and reading. `forms` are lines about ticks, `events` those about events.
fn answers_reading(host: &mut HostProgram, readings: &[&str], forms: &[&str], events: &[&str]) {
    for operation in ["nop", "nop-async", "tally", "bare"] {
        let block: Block = host.ask(&format!("{operation} 50 5 0")).unwrap();
        assert_eq!(block.latencies.len(), 50, "{operation}");
        assert!(block.latencies.iter().all(|ns| *ns > 0), "{operation}");
    }
    let paused: Block = host.ask("nop 3 0 1000").unwrap();
    assert_eq!(paused.latencies.len(), 3);

    let contents = Contents::new();
    let count = 2 * CAPACITY + 100;
    for reading in readings {
        let read: Read = host.ask(&format!("{reading} {count}")).unwrap();
        let checksum = if *reading == "kept" {
            2 * contents.checksum(CAPACITY) + contents.checksum(100)
        } else {
            contents.checksum(count)
        };
        assert_eq!(
            (read.records, read.checksum),
            (count, checksum),
            "{reading}"
        );
        assert!(read.ns > 0, "{reading}");
    }
    let sum = ticks::checksum(count);
    for form in forms {
        let read: Read = host.ask(&format!("{form} {count}")).unwrap();
        assert_eq!((read.records, read.checksum), (count, sum), "{form}");
        assert!(read.ns > 0, "{form}");
    }
    for form in events {
        let read: Read = host.ask(&format!("{form} {count}")).unwrap();
        let sum = count * (count - 1) / 2;
        assert_eq!((read.records, read.checksum), (count, sum), "{form}");
        assert!(read.ns > 0, "{form}");
    }
}

fn verifies(host: &mut HostProgram) {
    let verified: Verified = host.ask("verify 1000").unwrap();
    assert_eq!(verified.records, 1000);
    let digest = Contents::new().digest(1000);
    assert_eq!(verified.digest, format!("{digest:016x}"));
}

fn answers_every_line(
    command: Command,
    placement: Placement,
    readings: &[&str],
    forms: &[&str],
    events: &[&str],
) {
    let mut host = HostProgram::start("host", command, placement).unwrap();
    answers_reading(&mut host, readings, forms, events);
    for way in ["sync", "async", "events"] {
        for size in [0, 64, 65_536] {
            for peer in ["", "unix-"] {
                let line = format!("e2e-{peer}{way} {size} 202 2");
                let read: Read = host.ask(&line).unwrap();
                assert_eq!((read.records, read.checksum), (202, 102), "{line}");
            }
        }
    }
    verifies(&mut host);
    host.finish().unwrap();
}

#[test]
fn services_in_c_and_go_answer_as_that_in_rust() {
    for guest in [Guest::C, Guest::CPort, Guest::Go] {
        if guest == Guest::Go && hosts::go_version().is_err() {
            continue;
        }
        let command = lab_hosts::c_of_guest(guest).expect("the compilers are there");
        let mut host = HostProgram::start("host", command, Placement::Free).unwrap();
        let forms = ["stream-one", "stream-views", "stream-callback"];
        answers_reading(&mut host, &[], &forms, &["events-one", "events-views"]);
        for line in ["in-flight 5000 64 64", "in-flight 5000 64 1"] {
            let read: Read = host.ask(line).unwrap();
            assert_eq!((read.records, read.checksum), (5000, 12_497_500), "{line}");
        }
        host.finish().unwrap();
    }
}

#[test]
fn wrong_number_of_calls_in_flight_ends_the_host_in_c() {
    for line in [
        "in-flight 9 4096 1",
        "in-flight 9 64 65",
        "in-flight 9 8 16",
        "in-flight 9 64 0",
    ] {
        let mut host = HostProgram::start("host", c(), Placement::Free).unwrap();
        assert!(host.ask::<Read>(line).is_err(), "{line}");
    }
}

#[test]
fn peers_of_the_service_in_go_answer_each_number_once() {
    if hosts::go_version().is_err() {
        return;
    }
    let command = Command::new(hosts::go_program("guest_peers_go", "./guest_peers").unwrap());
    let mut peers = HostProgram::start("guest_peers", command, Placement::OneCpu).unwrap();
    let block: Block = peers.ask("netpoll 50 5").unwrap();
    assert_eq!(block.latencies.iter().filter(|ns| **ns > 0).count(), 50);
    let read: Read = peers.ask("channel 5000 64").unwrap();
    assert_eq!((read.records, read.checksum), (5000, 12_497_500));
    assert!(peers.ask::<Read>("channel 5000 0").is_err());
}

#[test]
fn rust_answers_every_line() {
    answers_every_line(
        rust(),
        Placement::Free,
        &["views", "objects", "array", "kept"],
        &[
            "tick-views",
            "tick-array",
            "stream-one",
            "stream-objects",
            "stream-views",
            "stream-callback",
        ],
        &[],
    );
}

#[test]
fn c_answers_every_line() {
    answers_every_line(
        c(),
        Placement::Free,
        &["views", "array", "kept"],
        &[
            "tick-views",
            "tick-array",
            "stream-one",
            "stream-views",
            "stream-callback",
        ],
        &["events-one", "events-views"],
    );
}

#[test]
fn cpp_answers_every_line_in_both_modes() {
    let mut host = HostProgram::start("host", cpp("blocking"), Placement::Free).unwrap();
    let forms = [
        "tick-views",
        "tick-array",
        "stream-one",
        "stream-views",
        "ticks",
    ];
    let events = ["events-one", "events-views", "events"];
    answers_reading(&mut host, &["views", "array", "kept"], &forms, &events);
    verifies(&mut host);
    host.finish().unwrap();

    for placement in [Placement::Free, Placement::OneCpu] {
        let mut host = HostProgram::start("host", cpp("coroutines"), placement).unwrap();
        answers_reading(&mut host, &[], &["stream-awaited"], &["events-awaited"]);
        for line in ["complete", "drain", "raw"] {
            let read: Read = host.ask(&format!("{line} 5000")).unwrap();
            assert_eq!((read.records, read.checksum), (5000, 12_497_500), "{line}");
        }
        let block: Block = host.ask("paced 50 10000").unwrap();
        assert_eq!(block.latencies.iter().filter(|ns| **ns > 0).count(), 50);
        host.finish().unwrap();
    }
}

#[test]
fn peer_with_asio_answers_if_asio_is_installed() {
    if let Err(problem) = hosts::asio_version() {
        assert!(problem.to_string().contains("libasio-dev"), "{problem}");
        return;
    }
    let command = Command::new(hosts::cpp_program("asio_peer").unwrap());
    let mut host = HostProgram::start("asio", command, Placement::OneCpu).unwrap();
    let block: Block = host.ask("nop 50 5 0").unwrap();
    assert_eq!(block.latencies.iter().filter(|ns| **ns > 0).count(), 50);
    host.finish().unwrap();
}

#[test]
fn they_do_so_on_one_processor() {
    answers_every_line(
        rust(),
        Placement::OneCpu,
        &["views"],
        &["stream-views"],
        &[],
    );
    answers_every_line(c(), Placement::OneCpu, &["views"], &["stream-views"], &[]);
}

#[test]
fn program_at_split_calls_on_one_processor_and_serves_on_another() {
    if !Placement::Split.possible() {
        return;
    }
    for command in [rust(), c(), cpp("blocking"), cpp("coroutines")] {
        let mut host = HostProgram::start("host", command, Placement::Split).unwrap();
        for operation in ["nop", "bare"] {
            let block: Block = host.ask(&format!("{operation} 50 5 0")).unwrap();
            assert_eq!(block.latencies.len(), 50, "{operation}");
        }
        let folder = format!("/proc/{}/task", host.id());
        let mut of_caller = None;
        let mut of_others = Vec::new();
        for task in std::fs::read_dir(&folder).unwrap() {
            let task = task.unwrap();
            let status = std::fs::read_to_string(task.path().join("status")).unwrap();
            let allowed = status
                .lines()
                .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            let allowed = allowed.unwrap().trim().to_owned();
            if *task.file_name() == *host.id().to_string() {
                of_caller = Some(allowed);
            } else {
                of_others.push(allowed);
            }
        }
        let of_caller = of_caller.expect("the first thread has the number of the process");
        assert!(
            of_others.len() >= 2,
            "a worker and the bare thread: {of_others:?}"
        );
        assert!(
            of_others
                .iter()
                .all(|other| *other == of_others[0] && *other != of_caller)
        );
        host.finish().unwrap();
    }
}

#[test]
fn a_line_that_is_no_command_ends_them() {
    for command in [rust(), c(), cpp("blocking"), cpp("coroutines")] {
        let mut host = HostProgram::start("host", command, Placement::Free).unwrap();
        let problem = host
            .ask::<Read>("warp 9")
            .err()
            .expect("there is no such command");
        assert!(
            problem.to_string().contains("ended without an answer"),
            "{problem}"
        );
    }
}

/// Nim is optional.
#[test]
fn nim_answers_calls_and_objects() {
    if Command::new("nim").arg("--version").output().is_err() {
        return;
    }
    for mode in ["blocking", "asyncdispatch"] {
        let mut command = Command::new(hosts::nim_program("lab_host").expect("nim is there"));
        command.arg(mode);
        command.arg(hosts::library("thalweg-lab").expect("cargo builds it with this test"));
        let mut host = HostProgram::start("host", command, Placement::Free).unwrap();
        answers_reading(&mut host, &["objects"], &[], &[]);
        host.finish().unwrap();
    }
}
