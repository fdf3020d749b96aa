//! A completion against the close of its port.

use loom::sync::Arc;
use loom::thread;

use thalweg_queue::explore::{large_model, model};

use crate::code::Code;
use crate::completion::Completion;
use crate::port::Port;

fn ready(token: u64) -> Completion {
    Completion::ready(token, 0)
}

/// Shares what is made of the system's `Arc`.
fn open() -> Arc<std::sync::Arc<Port>> {
    Arc::new(Port::open(2).unwrap())
}

/// It is delivered or dropped, its slot comes back, and nothing stays in the ring.
#[test]
fn a_completion_beside_the_close_leaves_nothing_behind() {
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
        assert_eq!(port.promised(), 0);
        assert_eq!(port.reserve().unwrap_err().code, Code::Closed);
    });
}

/// Two submit where one place is left, and one reaps: nobody gets a place that is taken, and no place is lost.
#[test]
fn places_are_neither_doubled_nor_lost() {
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
        assert_eq!(port.promised(), u32::from(also));
        assert!(submitted || also, "there was a place for one of them");
    });
}
