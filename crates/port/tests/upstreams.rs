//! Stream and future parameters: the caller writes, the service reads.
//!
//! A binary of its own: while a client closes, an answer of its service can win against the
//! cancellation if the process's runtime is busy, which `client_close_ends_the_upstream` rules out.

use std::sync::atomic::Ordering;

use thalweg_port::stream::UpstreamCore;
use thalweg_port::{
    CallError, Code, Object, Port, Upstream, UpstreamFuture, UpstreamWriter, insert,
};
use thalweg_queue::clock;
use thalweg_wire::{Decode, Handle, message};

#[path = "integration/lab/mod.rs"]
mod lab;

type Writer = UpstreamWriter<lab::Element>;

fn pair() -> (Writer, Upstream<lab::Element>) {
    Upstream::pair().unwrap()
}

fn element(number: u64) -> lab::Element {
    (number, Vec::new())
}

/// The outcome of the stream that the service reports.
fn said<T: std::fmt::Debug>(result: Result<T, CallError<String>>) -> String {
    match result.unwrap_err() {
        CallError::Service(said) => said,
        CallError::Ended(why) => panic!("{why}"),
    }
}

fn ended<T: std::fmt::Debug>(result: Result<T, CallError<String>>) -> Code {
    match result.unwrap_err() {
        CallError::Service(said) => panic!("{said}"),
        CallError::Ended(why) => why.code,
    }
}

/// Sends until an element is refused.
fn refused(writer: &Writer) -> Code {
    loop {
        if let Err(why) = writer.send(&element(1)) {
            return why.code;
        }
    }
}

#[test]
fn sent_elements_are_read_in_order() {
    let client = lab::client();
    let (writer, numbers) = pair();
    let sum = lab::sum_up(&client, numbers, lab::ALL);
    let count = if cfg!(miri) { 600 } else { 100_000 };
    for number in 0..count {
        writer.send(&element(number)).unwrap();
    }
    writer.end().unwrap();
    assert_eq!(sum.wait().unwrap(), (count, count * (count - 1) / 2));
}

#[test]
fn elements_sent_before_the_call_are_read() {
    let client = lab::client();
    let (writer, numbers) = pair();
    (1..=3).for_each(|number| writer.send(&element(number)).unwrap());
    writer.end().unwrap();
    let sum = lab::sum_up(&client, numbers, lab::ALL);
    assert_eq!(sum.wait().unwrap(), (3, 6));
}

#[test]
fn service_that_drops_the_stream_closes_it() {
    let client = lab::client();
    let (writer, numbers) = pair();
    let sum = lab::sum_up(&client, numbers, lab::THREE);
    assert_eq!(refused(&writer), Code::Closed);
    assert_eq!(sum.wait().unwrap(), (3, 3));
    assert_eq!(writer.end().unwrap_err().code, Code::Closed);
}

#[test]
fn unread_elements_are_bounded_by_count_and_bytes() {
    let (client, seen) = lab::seen();
    let (many, numbers) = pair();
    let first = lab::sum_up(&client, numbers, lab::HELD);
    let (large, numbers) = pair();
    let second = lab::sum_up(&client, numbers, lab::HELD);
    let fill = |writer: &Writer, element: &lab::Element| {
        (0..100_000)
            .take_while(|_| writer.send_until(element, 0).is_ok())
            .count()
    };
    assert_eq!(fill(&many, &element(1)), 256);
    let heavy = (1u64, vec![0u8; 300 << 10]);
    assert_eq!(fill(&large, &heavy), 3);
    // An element above the bound waits until the queue is empty.
    let huge = (1u64, vec![0u8; 2 << 20]);
    assert_eq!(
        large.send_until(&huge, 0).unwrap_err().code,
        Code::WouldPark
    );
    let soon = clock::now() + 1;
    assert_eq!(
        large.send_until(&huge, soon).unwrap_err().code,
        Code::TimedOut
    );
    seen.reads.store(true, Ordering::SeqCst);
    large.send(&huge).unwrap();
    large.end().unwrap();
    many.end().unwrap();
    assert_eq!(first.wait().unwrap().0, 256);
    assert_eq!(second.wait().unwrap().0, 4);
}

#[test]
fn writer_dropped_without_end_is_cancelled() {
    let client = lab::client();
    let (writer, numbers) = pair();
    let sum = lab::sum_up(&client, numbers, lab::ALL);
    writer.send(&element(1)).unwrap();
    drop(writer);
    assert_eq!(said(sum.wait()), "Cancelled");
}

#[test]
fn service_that_panics_ends_the_stream() {
    let client = lab::client();
    let (writer, numbers) = pair();
    let sum = lab::sum_up(&client, numbers, lab::PANICKING);
    assert_eq!(refused(&writer), Code::GuestPanicked);
    assert_eq!(ended(sum.wait()), Code::GuestPanicked);
}

#[test]
fn client_close_ends_the_upstream() {
    let client = lab::client();
    let (writer, numbers) = pair();
    let sum = lab::sum_up(&client, numbers, lab::ALL);
    writer.send(&element(1)).unwrap();
    client.close();
    assert_eq!(ended(sum.wait()), Code::Cancelled);
    let why = refused(&writer);
    assert!(matches!(why, Code::Cancelled | Code::Closed), "{why:?}");
}

#[test]
fn call_that_was_never_served_ends_its_upstream() {
    let client = lab::client();
    let busy = lab::until_stopped(&client);
    let late = client.with_timeout(std::time::Duration::from_nanos(1));
    let (writer, numbers) = pair();
    let sum = lab::sum_up(&late, numbers, lab::ALL);
    assert_eq!(ended(sum.wait()), Code::TimedOut);
    drop(busy);
    let why = refused(&writer);
    assert!(matches!(why, Code::TimedOut | Code::Closed), "{why:?}");
}

#[test]
fn deadline_ends_the_upstream_after_the_call() {
    let client = lab::client();
    let late = client.with_timeout(std::time::Duration::from_millis(20));
    let (writer, numbers) = pair();
    let sum = lab::sum_up(&late, numbers, lab::ALL);
    assert_eq!(ended(sum.wait()), Code::TimedOut);
    let why = refused(&writer);
    assert!(matches!(why, Code::TimedOut | Code::Closed), "{why:?}");
}

#[test]
fn malformed_element_ends_the_stream_for_both_sides() {
    let client = lab::client();
    let core = UpstreamCore::new(lab::Element::HASH, false);
    let handle = insert(Object::Upstream(std::sync::Arc::clone(&core))).unwrap();
    let sum =
        client.call::<_, (u64, u64), String>(lab::SUM, &(Handle(handle), lab::ALL), |reply| {
            reply.value()
        });
    // The list claims to be longer than the message.
    let mut bad = message::encode(&(1u64, vec![7u8]), lab::Element::HASH, Vec::new()).unwrap();
    let at = message::HEADER as usize + 12;
    bad[at..at + 4].copy_from_slice(&1_000_u32.to_le_bytes());
    let other = message::encode(&1u64, u64::HASH, Vec::new()).unwrap();
    let why = core.send(&other, 0).unwrap_err();
    assert_eq!(
        why.code,
        Code::Argument,
        "another layout is refused at once"
    );
    core.send(&bad, u64::MAX).unwrap();
    assert_eq!(said(sum.wait()), "Argument");
    assert_eq!(core.send(&bad, u64::MAX).unwrap_err().code, Code::Argument);
}

#[test]
fn handle_of_another_type_is_refused_as_a_stream_parameter() {
    let client = lab::client();
    let call = |handle: u64| {
        let sum =
            client.call::<_, (u64, u64), String>(lab::SUM, &(Handle(handle), lab::ALL), |reply| {
                reply.value()
            });
        ended(sum.wait())
    };
    let core = UpstreamCore::new(u64::HASH, false);
    let handle = insert(Object::Upstream(std::sync::Arc::clone(&core))).unwrap();
    assert_eq!(call(handle), Code::Argument);
    assert!(core.finish().is_err(), "the element will not be read");
    assert_eq!(call(handle), Code::Stale);
    let port = insert(Object::Port(Port::open(4).unwrap())).unwrap();
    assert_eq!(call(port), Code::Argument);
    assert!(
        thalweg_port::find(port).is_ok(),
        "the stream was not closed"
    );
}

#[test]
fn armed_writer_is_notified_of_capacity() {
    let client = lab::client();
    let core = UpstreamCore::new(u64::HASH, false);
    let port = Port::open(4).unwrap();
    let one = message::encode(&1u64, u64::HASH, Vec::new()).unwrap();
    while core.send(&one, 0).is_ok() {}
    assert!(!core.arm_port(&port, 1, 2).unwrap());
    assert!(
        !core.arm_port(&port, 3, 2).unwrap(),
        "in place of the first"
    );
    core.close();
    let told: Vec<_> = port.reap().unwrap().map(|told| told.token).collect();
    assert_eq!(told, [3]);
    assert!(core.arm_port(&port, 4, 2).unwrap());
    drop(client);
}

#[test]
fn future_parameter_is_set_once_or_cancelled() {
    let client = lab::client();
    let (writer, text) = UpstreamFuture::pair().unwrap();
    let first = lab::wait_for(&client, &text);
    writer.set("said").unwrap();
    assert_eq!(first.wait().unwrap(), "said");
    let (writer, text) = UpstreamFuture::<String>::pair().unwrap();
    let second = lab::wait_for(&client, &text);
    drop(writer);
    assert_eq!(said(second.wait()), "Cancelled");
}

#[test]
fn upstream_is_read_on_an_executor() {
    let (writer, text) = UpstreamFuture::<String>::pair().unwrap();
    let says = std::thread::spawn(move || writer.set("said").unwrap());
    assert_eq!(lab::block_on(text).unwrap(), "said");
    says.join().unwrap();
    let (writer, mut numbers) = pair();
    while writer.send_until(&element(1), 0).is_ok() {}
    let reads = std::thread::spawn(move || (numbers.by_ref().take(200).count(), numbers));
    lab::block_on(std::future::poll_fn(|context| writer.poll_room(context))).unwrap();
    let (count, numbers) = reads.join().unwrap();
    assert_eq!(count, 200);
    drop(numbers);
    assert_eq!(refused(&writer), Code::Closed);
}
