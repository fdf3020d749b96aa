//! Loom models: a completion while its port closes, and while its port gets a descriptor to wake.

use std::io::Read;
use std::os::fd::AsRawFd;

use loom::sync::Arc;
use loom::thread;

use thalweg_queue::explore::{large_model, model};

use crate::code::Code;
use crate::completion::Completion;
use crate::port::Port;

fn ready(token: u64) -> Completion {
    Completion::ready(token, 0)
}

/// A loom `Arc` that shares the port, which uses the system's `Arc`.
fn open() -> Arc<std::sync::Arc<Port>> {
    Arc::new(Port::open(2).unwrap())
}

/// The completion is delivered or dropped, its slot is released, and nothing stays in the ring.
#[test]
fn completion_during_close_leaves_nothing_behind() {
    model(|| {
        let port = open();
        port.reserve().unwrap();
        let service = thread::spawn({
            let port = port.clone();
            move || port.complete(ready(1))
        });
        port.close();
        service.join().unwrap();
        assert!(port.is_empty());
        assert_eq!(port.reserved(), 0);
        assert_eq!(port.reserve().unwrap_err().code, Code::Closed);
    });
}

/// Two threads submit while one slot is free, and one thread reaps: no slot is used twice or lost.
#[test]
fn slots_are_neither_duplicated_nor_lost() {
    large_model(|| {
        let port = open();
        port.reserve().unwrap();
        let submitter = thread::spawn({
            let port = port.clone();
            move || {
                let got = port.reserve().is_ok();
                if got {
                    port.complete(ready(2));
                }
                got
            }
        });
        let service = thread::spawn({
            let port = port.clone();
            move || port.complete(ready(1))
        });
        let also = port.reserve().is_ok();
        let mut reaped = port.reap().unwrap().count();
        let submitted = submitter.join().unwrap();
        service.join().unwrap();
        reaped += port.reap().unwrap().count();
        assert_eq!(reaped, 1 + usize::from(submitted));
        assert_eq!(port.reserved(), u32::from(also));
        assert!(submitted || also, "a slot was free for one of them");
    });
}

/// The port is armed, and a completion arrives while a descriptor is set. A caller that watches only
/// the descriptor is woken, and after the descriptor was removed nothing is written to it.
#[test]
fn wake_up_reaches_a_descriptor_that_is_set_while_the_port_is_armed() {
    model(|| {
        let port = open();
        port.reserve().unwrap();
        assert!(!port.arm().unwrap());
        let (mut reader, writer) = std::io::pipe().unwrap();
        let service = thread::spawn({
            let port = port.clone();
            move || port.complete(ready(1))
        });
        port.set_wake_fd(Some(writer.as_raw_fd())).unwrap();
        service.join().unwrap();
        port.set_wake_fd(None).unwrap();
        drop(writer);
        let mut woken = Vec::new();
        reader.read_to_end(&mut woken).unwrap();
        assert!(!woken.is_empty(), "the wake-up is lost");
        assert_eq!(port.reap().unwrap().count(), 1);
    });
}
