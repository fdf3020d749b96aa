//! What crosses between languages: messages, streams, calls.

use std::hint::black_box;

use thalweg::wire::{Decode, message};
use thalweg_lab::lab::{LabClient, Match, MatchView};
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

/// A match becomes a message in memory that is there already.
pub fn encode_match(count: u64) {
    let contents = Contents::new();
    let mut buffer = Vec::new();
    for n in 0..count {
        let found = view(&contents.get(n));
        buffer = message::encode(black_box(&found), Match::HASH, buffer).expect("it is small");
        black_box(&buffer);
    }
}

/// A message is opened, checked and read in place.
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

/// A match goes through a stream: written by an actor, read in place on this thread.
pub fn stream_match(count: u64) {
    let lab = LabClient::start(|| LabService).expect("the runtime starts");
    let mut stream = lab.generate(count).wait().expect("it cannot fail");
    let mut lines = 0;
    while let Some(batch) = stream.next_batch(256, u64::MAX).expect("nobody closes it") {
        lines += batch.iter().map(|found| found.line).sum::<u64>();
    }
    assert_eq!(lines, count * (count + 1) / 2, "every match came once");
}

/// A call that does nothing: submitted, run by the service's actor, completed, waited for.
pub fn call(count: u64) {
    let lab = LabClient::start(|| LabService).expect("the runtime starts");
    for _ in 0..count {
        lab.nop().wait().expect("it cannot fail");
    }
}

/// The same, run by an actor of its own.
pub fn call_async(count: u64) {
    let lab = LabClient::start(|| LabService).expect("the runtime starts");
    for _ in 0..count {
        lab.nop_async().wait().expect("it cannot fail");
    }
}
