//! A process of its own: the tests count the file descriptors and context switches of the whole
//! process, and run one after the other.

use std::io::{ErrorKind, Read, Write};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use thalweg_runtime::net::{TcpListener, TcpStream, UnixStream};
use thalweg_runtime::{Config, run, runtime, sleep, spawn};

/// Locked by the running test.
static ALONE: Mutex<()> = Mutex::new(());

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Voluntary and involuntary context switches of all threads of the runtime.
fn switches() -> u64 {
    let mut sum = 0;
    for thread in std::fs::read_dir("/proc/self/task").unwrap() {
        let status = thread.unwrap().path().join("status");
        // The thread may have ended meanwhile.
        let status = std::fs::read_to_string(status).unwrap_or_default();
        if !status.starts_with("Name:\ttw-") {
            continue;
        }
        for line in status.lines().filter(|line| line.contains("ctxt_switches")) {
            let count = line.split_whitespace().last().unwrap();
            sum += count.parse::<u64>().unwrap();
        }
    }
    sum
}

fn descriptors_do_not_leak() {
    let before = descriptors();
    for workers in [1, 2] {
        for _ in 0..5 {
            runtime::init(Config::with_workers(workers))
                .unwrap()
                .run(|| {
                    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                    let address = listener.local_addr().unwrap();
                    let server = spawn(move || {
                        for _ in 0..20 {
                            let (mut stream, _) = listener.accept().unwrap();
                            spawn(move || stream.write_all(b"x"));
                        }
                    });
                    for _ in 0..20 {
                        let mut stream = TcpStream::connect(address).unwrap();
                        stream.read_exact(&mut [0]).unwrap();
                    }
                    server.join().unwrap();
                    // This actor still waits when the runtime stops.
                    let (mut one, other) = UnixStream::pair().unwrap();
                    spawn(move || (one.read(&mut [0]), other));
                    sleep(Duration::from_millis(1));
                });
        }
    }
    assert_eq!(descriptors(), before);
}

fn no_more_descriptors_is_an_error_and_no_more_than_that() {
    run(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // Registers the listener, so that the poller has nothing to register later.
        let first = spawn(move || listener.accept().map(|(stream, _)| (stream, listener)));
        sleep(Duration::from_millis(1));
        let _connected = TcpStream::connect(address).unwrap();
        let (_accepted, listener) = first.join().unwrap().unwrap();
        let waiting = TcpStream::connect(address).unwrap();
        let mut kept = Vec::new();
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let low = rustix::process::Rlimit {
            current: Some(descriptors() as u64 + 2),
            maximum: limit.maximum,
        };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, low).unwrap();
        while let Ok(file) = std::fs::File::open("/dev/null") {
            kept.push(file);
        }
        assert_eq!(listener.accept().unwrap_err().raw_os_error(), Some(24));
        assert_eq!(
            TcpStream::connect(address).unwrap_err().raw_os_error(),
            Some(24)
        );
        kept.truncate(kept.len() - 1);
        let (stream, _) = listener.accept().unwrap();
        drop((stream, waiting, kept));
        rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    });
}

fn a_thousand_quiet_connections_cost_nothing() {
    for workers in [1, 2] {
        let runtime = thalweg_runtime::Runtime::start(Config::with_workers(workers)).unwrap();
        let mut others = Vec::new();
        for _ in 0..1_000 {
            let (mut one, other) = UnixStream::pair().unwrap();
            others.push(other);
            runtime.handle().spawn(move || one.read(&mut [0]));
        }
        // The time until they are at rest does not matter; after that there is no switch within a
        // second.
        let rest = (0..60).any(|_| {
            let before = switches();
            std::thread::sleep(Duration::from_secs(1));
            before > 0 && switches() == before
        });
        assert!(rest, "{workers} workers");
        let error = others[0]
            .set_read_timeout(Some(Duration::from_millis(1)))
            .and_then(|()| others[0].read(&mut [0]))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}

#[test]
fn descriptors_and_switches() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    descriptors_do_not_leak();
    no_more_descriptors_is_an_error_and_no_more_than_that();
    a_thousand_quiet_connections_cost_nothing();
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no /proc")]
fn idle_workers_switch_no_contexts() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = thalweg_runtime::Runtime::start(Config::with_workers(2)).unwrap();
    let (done, ended) = mpsc::channel();
    for _ in 0..10 {
        let done = done.clone();
        runtime.handle().spawn(move || done.send(()).unwrap());
    }
    for _ in 0..10 {
        ended.recv().unwrap();
    }
    // Workers spin for at most 50 us before they sleep.
    let start = Instant::now();
    loop {
        let before = switches();
        std::thread::sleep(Duration::from_millis(500));
        if switches() == before {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "never idle");
    }
}
