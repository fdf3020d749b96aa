//! A sandbox that refuses `membarrier` after it has worked: no panic, and no lost wake-up.
//!
//! This is a separate binary because each test installs a seccomp filter in a child process.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, loom))
))]

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thalweg_queue::{AtomicWaker, Parker, barrier, mpmc, mpsc, spsc};

/// The environment variable that names the test for the child process.
const CHILD: &str = "THALWEG_MEMBARRIER_TEST";

/// A child process that takes longer counts as hung.
const LONG: Duration = Duration::from_secs(120);

/// Runs `body` in a child process, in which `membarrier` works until `body` refuses it. A body that
/// hangs fails the test.
fn alone(name: &str, body: fn()) {
    if std::env::var(CHILD).as_deref() == Ok(name) {
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            body();
            done.send(()).expect("the test waits");
        });
        return is_done.recv_timeout(LONG).expect("nobody sleeps for ever");
    }
    let output = Command::new(std::env::current_exe().expect("the test binary"))
        .args(["--exact", "--nocapture", name])
        .env(CHILD, name)
        .output()
        .expect("the test binary runs again");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 passed"), "{text}");
}

/// From now on, the kernel refuses `membarrier` to every thread of this process with `EPERM`, like
/// a seccomp sandbox.
fn refuse_membarrier() {
    const fn step(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter {
            code: code as u16,
            jt,
            jf,
            k,
        }
    }
    // The number of the system call is at the start of the data that the filter reads.
    let mut filter = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            libc::SYS_membarrier as u32,
        ),
        step(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program is valid during the call, which copies it.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let installed = libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const program,
        );
        assert_eq!(installed, 0, "{}", std::io::Error::last_os_error());
        let refused = libc::syscall(libc::SYS_membarrier, 0, 0, 0);
        assert_eq!(refused, -1, "the filter works");
    }
}

/// A kernel without `membarrier` has nothing to refuse.
fn has_membarrier() -> bool {
    barrier::is_asymmetric()
}

#[test]
fn refused_heavy_barrier_changes_the_process_to_fences() {
    alone(
        "refused_heavy_barrier_changes_the_process_to_fences",
        || {
            if !has_membarrier() {
                return;
            }
            barrier::heavy();
            assert!(barrier::is_asymmetric());
            refuse_membarrier();
            assert!(barrier::is_asymmetric(), "nobody has tried");
            barrier::heavy();
            assert!(!barrier::is_asymmetric());
            barrier::heavy_or_full();
        },
    );
}

/// Two threads that wait for each other, on channels created before the sandbox and used after it.
#[test]
fn refused_membarrier_loses_no_wake_up_of_older_channels() {
    alone(
        "refused_membarrier_loses_no_wake_up_of_older_channels",
        || {
            const ROUNDS: u64 = 20_000;
            if !has_membarrier() {
                return;
            }
            let (ping, pinged) = spsc::channel::<u64>(4).expect("a capacity in range");
            let (pong, ponged) = mpsc::channel::<u64>(4).expect("a capacity in range");
            let (more, mored) = mpmc::channel::<u64>(4).expect("a capacity in range");
            let echo = std::thread::spawn({
                let (pinged, pong, more) = (pinged, pong, more);
                move || {
                    while let Ok(number) = pinged.recv() {
                        pong.send(number).expect("the other end is there");
                        more.send(number).expect("the other end is there");
                    }
                }
            });
            for number in 0..ROUNDS {
                if number == ROUNDS / 4 {
                    refuse_membarrier();
                }
                ping.send(number).expect("the other end is there");
                assert_eq!(ponged.recv(), Ok(number));
                assert_eq!(mored.recv(), Ok(number));
            }
            drop(ping);
            echo.join().expect("it does not panic");
        },
    );
}

/// A writer that never executes a fence before the refusal, and a reader that arms repeatedly.
#[test]
fn refused_membarrier_loses_no_light_signal() {
    alone("refused_membarrier_loses_no_light_signal", || {
        const ROUNDS: u64 = 20_000;
        if !has_membarrier() {
            return;
        }
        let (gate, data) = (Arc::new(AtomicWaker::new()), Arc::new(AtomicU64::new(0)));
        let taken = Arc::new(AtomicU64::new(0));
        let writer = std::thread::spawn({
            let (gate, data, taken) = (gate.clone(), data.clone(), taken.clone());
            move || {
                for number in 1..=ROUNDS {
                    data.store(number, Ordering::Release);
                    gate.signal_light();
                    while taken.load(Ordering::Acquire) < number {
                        std::thread::yield_now();
                    }
                }
            }
        });
        let parker = Parker::current();
        for number in 1..=ROUNDS {
            if number == ROUNDS / 4 {
                refuse_membarrier();
            }
            while data.load(Ordering::Acquire) < number {
                gate.arm_heavy(parker.waker());
                if data.load(Ordering::Acquire) >= number {
                    gate.disarm();
                    break;
                }
                parker.park(None);
            }
            taken.store(number, Ordering::Release);
        }
        writer.join().expect("it does not panic");
        assert!(!barrier::is_asymmetric());
    });
}

/// Senders that have credits in advance do not keep them when the process changes to fences.
#[test]
fn refused_membarrier_keeps_the_capacity_exact() {
    alone("refused_membarrier_keeps_the_capacity_exact", || {
        const CAPACITY: u32 = 1_024;
        if !has_membarrier() {
            return;
        }
        let (sender, receiver) = mpsc::channel::<u32>(CAPACITY as usize).expect("in range");
        let idle: Vec<_> = (0..8).map(|_| sender.clone()).collect();
        // Each sender gets a lane, and a block of credits with it.
        for sender in &idle {
            for number in 0..100 {
                sender.send(number).expect("the receiver exists");
                receiver.recv().expect("a value was sent");
            }
        }
        refuse_membarrier();
        barrier::heavy();
        assert!(!barrier::is_asymmetric());
        for round in 0..2 {
            for number in 0..CAPACITY {
                let sent = sender.try_send(number);
                assert!(sent.is_ok(), "round {round}: refused at {number}");
            }
            assert!(sender.try_send(0).is_err());
            assert_eq!(receiver.try_iter().count(), CAPACITY as usize);
        }
        drop(idle);
    });
}
