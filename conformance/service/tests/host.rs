//! A host in Rust that provides host imports with generated code.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use thalweg::runtime::wait;
use thalweg::{Call, CallError, Code};
use thalweg_conformance::Echo;
use thalweg_conformance::conformance::{ConformanceClient, CounterClient, Oracle};

/// The number of `nod` calls of all hosts.
static NODS: AtomicU32 = AtomicU32::new(0);

/// A host that waits at the key 100 until it is cancelled, and panics at 102.
struct Book;

impl Oracle for Book {
    fn look_up(&mut self, call: &Call, key: u64) -> Result<String, u64> {
        while key == 100 && call.check().is_ok() {
            wait::yield_now();
        }
        assert!(key != 102, "at 102, on purpose");
        if key.is_multiple_of(2) {
            Ok(format!("number {key}"))
        } else {
            Err(key)
        }
    }

    fn tell(&mut self, _: &Call, words: Vec<String>, at: Option<u32>) -> u64 {
        let bytes: usize = words.iter().map(String::len).sum();
        bytes as u64 + u64::from(at.unwrap_or(0))
    }

    fn nod(&mut self, _: &Call) {
        NODS.fetch_add(1, Ordering::SeqCst);
    }
}

fn asking() -> ConformanceClient {
    ConformanceClient::start_with_host(Echo::default, || Book).expect("the runtime starts")
}

#[test]
fn the_host_answers() {
    let client = asking();
    for key in [2, 1_000_000] {
        let said = Ok(format!("number {key}"));
        assert_eq!(
            client.ask(key).wait(),
            said.clone().map_err(CallError::Service)
        );
        assert_eq!(
            client.ask_later(key).wait(),
            said.map_err(CallError::Service)
        );
    }
    let error = Err(CallError::Service(Code::Error as u32));
    assert_eq!(client.ask(7).wait(), error);
    assert_eq!(client.ask_later(7).wait(), error);
    let before = NODS.load(Ordering::SeqCst);
    let words: &[&str] = &["four", "", "five5"];
    assert_eq!(client.tell(words, Some(100)).wait(), Ok(109));
    assert_eq!(client.tell(words, None).wait(), Ok(9));
    assert_eq!(NODS.load(Ordering::SeqCst) - before, 2);
}

#[test]
fn host_that_panics_or_hangs_ends_the_import_and_serves_the_next() {
    let client = asking();
    let panicked = Err(CallError::Service(Code::GuestPanicked as u32));
    assert_eq!(client.ask(102).wait(), panicked);
    let hasty = client.with_timeout(Duration::from_millis(20));
    match hasty.ask_later(100).wait() {
        Err(CallError::Ended(failure)) => assert_eq!(failure.code, Code::TimedOut),
        other => panic!("{other:?}"),
    }
    assert_eq!(client.ask(4).wait(), Ok("number 4".to_owned()));
}

#[test]
fn import_without_a_host_returns_closed() {
    let client = ConformanceClient::start(Echo::default).expect("the runtime starts");
    let closed = Err(CallError::Service(Code::Closed as u32));
    assert_eq!(client.ask(2).wait(), closed);
}

/// A host that calls another client after it was cancelled: as a nested call, and with a detached
/// client.
struct Late {
    of: ConformanceClient,
    counters: Option<[CounterClient; 2]>,
    begins: Sender<()>,
    tells: Sender<[bool; 4]>,
}

impl Oracle for Late {
    fn look_up(&mut self, call: &Call, _: u64) -> Result<String, u64> {
        let _ = self.begins.send(());
        while call.check().is_ok() {
            wait::yield_now();
        }
        let [part, apart] = self.counters.take().expect("it is asked once");
        let went_well = [
            self.of.echo_u8(1).wait().is_ok(),
            self.of.detached().echo_u8(1).wait().is_ok(),
            part.add(1).wait().is_ok(),
            apart.detached().add(1).wait().is_ok(),
        ];
        let _ = self.tells.send(went_well);
        Err(0)
    }

    fn tell(&mut self, _: &Call, _: Vec<String>, _: Option<u32>) -> u64 {
        0
    }

    fn nod(&mut self, _: &Call) {}
}

#[test]
fn calls_of_a_detached_client_are_not_nested() {
    let of = ConformanceClient::start(Echo::default).expect("the runtime starts");
    let (begins, begun) = mpsc::channel();
    let (tells, told) = mpsc::channel();
    let asking = ConformanceClient::start_with_host(Echo::default, move || Late {
        of: of.clone(),
        counters: Some([1, 2].map(|start| of.counter(start).wait().expect("it is made"))),
        begins: begins.clone(),
        tells: tells.clone(),
    })
    .expect("the runtime starts");
    let asked = asking.ask_later(1);
    begun.recv().expect("the host is asked");
    asked.cancel();
    assert!(asked.wait().is_err());
    let went_well = told.recv().expect("the host says how it went");
    assert_eq!(went_well, [false, true, false, true]);
}
