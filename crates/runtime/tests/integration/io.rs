//! Waiting for descriptors, and blocking calls.

use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use thalweg_runtime::io::{self, Stopping};
use thalweg_runtime::{Config, Runtime, run, sleep, spawn, yield_now};

use crate::kit::runtime;

fn soon(ms: u64) -> Option<Instant> {
    Some(Instant::now() + Duration::from_millis(ms))
}

#[test]
fn pipe_reader_continues_after_a_write() {
    run(|| {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        let other = spawn(move || writer.write_all(b"x"));
        io::wait_readable(&reader, None).unwrap();
        assert_eq!(reader.read(&mut [0; 8]).unwrap(), 1);
        other.join().unwrap().unwrap();
    });
}

#[test]
fn wait_ends_at_its_deadline_and_the_next_wait_works() {
    run(|| {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let start = Instant::now();
        let error = io::wait_readable(&reader, soon(20)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(start.elapsed() >= Duration::from_millis(20));
        writer.write_all(b"x").unwrap();
        io::wait_readable(&reader, soon(10_000)).unwrap();
        io::wait_writable(&writer, None).unwrap();
    });
}

#[test]
fn wait_with_a_past_deadline_returns_ready_events() {
    let (reader, writer) = std::io::pipe().unwrap();
    let error = io::wait_readable(&reader, Some(Instant::now())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    io::wait_writable(&writer, Some(Instant::now())).unwrap();
}

#[test]
fn wait_on_a_plain_thread_blocks_the_thread() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(10));
        writer.write_all(b"x").unwrap();
    });
    io::wait_readable(&reader, None).unwrap();
    thread.join().unwrap();
    let (quiet, _writer) = std::io::pipe().unwrap();
    let error = io::wait_readable(&quiet, soon(5)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[test]
fn a_file_on_a_disk_is_always_ready() {
    run(|| {
        let file = std::fs::File::open("Cargo.toml").unwrap();
        io::wait_readable(&file, None).unwrap();
        io::wait_writable(&file, None).unwrap();
    });
}

#[test]
fn two_actors_wait_for_one_descriptor() {
    run(|| {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let reader = Arc::new(reader);
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                let reader = Arc::clone(&reader);
                spawn(move || io::wait_readable(&*reader, None))
            })
            .collect();
        sleep(Duration::from_millis(2));
        writer.write_all(b"x").unwrap();
        for waiter in waiters {
            waiter.join().unwrap().unwrap();
        }
    });
}

#[test]
fn closed_writer_ends_the_wait() {
    run(|| {
        let (reader, writer) = std::io::pipe().unwrap();
        let waiter = spawn(move || io::wait_readable(&reader, None));
        sleep(Duration::from_millis(2));
        drop(writer);
        waiter.join().unwrap().unwrap();
    });
}

#[test]
fn runtime_stop_ends_the_wait_with_a_stopping_error() {
    let runtime = runtime(2);
    let (tx, rx) = mpsc::channel();
    let (reader, _writer) = std::io::pipe().unwrap();
    let (begun, begins) = mpsc::channel();
    runtime.handle().spawn(move || {
        begun.send(()).unwrap();
        tx.send(io::wait_readable(&reader, None)).unwrap();
    });
    begins.recv().unwrap();
    std::thread::sleep(Duration::from_millis(10));
    drop(runtime);
    let error = rx.recv().unwrap().unwrap_err();
    assert!(error.get_ref().unwrap().is::<Stopping>(), "{error}");
}

#[test]
fn an_actor_that_floods_its_worker_does_not_starve_io() {
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let done = Arc::new(AtomicBool::new(false));
        for _ in 0..workers * 2 {
            let done = Arc::clone(&done);
            runtime.handle().spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    yield_now();
                }
            });
        }
        let (reader, mut writer) = std::io::pipe().unwrap();
        let waiter = runtime
            .handle()
            .spawn(move || io::wait_readable(&reader, soon(10_000)));
        std::thread::sleep(Duration::from_millis(5));
        writer.write_all(b"x").unwrap();
        waiter.join().unwrap().unwrap();
        done.store(true, Ordering::Relaxed);
    }
}

#[test]
fn an_actor_that_computes_and_checks_does_not_starve_io() {
    let runtime = runtime(1);
    let done = Arc::new(AtomicBool::new(false));
    let computes = Arc::clone(&done);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let waiter = runtime
        .handle()
        .spawn(move || io::wait_readable(&reader, soon(10_000)));
    std::thread::sleep(Duration::from_millis(5));
    runtime.handle().spawn(move || {
        while !computes.load(Ordering::Relaxed) {
            thalweg_runtime::wait::check();
        }
    });
    std::thread::sleep(Duration::from_millis(5));
    writer.write_all(b"x").unwrap();
    waiter.join().unwrap().unwrap();
    done.store(true, Ordering::Relaxed);
}

#[test]
fn io_that_floods_does_not_starve_timers_or_other_actors() {
    let runtime = runtime(1);
    let done = Arc::new(AtomicBool::new(false));
    let moved = Arc::new(AtomicUsize::new(0));
    for _ in 0..4 {
        let (mut one, mut other) = thalweg_runtime::net::UnixStream::pair().unwrap();
        let ends = Arc::clone(&done);
        let counts = Arc::clone(&moved);
        runtime.handle().spawn(move || {
            while !ends.load(Ordering::Relaxed) && one.write_all(&[0; 4096]).is_ok() {}
        });
        runtime.handle().spawn(move || {
            while let Ok(1..) = other.read(&mut [0; 4096]) {
                counts.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let slept = runtime.handle().spawn(|| {
        for _ in 0..20 {
            sleep(Duration::from_millis(1));
        }
    });
    let spun = runtime
        .handle()
        .spawn(|| (0..200).for_each(|_| yield_now()));
    slept.join().unwrap();
    spun.join().unwrap();
    assert!(moved.load(Ordering::Relaxed) > 0);
    done.store(true, Ordering::Relaxed);
}

#[test]
fn wake_from_outside_reaches_a_worker_that_sleeps_in_its_poller() {
    let runtime = runtime(2);
    let (reader, _writer) = std::io::pipe().unwrap();
    let (_idle, quiet) = std::io::pipe().unwrap();
    runtime
        .handle()
        .spawn(move || io::wait_readable(&reader, None));
    runtime
        .handle()
        .spawn(move || io::wait_writable(&quiet, None));
    for round in 0..2_000 {
        let answer = runtime.handle().spawn(move || round);
        assert_eq!(answer.join().unwrap(), round);
        if round % 100 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn blocking_closure_does_not_block_the_worker() {
    run(|| {
        let (tx, rx) = mpsc::channel();
        let blocked = spawn(move || {
            let name = io::blocking(move || {
                rx.recv().unwrap();
                std::thread::current().name().map(str::to_owned)
            });
            name.unwrap()
        });
        sleep(Duration::from_millis(1));
        tx.send(()).unwrap();
        assert!(blocked.join().unwrap().starts_with("tw-blocking-"));
    });
}

#[test]
fn panic_in_a_blocking_closure_propagates_to_the_caller() {
    run(|| {
        let caller = spawn(|| io::blocking::<()>(|| std::panic::resume_unwind(Box::new("there"))));
        assert!(caller.join().is_err());
        assert_eq!(io::blocking(|| 3), 3, "the thread goes on");
    });
}

#[test]
fn blocking_closures_beyond_the_pool_size_are_queued() {
    let config = Config {
        workers: 1,
        blocking_threads: 2,
        ..Config::default()
    };
    let runtime = Runtime::start(config).unwrap();
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..20)
        .map(|_| {
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            runtime.handle().spawn(move || {
                io::blocking(move || {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    // With a single thread this loop would never end.
                    while most.load(Ordering::SeqCst) < 2 {
                        std::thread::yield_now();
                    }
                    running.fetch_sub(1, Ordering::SeqCst);
                })
            })
        })
        .collect();
    for caller in callers {
        caller.join().unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[test]
fn blocking_closure_on_a_plain_thread_runs_on_that_thread() {
    let here = std::thread::current().id();
    assert_eq!(io::blocking(|| std::thread::current().id()), here);
}

#[test]
fn runtime_stop_unwinds_a_waiter_for_a_blocking_closure() {
    let runtime = runtime(1);
    let (tx, rx) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel();
    let caller = runtime.handle().spawn(move || {
        io::blocking(move || {
            begun.send(()).unwrap();
            let _ = rx.recv();
        });
    });
    begins.recv().unwrap();
    drop(runtime);
    assert!(caller.join().is_err());
    drop(tx);
}
