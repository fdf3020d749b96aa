//! `echo_nginx`: what an echo from Lua in nginx costs, of a service inside of nginx, and of a server on a Unix
//! socket. It is the benchmark of lua-resty-ffi with the same lengths.
//!
//! `thalweg bench serve` serves the page that this workload requests: `/benchmark`
//! (`crates/bench/hosts/nginx/echo_benchmark.lua`). Each side has an nginx of its own with one worker, and they take
//! turns.
//!
//! | `placement` | processors |
//! | --- | --- |
//! | `one_cpu` | one for all programs |
//! | `two_cpus` | two for all programs |
//! | `split` | two: one for the event loop of nginx, one for the threads of the service or for the server. The library has one worker thread there |
//!
//! | `mode` | side inside of nginx |
//! | --- | --- |
//! | `A`, `B` | the service, in this mode of docs/lua.md |
//! | `B+spin` | the same in mode B, with the option `spin` of `open`; only on two processors |
//! | `guest_c`, `guest_go` | the service in C or Go: a guest in mode B; only on one processor |
//! | `load_ffi` | a library in C for lua-resty-ffi, by `ngx.load_ffi` in mode B |
//! | `load_ffi_go` | the same in Go; only on one processor |
//!
//! Each nginx loads only the library of its side, so that a Go runtime is in no other one.
//!
//! With `concurrency=50`, 50 light threads of one request call at the same time, each with its own connection to the
//! server. The connections are open before the clock starts.
//!
//! The metrics `worker_cpu_ns` and `service_cpu_ns` are processor time per call, user and system: of the event loop,
//! and of the threads that serve it. `waits_per_call` is how often one of these threads waited, and `wakes_per_call`
//! how often the library has woken the event loop.

mod cost;
mod sides;
mod targets;

use std::time::Duration;

use crate::cell::Sample;
use crate::guests::Guest;
use crate::hosts;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::nginx::{self, Language, Mode, SERVERS, Server};
use crate::placement::Placement;
use crate::problem::Problem;
use crate::processes::{self, PROCESSES, metrics, times};
use crate::report::{Metrics, Row, hold_best};
use crate::statistics::Samples;
use crate::workloads::{Chart, Knob, Workload};

use sides::{Plan, Programs, Side, Way};
use targets::{LESS_1US, MODE_B, Point, bar, inside};

const LENGTHS: Knob = Knob {
    name: "lengths",
    default: "512,4096,10240,102400",
    what: "bytes of a message, as a list",
};
const CONCURRENCY: Knob = Knob {
    name: "concurrency",
    default: "1,50",
    what: "light threads that call at the same time, as a list",
};
const PLACEMENT: Knob = Knob {
    name: "placement",
    default: "one_cpu,two_cpus,split",
    what: "one_cpu, two_cpus or split, as a list",
};
const PORT: Knob = Knob {
    name: "port",
    default: "0",
    what: "the port of the first nginx, and the ports after it for the others; 0: free ones",
};
/// The default of nginx is 4k or 8k, one page. With it, a long message takes a system call for each page.
pub const SOCKET_BUFFER: Knob = Knob {
    name: "socket_buffer",
    default: "128k",
    what: "lua_socket_buffer_size of nginx",
};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "echo_nginx",
    group: "nginx",
    what: "An echo from Lua in nginx: a service in Rust, C or Go inside of nginx, against a server in C or Go on a Unix socket.",
    source: "lua-resty-ffi, benchmark.md",
    peers: &[SERVERS[0].name(), SERVERS[1].name(), SERVERS[2].name()],
    seconds: 540,
    run,
    knobs: &[LENGTHS, CONCURRENCY, PLACEMENT, PORT, SOCKET_BUFFER],
    ..Workload::USUAL
};

/// The two charts of lua-resty-ffi.
pub const CHARTS: [Chart; 2] = [
    ONE_PROCESSOR,
    Chart {
        title: "Two processors",
        at: &[("placement", "two_cpus"), ("concurrency", "1")],
        ..ONE_PROCESSOR
    },
];

const ONE_PROCESSOR: Chart = Chart {
    workload: WORKLOAD.name,
    title: "One processor",
    at: &[("placement", "one_cpu"), ("concurrency", "1")],
    by: "length",
    series: "mode",
    unit: "s per 100,000 calls",
    factor: 1e5 / 1e9,
};

/// The duration of a sample: the clock has ticks of 1 us in the answer of nginx.
const SAMPLE: Duration = Duration::from_millis(100);
const QUICK_SAMPLE: Duration = Duration::from_millis(4);
/// Samples of each side.
const SAMPLES: usize = 15;

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let (version, module) = (nginx::version(), nginx::module());
    if let Err(why) = version.as_ref().and(module.as_ref()) {
        return Ok(vec![missing(&[], why)]);
    }
    let go = hosts::go_version();
    let mut rows = Vec::new();
    for server in SERVERS {
        let version = match (server, &go) {
            (Server::Go, Ok(go)) => go.clone(),
            (Server::Go, Err(why)) => {
                let why = Problem::NotReady(why.clone());
                rows.push(missing(&[("against", server.name())], &why));
                continue;
            }
            _ => "of this commit".to_owned(),
        };
        lab.peers.insert(server.name().to_owned(), version);
    }
    if let Err(why) = &go {
        let why = Problem::NotReady(why.clone());
        rows.extend(WAYS_IN_GO.map(|way| {
            let params = [("mode", way.echo().name()), ("language", way.language())];
            missing(&params, &why)
        }));
    }
    lab.peers.insert("nginx".to_owned(), version?);
    for placement in placements(lab)? {
        if placement.possible() {
            rows.extend(measure(lab, placement, &ways(placement, go.is_ok()))?);
        } else {
            let why = Problem::NotReady("one processor".to_owned());
            rows.push(missing(&[("placement", placement.name())], &why));
        }
    }
    Ok(rows)
}

fn missing(params: &[(&str, &str)], why: &Problem) -> Row {
    Row::not_measured(
        (WORKLOAD.name, WORKLOAD.group),
        params,
        "ns",
        &why.to_string(),
    )
}

/// A Go runtime in nginx: the service, and the library for lua-resty-ffi.
const WAYS_IN_GO: [Way; 2] = [Way::Guest(Guest::Go), Way::LoadFfi(Language::Go)];

fn ways(placement: Placement, has_go: bool) -> Vec<Way> {
    let servers = SERVERS.into_iter();
    let servers = servers.filter(|server| has_go || *server != Server::Go);
    let mut ways = vec![MODE_B, Way::Service(Mode::A), Way::LoadFfi(Language::C)];
    match placement {
        Placement::OneCpu => {
            ways.push(Way::Guest(Guest::C));
            ways.extend(WAYS_IN_GO.into_iter().filter(|_| has_go));
        }
        _ => ways.push(Way::Spinning),
    }
    ways.extend(servers.map(Way::Socket));
    ways
}

fn placements(lab: &Lab) -> Result<Vec<Placement>, Problem> {
    let known = [Placement::OneCpu, Placement::TwoCpus, Placement::Split];
    let text = lab.knob(&PLACEMENT);
    let find = |name: &str| {
        let found = known.into_iter().find(|placement| placement.name() == name);
        let what = PLACEMENT.what;
        found.ok_or_else(|| Problem::Usage(format!("placement is {what}, not `{name}`")))
    };
    text.split(',').map(find).collect()
}

/// The whole numbers of a knob that is a list.
fn numbers(lab: &Lab, knob: &Knob, most: u64) -> Result<Vec<u64>, Problem> {
    let text = lab.knob(knob);
    let parse = |word: &str| {
        let number = word
            .parse()
            .ok()
            .filter(|number| (1..=most).contains(number));
        let name = knob.name;
        number.ok_or_else(|| Problem::Usage(format!("{name}: 1 to {most}, not `{word}`")))
    };
    text.split(',').map(parse).collect()
}

fn measure(lab: &Lab, placement: Placement, ways: &[Way]) -> Result<Vec<Row>, Problem> {
    let mut points: Vec<Point> = Vec::new();
    for concurrency in numbers(lab, &CONCURRENCY, 1000)? {
        let lengths = numbers(lab, &LENGTHS, 1 << 24)?;
        points.extend(lengths.into_iter().map(|length| (concurrency, length)));
    }
    // The sides of a point are measured one right after the other.
    let mut sides = Vec::new();
    for (concurrency, length) in &points {
        sides.extend(ways.iter().map(|way| Side {
            way: *way,
            length: *length,
            concurrency: *concurrency,
        }));
    }
    let port = u16::try_from(lab.number(&PORT)?)
        .map_err(|_| Problem::Usage("port: at most 65535".to_owned()))?;
    let plan = Plan {
        placement,
        sample: if lab.quick() { QUICK_SAMPLE } else { SAMPLE },
        socket_buffer: lab.knob(&SOCKET_BUFFER),
        port,
        sides,
    };
    let title = format!("echo_nginx {}", placement.name());
    let count = plan.sides.len();
    let start = || Programs::start(&plan);
    let rounds = lab.plan(Some(SAMPLES));
    let taken = processes::measure(lab, &title, count, rounds, PROCESSES, start)?;
    let mut taken = taken.into_iter();
    let mut rows = Vec::new();
    for point in points {
        let of_point: Vec<(Way, Samples<Sample>)> =
            ways.iter().copied().zip(taken.by_ref()).collect();
        rows.extend(rows_of(lab, placement, point, &of_point));
    }
    Ok(rows)
}

/// The rows of a point: each way inside of nginx against each server, and against mode B.
fn rows_of(
    lab: &Lab,
    placement: Placement,
    point: Point,
    taken: &[(Way, Samples<Sample>)],
) -> Vec<Row> {
    let mut rows = Vec::new();
    for (way, ours) in taken {
        let Some(mode) = way.mode() else { continue };
        let language = way.language();
        let row = |against, theirs| {
            let ours = (language, mode, ours);
            row(placement, point, ours, (against, theirs))
        };
        let mut against_servers: Vec<Row> = Vec::new();
        for (other, theirs) in taken {
            if let Way::Socket(server) = other {
                against_servers.push(row(server.name(), theirs));
            }
        }
        if let Some(limit) = bar(placement, point, *way) {
            hold_best(&mut against_servers, &Target::Ratio(limit), lab.refusal());
        }
        rows.append(&mut against_servers);
        for (other, theirs) in taken {
            let Some((against, target)) = inside(placement, point, *way, *other) else {
                continue;
            };
            let mut row = row(against, theirs);
            if *other == MODE_B {
                row = row.with_metrics("", less_a_microsecond(ours, theirs));
            }
            rows.push(match target {
                Some(target) => row.held_to(&target, lab.refusal()),
                None => row,
            });
        }
    }
    rows
}

fn less_a_microsecond(a: &Samples<Sample>, b: &Samples<Sample>) -> Metrics {
    let mut theirs = b.iter();
    let ratios = a.map(|a| (a.ns - 1_000.0) / theirs.next().map_or(f64::NAN, |b| b.ns));
    let mut metrics = Metrics::default();
    metrics.median(LESS_1US, &ratios);
    metrics
}

fn row(
    placement: Placement,
    (concurrency, length): Point,
    (language, mode, ours): (&str, &str, &Samples<Sample>),
    (against, theirs): (&str, &Samples<Sample>),
) -> Row {
    let (length, concurrency) = (length.to_string(), concurrency.to_string());
    let params = [
        ("language", language),
        ("mode", mode),
        ("placement", placement.name()),
        ("concurrency", &concurrency),
        ("length", &length),
    ];
    let sides = (("thalweg", times(ours)), Some((against, times(theirs))));
    Row::new(
        (WORKLOAD.name, WORKLOAD.group),
        &params,
        "ns",
        sides.0,
        sides.1,
    )
    .checked(
        "each reply is its request, and each message of the socket has the length that it tells",
    )
    .with_metrics("", metrics(ours))
    .with_metrics("peer_", metrics(theirs))
}

#[cfg(test)]
mod tests {
    use super::targets::{LOAD_FFI_AS_PEER, LOAD_FFI_GO_AS_PEER, MODE_B_AS_PEER};
    use super::*;

    /// Two samples in each of three processes, in which each call takes `ns`.
    fn samples(ns: f64) -> Samples<Sample> {
        let sample = Sample {
            ns,
            ..Sample::default()
        };
        Samples::new(vec![sample; 6], vec![0, 0, 1, 1, 2, 2])
    }

    fn rows(placement: Placement, point: Point) -> Vec<Row> {
        let taken = [
            (Way::Service(Mode::B), samples(4_000.0)),
            (Way::Service(Mode::A), samples(6_300.0)),
            (Way::LoadFfi(Language::C), samples(4_500.0)),
            (Way::Guest(Guest::C), samples(5_000.0)),
            (Way::Guest(Guest::Go), samples(7_000.0)),
            (Way::LoadFfi(Language::Go), samples(7_200.0)),
            (Way::Spinning, samples(300.0)),
            (Way::Socket(Server::CThreads), samples(10_000.0)),
            (Way::Socket(Server::CEpoll), samples(8_000.0)),
            (Way::Socket(Server::Go), samples(20_000.0)),
        ];
        rows_of(&Lab::new(false, None), placement, point, &taken)
    }

    #[test]
    fn mode_b_is_held_to_the_best_server_and_the_others_to_mode_b() {
        let rows = rows(Placement::OneCpu, (1, 512));
        let with_target: Vec<&Row> = rows.iter().filter(|row| row.target.is_some()).collect();
        let [
            best,
            a,
            load_ffi,
            guest,
            guest_of_load_ffi,
            go,
            go_of_load_ffi,
        ] = with_target.as_slice()
        else {
            panic!("{with_target:?}");
        };
        for (row, peer, target) in [
            (go, "uds_c_epoll", "ratio <= 0.5"),
            (go_of_load_ffi, LOAD_FFI_GO_AS_PEER, "ratio <= 1.05"),
        ] {
            assert_eq!(row.params["mode"], "guest_go");
            assert_eq!(row.peer.as_deref(), Some(peer));
            assert_eq!(row.target.as_deref(), Some(target));
        }
        assert_eq!(guest.params["mode"], "guest_c");
        assert_eq!(guest.peer.as_deref(), Some("uds_c_epoll"));
        assert_eq!(guest.target.as_deref(), Some("ratio <= 0.5"));
        assert_eq!(guest_of_load_ffi.peer.as_deref(), Some(LOAD_FFI_AS_PEER));
        assert_eq!(guest_of_load_ffi.target.as_deref(), Some("ratio <= 1.05"));
        assert_eq!(best.peer.as_deref(), Some("uds_c_epoll"));
        assert_eq!(best.target.as_deref(), Some("ratio <= 0.5"));
        assert_eq!(a.peer.as_deref(), Some(MODE_B_AS_PEER));
        assert_eq!(load_ffi.params["mode"], "load_ffi");
        assert_eq!(load_ffi.target.as_deref(), Some("ratio <= 1.15"));
        assert_eq!(a.target.as_deref(), Some("ratio_less_1us <= 1.3"));
        assert!((a.metrics[LESS_1US] - 1.325).abs() < 1e-9);
        // A debug build judges nothing.
        if Lab::new(false, None).refusal().is_none() {
            assert_eq!(best.verdict.as_deref(), Some("met"));
            assert_eq!(a.verdict.as_deref(), Some("missed"));
            assert_eq!(load_ffi.verdict.as_deref(), Some("met"));
        }
    }

    #[test]
    fn guest_is_compared_with_all_others_on_one_processor() {
        let rows = rows(Placement::OneCpu, (1, 512));
        for (mode, language, library) in [
            ("guest_c", "c", LOAD_FFI_AS_PEER),
            ("guest_go", "go", LOAD_FFI_GO_AS_PEER),
        ] {
            let of_guest = rows.iter().filter(|row| row.params["mode"] == mode);
            let peers: Vec<_> = of_guest
                .inspect(|row| assert_eq!(row.params["language"], language))
                .map(|row| row.peer.as_deref().unwrap())
                .collect();
            let expected = ["uds_c", "uds_c_epoll", "uds_go", MODE_B_AS_PEER, library];
            assert_eq!(peers, expected);
        }
        let has = |placement, has_go, way| ways(placement, has_go).contains(&way);
        assert!(has(Placement::OneCpu, false, Way::Guest(Guest::C)));
        assert!(!has(Placement::Split, true, Way::Guest(Guest::C)));
        for way in WAYS_IN_GO {
            assert!(has(Placement::OneCpu, true, way));
            assert!(!has(Placement::OneCpu, false, way));
            assert!(!has(Placement::TwoCpus, true, way));
        }
    }

    #[test]
    fn points_have_the_targets_of_their_placement() {
        let targets = |placement, point| {
            let rows = rows(placement, point);
            rows.iter()
                .filter_map(|row| row.target.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(targets(Placement::TwoCpus, (50, 4_096)), ["ratio <= 0.4"]);
        assert_eq!(
            targets(Placement::OneCpu, (1, 4_096)),
            ["ratio_less_1us <= 1.3", "ratio <= 1.15"]
        );
        assert_eq!(targets(Placement::Split, (1, 512)), ["ratio <= 0.1"]);
        assert!(targets(Placement::Split, (50, 512)).is_empty());
    }

    #[test]
    fn knob_with_another_value_is_refused_with_the_range() {
        let lab = |name: &str, value: &str| {
            Lab::new(true, None).setting([(name.to_owned(), value.to_owned())].into())
        };
        assert_eq!(
            placements(&lab("placement", "split")).unwrap(),
            [Placement::Split]
        );
        for wrong in ["", "free", "split,"] {
            assert!(placements(&lab("placement", wrong)).is_err(), "{wrong}");
        }
        assert_eq!(
            numbers(&lab("lengths", "7,8"), &LENGTHS, 9).unwrap(),
            [7, 8]
        );
        for wrong in ["", "0", "10", "7,", "x"] {
            assert!(
                numbers(&lab("lengths", wrong), &LENGTHS, 9).is_err(),
                "{wrong}"
            );
        }
    }
}
