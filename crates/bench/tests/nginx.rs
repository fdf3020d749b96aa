//! Tests the benchmark `echo_nginx`: its page, its servers, and that nothing of it remains. Without Debian's nginx the
//! tests of the page do nothing, except in CI, where they fail.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_bench::guests::Guest;
use thalweg_bench::hosts;
use thalweg_bench::nginx::{
    self, Echo, EchoServer, Language, Mode, Nginx, SERVERS, Server, Settings,
};
use thalweg_bench::placement::Placement;
use thalweg_bench::report::Row;
use thalweg_bench::result_file;

/// Whether nginx and its headers are installed.
fn has_nginx() -> bool {
    let there = nginx::version().and_then(|_| nginx::module());
    assert!(there.is_ok() || env::var_os("CI").is_none(), "{there:?}");
    there.is_ok()
}

/// Waits for something that no descriptor reports.
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process is there. One that has ended, and that nobody has waited for, is not.
fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some(None | Some('Z' | 'X')))
}

const ECHOES: [Echo; 4] = [
    Echo::Service,
    Echo::Guest(Guest::C),
    Echo::LoadFfi(Language::C),
    Echo::Socket,
];

fn settings(mode: Mode, server: &EchoServer) -> Settings<'_> {
    Settings {
        mode,
        port: 0,
        echoes: &ECHOES,
        socket: server.socket(),
        socket_buffer: "128k",
        placement: Placement::Free,
        spin: mode == Mode::B,
        library_workers: None,
    }
}

#[test]
fn page_answers_with_the_seconds_of_each_length_and_way() {
    if !has_nginx() {
        return;
    }
    for (mode, server) in [(Mode::A, Server::CEpoll), (Mode::B, Server::CThreads)] {
        let server = EchoServer::start(server, Placement::Free).unwrap();
        let nginx = Nginx::start(&settings(mode, &server)).unwrap();
        let expected = |ways: &[&str]| {
            let mut lines = vec![format!("times=30 concurrency=7 mode={}", mode.name())];
            for length in [1, 512, 102_400] {
                lines.push(format!("-- length={length}"));
                lines.extend(ways.iter().map(|way| format!("{way}: ")));
            }
            lines
        };
        let asked = ["load_ffi", "guest_c", "uds"];
        for (more, ways) in [
            ("", &["ffi", "uds"][..]),
            ("&ways=load_ffi,guest_c,uds", &asked),
        ] {
            let path = format!("/benchmark?times=30&arr=1,512,102400&concurrency=7{more}");
            let response = nginx.get(&path).unwrap();
            assert_eq!(response.status, 200);
            let lines: Vec<&str> = response.body.lines().collect();
            let expected = expected(ways);
            assert_eq!(lines.len(), expected.len(), "{lines:?}");
            for (line, expected) in lines.iter().zip(expected) {
                let Some(seconds) = line.strip_prefix(&expected) else {
                    panic!("{line} does not begin with {expected}");
                };
                if expected.ends_with(' ') {
                    assert!(seconds.parse::<f64>().unwrap() > 0.0, "{line}");
                }
            }
        }
        let metrics = nginx.get("/metrics").unwrap().body;
        // One call when it started, and 30 of each length.
        let line = metrics
            .lines()
            .find(|line| line.starts_with("thalweg_nginx_calls{package=\"thalweg:lab\","));
        assert!(line.is_some_and(|line| line.ends_with(" 91")), "{metrics}");
        server.finish().unwrap();
    }
}

/// Whether a library with this in its name is in the memory of a process.
fn has_library(pid: u32, name: &str) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    maps.lines().any(|line| line.contains(name))
}

#[test]
fn nginx_loads_only_the_library_of_its_side() {
    if !has_nginx() {
        return;
    }
    let libraries = [
        (Echo::Service, "libthalweg_lab.so"),
        (Echo::Guest(Guest::C), "liblab_guest.so"),
        (Echo::Guest(Guest::Go), "liblab_guest_go.so"),
        (Echo::LoadFfi(Language::C), "libffi_c_echo.so"),
        (Echo::LoadFfi(Language::Go), "libffi_go_echo.so"),
        (Echo::Socket, ""),
    ];
    let server = EchoServer::start(Server::CThreads, Placement::Free).unwrap();
    for (echo, own) in libraries {
        let needs_go = matches!(echo, Echo::Guest(Guest::Go) | Echo::LoadFfi(Language::Go));
        if needs_go && hosts::go_version().is_err() {
            continue;
        }
        let nginx = Nginx::start(&Settings {
            echoes: &[echo],
            ..settings(Mode::B, &server)
        });
        let nginx = nginx.unwrap();
        for (_, library) in libraries {
            if !library.is_empty() {
                let has = has_library(nginx.worker(), library);
                assert_eq!(has, library == own, "{echo:?} {library}");
            }
        }
        let name = echo.name();
        let asked = format!("/benchmark?times=40&arr=1,102400&concurrency=9&ways={name}");
        let body = nginx.get(&asked).unwrap().body;
        let answers = body.lines().filter(|line| line.starts_with(name));
        assert_eq!(answers.count(), 2, "{body}");
        let other = libraries
            .iter()
            .find(|(other, _)| *other != echo)
            .unwrap()
            .0;
        let asked = format!("/benchmark?times=1&ways={}", other.name());
        assert_eq!(nginx.get(&asked).unwrap().status, 400);
    }
    server.finish().unwrap();
}

#[test]
fn wrong_argument_of_the_page_is_refused_with_the_reason() {
    if !has_nginx() {
        return;
    }
    let server = EchoServer::start(Server::CThreads, Placement::Free).unwrap();
    let nginx = Nginx::start(&settings(Mode::A, &server)).unwrap();
    let number = "expected a whole number from 1 to";
    for (query, why) in [
        ("times=0", format!("times: {number} 10000000, got `0`")),
        ("times=1.5", format!("times: {number} 10000000, got `1.5`")),
        ("times=", format!("times: {number} 10000000, got ``")),
        ("times", "times: expected one value".to_owned()),
        ("times=1&times=2", "times: expected one value".to_owned()),
        ("arr=512,,4096", format!("arr: {number} 16777216, got ``")),
        ("arr=-1", format!("arr: {number} 16777216, got `-1`")),
        (
            "arr=16777217",
            format!("arr: {number} 16777216, got `16777217`"),
        ),
        (
            "arr=99999999999999999999",
            format!("arr: {number} 16777216, got `99999999999999999999`"),
        ),
        (
            "arr=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1",
            "arr: expected at most 32 lengths, got 33".to_owned(),
        ),
        (
            "concurrency=1001",
            format!("concurrency: {number} 1000, got `1001`"),
        ),
        ("ways=tcp", "ways: there is no way `tcp` here".to_owned()),
        (
            "time=5",
            "there is no argument `time`; there is times, arr, concurrency and ways".to_owned(),
        ),
    ] {
        let response = nginx.get(&format!("/benchmark?{query}")).unwrap();
        assert_eq!(
            (response.status, response.body.trim_end()),
            (400, &*why),
            "{query}"
        );
    }
    // The worker lives.
    assert_eq!(nginx.get("/benchmark?times=1&arr=1").unwrap().status, 200);
}

#[test]
fn server_that_ends_is_a_failure_on_the_page() {
    if !has_nginx() {
        return;
    }
    let server = EchoServer::start(Server::CThreads, Placement::Free).unwrap();
    let nginx = Nginx::start(&settings(Mode::A, &server)).unwrap();
    server.finish().unwrap();
    let body = nginx.get("/benchmark?times=5&arr=8").unwrap().body;
    let last = body.lines().last().unwrap();
    assert!(
        body.contains("ffi: ") && last.starts_with("failed: "),
        "{body}"
    );
}

#[test]
fn programs_and_folders_are_gone_at_the_end() {
    if !has_nginx() {
        return;
    }
    let server = EchoServer::start(Server::CThreads, Placement::Free).unwrap();
    let folder = Path::new(server.socket()).parent().unwrap().to_owned();
    let nginx = Nginx::start(&settings(Mode::B, &server)).unwrap();
    let (worker, program, own) = (nginx.worker(), server.id(), nginx.folder().to_owned());
    assert!(is_running(worker) && is_running(program) && folder.exists() && own.exists());
    drop(nginx);
    server.finish().unwrap();
    wait_until("the worker ends", || !is_running(worker));
    assert!(!is_running(program) && !folder.exists() && !own.exists());
}

#[test]
fn port_in_use_is_refused() {
    if !has_nginx() {
        return;
    }
    let server = EchoServer::start(Server::CThreads, Placement::Free).unwrap();
    let nginx = Nginx::start(&settings(Mode::A, &server)).unwrap();
    let port = nginx.port();
    let again = Nginx::start(&Settings {
        port,
        ..settings(Mode::A, &server)
    });
    let why = again.unwrap_err().to_string();
    assert!(
        why.contains(&format!("cannot listen on port {port}")),
        "{why}"
    );
}

/// `thalweg-bench serve`, its output, and its address.
fn serve(folder: &Path) -> (Child, BufReader<ChildStdout>, u16) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg-bench"));
    command
        .args(["serve", "--port", "0"])
        .env("TMPDIR", folder)
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let port = line
        .split_once("localhost:")
        .unwrap()
        .1
        .split_once('/')
        .unwrap()
        .0;
    let port = port.parse().unwrap();
    (child, output, port)
}

fn children(pid: u32) -> Vec<u32> {
    let file = format!("/proc/{pid}/task/{pid}/children");
    let children = fs::read_to_string(file).unwrap();
    children
        .split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

#[test]
fn server_that_is_dropped_leaves_no_socket() {
    let server = EchoServer::start(Server::CThreads, Placement::Free).unwrap();
    let folder = Path::new(server.socket()).parent().unwrap().to_owned();
    assert!(folder.exists());
    drop(server);
    assert!(!folder.exists());
}

#[test]
fn nothing_remains_of_serve_after_ctrl_c_and_after_a_kill() {
    if !has_nginx() {
        return;
    }
    for signal in ["INT", "TERM", "KILL"] {
        let folder = tempfile::tempdir().unwrap();
        let (mut child, output, port) = serve(folder.path());
        let mut programs = children(child.id());
        assert_eq!(programs.len(), 2, "nginx and the server");
        programs.extend(programs.clone().into_iter().flat_map(children));
        assert!(fs::read_dir(folder.path()).unwrap().count() > 0);
        let (pid, signal_option) = (child.id().to_string(), format!("-{signal}"));
        Command::new("kill")
            .args([signal_option, pid])
            .status()
            .unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.success(), signal != "KILL", "{signal}: {status}");
        drop(output);
        wait_until("all programs end", || {
            !programs.iter().any(|pid| is_running(*pid))
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{signal}");
        assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    }
}

#[test]
fn quick_run_has_a_row_for_each_mode_and_server() {
    if !has_nginx() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("result.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg-bench"));
    command
        .args(["run", "echo_nginx", "--quick", "--allow-debug", "--json"])
        .arg(&file);
    for set in ["lengths=64", "concurrency=1,3", "placement=one_cpu"] {
        command.args(["--set", set]);
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let rows = result_file::read(&file).unwrap().results;
    let measured: Vec<&Row> = rows.iter().filter(|row| row.peer.is_some()).collect();
    let expected = match hosts::go_version() {
        // Each way against each server and mode B, and two guests against `load_ffi` in their language.
        Ok(_) => 6 * SERVERS.len() + 5 + 2,
        Err(_) => 4 * (SERVERS.len() - 1) + 3 + 1,
    };
    assert_eq!(measured.len(), 2 * expected);
    for row in measured {
        assert!(row.subject_median > 0.0 && row.ratio.is_some(), "{row:?}");
        for metric in [
            "worker_cpu_ns",
            "service_cpu_ns",
            "peer_service_cpu_ns",
            "waits_per_call",
            "wakes_per_call",
        ] {
            assert!(row.metrics.contains_key(metric), "{metric} in {row:?}");
        }
    }
}

/// A message of the servers.
fn message(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
    [&length[..], bytes].concat()
}

#[test]
fn servers_send_each_message_back_and_close_a_connection_with_one_too_long() {
    for server in SERVERS {
        if server == Server::Go && hosts::go_version().is_err() {
            continue;
        }
        let server = EchoServer::start(server, Placement::Free).unwrap();
        let connect = || UnixStream::connect(server.socket()).unwrap();
        let (mut one, mut other) = (connect(), connect());
        for length in [0, 1, 512, 102_400, 1 << 20] {
            let sent = message(&vec![7; length]);
            for stream in [&mut one, &mut other] {
                let mut writer = stream.try_clone().unwrap();
                let copy = sent.clone();
                let writing = thread::spawn(move || writer.write_all(&copy).unwrap());
                let mut got = vec![0; sent.len()];
                stream.read_exact(&mut got).unwrap();
                assert!(got == sent, "{length}");
                writing.join().unwrap();
            }
        }
        // Two messages at once, the second one in parts.
        let both = [message(b"abc"), message(b"xy")].concat();
        one.write_all(&both[..10]).unwrap();
        let mut got = vec![0; 7];
        one.read_exact(&mut got).unwrap();
        assert_eq!(got, &both[..7]);
        one.write_all(&both[10..]).unwrap();
        let mut got = vec![0; 6];
        one.read_exact(&mut got).unwrap();
        assert_eq!(got, &both[7..]);
        // A message that is longer than the limit.
        other.write_all(&[255; 8]).unwrap();
        assert!(matches!(other.read(&mut [0]), Ok(0) | Err(_)));
        // A connection that is closed in the middle of a message.
        one.write_all(&[0, 0, 0, 9, 1]).unwrap();
        drop(one);
        let mut last = connect();
        last.write_all(&message(b"on")).unwrap();
        let mut got = vec![0; 6];
        last.read_exact(&mut got).unwrap();
        assert_eq!(got, message(b"on"));
        drop(last);
        server.finish().unwrap();
    }
}
