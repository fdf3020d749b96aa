//! The boundary between languages: messages, streams, calls.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thalweg::port::{Event, Instance, Pending, Port, StreamReader, SubmitOptions, Submitter};
use thalweg::wire::{Decode, message};
use thalweg_lab::lab::{
    self, EchoRequest, EchoRequestView, LabClient, LabServer, Match, MatchView,
};
use thalweg_lab::{Content, Contents, LabService};

fn view<'a>(content: &Content<'a>) -> MatchView<'a> {
    let Content {
        path,
        line,
        column,
        text,
        cut,
    } = *content;
    MatchView {
        path,
        line,
        column,
        text,
        path_bytes: None,
        text_bytes: None,
        cut,
    }
}

/// Encodes a match into existing memory.
pub fn encode_match(count: u64) {
    let contents = Contents::new();
    let mut buffer = Vec::new();
    for n in 0..count {
        let found = view(&contents.get(n));
        message::encode_into(black_box(&found), Match::HASH, &mut buffer).expect("it is small");
        black_box(&buffer);
    }
}

/// Encodes a text and a number into existing memory.
pub fn encode_request(count: u64) {
    let mut buffer = Vec::new();
    for n in 0..count {
        let request = EchoRequestView {
            message: black_box("hello, and so much more"),
            delay_ms: n as i64,
        };
        message::encode_into(&request, EchoRequest::HASH, &mut buffer).expect("it is small");
        black_box(&buffer);
    }
}

/// Opens a message, checks it and reads it in place.
pub fn view_match(count: u64) {
    let contents = Contents::new();
    let bytes =
        message::encode(&view(&contents.get(1)), Match::HASH, Vec::new()).expect("it is small");
    for _ in 0..count {
        let opened = message::open(black_box(&bytes), Match::HASH).expect("just written");
        let found = opened.view::<Match>().expect("just written");
        black_box((found.line, found.path.len(), found.text.len()));
    }
}

/// Sends matches through a stream: an actor writes them, this thread reads them in place.
pub fn stream_match(count: u64) {
    let lab = LabClient::start(LabService::default).expect("the runtime starts");
    let mut stream = lab.generate(count).wait().expect("it cannot fail");
    let mut lines = 0;
    while let Some(batch) = stream.next_batch(256, u64::MAX).expect("nobody closes it") {
        lines += batch.iter().map(|found| found.line).sum::<u64>();
    }
    assert_eq!(lines, count * (count + 1) / 2, "every match came once");
}

/// Sends events of 488 bytes through a stream, written and read 256 at a time.
pub fn stream_event(count: u64) {
    let lab = LabClient::start(LabService::default).expect("the runtime starts");
    let mut stream = lab.events(count, 256).wait().expect("it cannot fail");
    let mut sum = 0;
    while let Some(batch) = stream.next_batch(256, u64::MAX).expect("nobody closes it") {
        sum += batch.iter().map(|event| event.quote.number).sum::<u64>();
    }
    assert_eq!(sum, count * (count - 1) / 2, "every event came once");
}

/// The same, one at a time, to a callback on the writer's thread.
pub fn stream_direct(count: u64) {
    subscribe(count, |lab, count| lab.events(count, 1));
}

/// The same, with events that the service writes field by field in the stream's memory.
pub fn stream_direct_reserved(count: u64) {
    subscribe(count, LabClient::events_reserved);
}

fn subscribe(count: u64, open: fn(&LabClient, u64) -> Pending<StreamReader<lab::Event>>) {
    // Events that are written before the subscription are queued and cost less. The stream is full when it
    // is subscribed to, so that each run has the same number of them, and the difference between two
    // counts contains only events that go to the callback at once.
    const QUEUED_AT_MOST: u64 = 16_384;
    let count = QUEUED_AT_MOST + count;
    let lab = LabClient::start(LabService::default).expect("the runtime starts");
    let stream = open(&lab, count).wait().expect("it cannot fail");
    while stream.stats().waits == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let sum = Arc::new(AtomicU64::new(0));
    let its = Arc::clone(&sum);
    let subscribed = stream.subscribe(move |event| {
        if let Event::Records(events) = event {
            let words = events.iter().map(|event| event.quote.number).sum::<u64>();
            its.fetch_add(words, Ordering::Relaxed);
        }
        ControlFlow::Continue(())
    });
    let subscription = subscribed.expect("it is open");
    subscription.join(u64::MAX).expect("it ends");
    let sum = sum.load(Ordering::Relaxed);
    assert_eq!(sum, count * (count - 1) / 2, "every event came once");
}

/// A call that does nothing: submitted, run by the service's actor, completed, awaited.
pub fn call(count: u64) {
    let lab = LabClient::start(LabService::default).expect("the runtime starts");
    for _ in 0..count {
        lab.nop().wait().expect("it cannot fail");
    }
}

/// A call of a brief method that changes and reads the instance's state, run by this thread.
pub fn call_brief(count: u64) {
    let lab = LabClient::start(LabService::default).expect("the runtime starts");
    for _ in 0..count {
        lab.tally(1).wait().expect("it cannot fail");
    }
    let sum = lab.tally(0).wait().expect("it cannot fail");
    assert_eq!(sum, count, "each call was served once");
}

/// The same as `call`, run by a separate actor.
pub fn call_async(count: u64) {
    let lab = LabClient::start(LabService::default).expect("the runtime starts");
    for _ in 0..count {
        lab.nop_async().wait().expect("it cannot fail");
    }
}

/// Calls that do nothing, 64 in a submission to a port, and reaped: the cost of one call.
pub fn submit_reap_64(count: u64) {
    const BATCH: u64 = 64;
    let runtime = Instance::runtime().expect("the runtime starts");
    let instance = Instance::open(|| LabServer::new(LabService::default()), runtime);
    let port = Port::open(BATCH as u32).expect("a capacity in range");
    let args = message::encode(&(), instance.package().methods[0].params, Vec::new())
        .expect("it is small");
    for first in (0..count).step_by(BATCH as usize) {
        let batch = BATCH.min(count - first);
        let mut submitter = Submitter::for_calls(&instance, &port, batch as usize);
        for token in 0..batch {
            submitter
                .submit(token, 0, &args, u64::MAX, SubmitOptions::default())
                .expect("there is room");
        }
        drop(submitter);
        let mut done = 0;
        while done < batch {
            port.wait(u64::MAX).expect("nobody closes it");
            done += port.reap().expect("nobody else reaps").count() as u64;
        }
    }
    instance.close();
}
