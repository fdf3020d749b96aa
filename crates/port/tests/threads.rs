//! A host on a system that provides no more threads.
//!
//! A binary of its own: it installs seccomp filters in threads of the process.
#![cfg(all(target_os = "linux", not(miri)))]

use std::sync::Arc;
use std::time::Duration;

use thalweg_port::{
    Client, Code, Incoming, Instance, Method, MethodOptions, Package, Port, QueueLimits, Service,
};
use thalweg_queue::clock;
use thalweg_runtime::{
    Actor, Config, Context, Handler, Runtime, Sender, StartError, channel, runtime, start,
    yield_now,
};
use thalweg_wire::{Decode, message};

/// Keeps its calls and never answers them.
struct Silent(Vec<Incoming>);

impl Service for Silent {
    const PACKAGE: &'static Package = &Package {
        name: "test:silent",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits::DEFAULT,
        methods: &[Method {
            name: "silent.wait",
            params: <()>::HASH,
            ok: <()>::HASH,
            error: 0,
            element: 0,
            is_async: false,
            options: MethodOptions::NONE,
            stream: None,
            description: "",
        }],
    };

    fn dispatch(&mut self, incoming: Incoming) {
        self.0.push(incoming);
    }
}

/// Runs `job` on a thread that cannot start another one. A seccomp filter for that thread alone
/// refuses `clone` and `clone3` with the error of `RLIMIT_NPROC`, also for root.
fn without_threads<R: Send>(job: impl FnOnce() -> R + Send) -> R {
    fn refuse_clones() {
        const fn op(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
            let code = code as u16;
            libc::sock_filter { code, jt, jf, k }
        }
        let mut filter = [
            // The number of the system call is the first word of `seccomp_data`.
            op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
            op(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                1,
                0,
                libc::SYS_clone as u32,
            ),
            op(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                0,
                1,
                libc::SYS_clone3 as u32,
            ),
            op(
                libc::BPF_RET | libc::BPF_K,
                0,
                0,
                libc::SECCOMP_RET_ERRNO | libc::EAGAIN as u32,
            ),
            op(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog {
            len: filter.len() as u16,
            filter: filter.as_mut_ptr(),
        };
        // SAFETY: both calls read their arguments, which outlive the calls, and change only this
        // thread.
        let installed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::syscall(
                    libc::SYS_seccomp,
                    libc::SECCOMP_SET_MODE_FILTER,
                    0,
                    &raw const program,
                ) == 0
        };
        assert!(installed, "{}", std::io::Error::last_os_error());
        let refused = std::thread::Builder::new().spawn(|| ());
        assert!(refused.is_err(), "the filter refuses threads");
    }
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            refuse_clones();
            job()
        });
        thread.join().unwrap()
    })
}

#[test]
fn runtime_without_threads_is_not_started_and_starts_later() {
    let refused = without_threads(|| Runtime::start(Config::with_workers(1)).err());
    assert!(
        matches!(refused, Some(StartError::Thread(_))),
        "{refused:?}"
    );
    assert!(Runtime::start(Config::with_workers(1)).is_ok());
}

#[test]
fn timers_of_a_runtime_without_threads_fire() {
    struct Late(Sender<u32>);
    impl Actor for Late {}
    impl Handler<u32> for Late {
        type Reply = ();
        fn handle(&mut self, number: u32, _: &Context<'_, Self>) {
            self.0.send(number).unwrap();
        }
    }
    let in_order = || {
        runtime::run(|| {
            let (sender, receiver) = channel();
            let late = start(Late(sender));
            // The worker sleeps until the first one is due, and is busy until the others are.
            late.send_after(Duration::from_millis(60), 3);
            late.send_after(Duration::from_millis(30), 2);
            late.send_after(Duration::from_millis(10), 1);
            let first = receiver.recv().unwrap();
            let next = || loop {
                match receiver.try_recv() {
                    Ok(number) => return number,
                    Err(_) => yield_now(),
                }
            };
            (first, next(), next())
        })
    };
    assert_eq!(without_threads(in_order), (1, 2, 3));
    assert_eq!(in_order(), (1, 2, 3));
}

#[test]
fn client_without_threads_is_overloaded_and_opens_later() {
    let open = || Client::start(|| Silent(Vec::new()));
    let refused = without_threads(|| open().err()).expect("no thread is available");
    assert_eq!(
        (refused.code, refused.retryable()),
        (Code::Overloaded, true)
    );
    assert!(open().is_ok());
}

#[test]
fn deadline_without_threads_ends_the_call() {
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let instance = Instance::open(|| Silent(Vec::new()), runtime.handle().clone());
    let port = Port::open(4).unwrap();
    let ended = without_threads(|| {
        let args = message::encode(&(), <()>::HASH, Vec::new()).unwrap();
        let deadline = clock::deadline(Duration::from_millis(1));
        instance.submit(&port, 7, 0, &args, deadline).unwrap();
        let patience = clock::deadline(Duration::from_secs(60));
        port.wait(patience).unwrap();
        let ended: Vec<_> = port.reap().unwrap().collect();
        assert_eq!(ended.len(), 1);
        (ended[0].token, ended[0].code)
    });
    assert_eq!(ended, (7, Code::TimedOut));
    instance.close();
    port.close();
    drop((Arc::clone(&port), runtime));
}
