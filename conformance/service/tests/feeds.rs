//! Streams and futures inside results, in Rust.

use std::time::Duration;
use thalweg::port::CallError;
use thalweg::{Code, Failure};
use thalweg_conformance::Echo;
use thalweg_conformance::conformance::{ConformanceClient, Feed};

fn client() -> ConformanceClient {
    ConformanceClient::start(Echo::default).unwrap()
}

/// The outcome of a stream that did not end regularly.
fn ending(feed: Feed) -> Option<Code> {
    match feed.numbers.into_reader() {
        Ok(mut numbers) => numbers.find_map(Result::err).map(|why| why.code),
        Err(Failure { code, .. }) => Some(code),
    }
}

#[test]
fn an_error_has_its_streams() {
    let error = client().mixed(0).wait().unwrap_err();
    let CallError::Service(Feed { name, numbers, .. }) = error else {
        panic!("{error}");
    };
    assert_eq!(name, "none");
    let numbers = numbers
        .into_reader()
        .unwrap()
        .collect::<Result<Vec<_>, _>>();
    assert_eq!(numbers.unwrap(), [0, 1, 2]);
}

#[test]
fn streams_in_a_result_end_by_the_deadline_of_their_call() {
    let client = client();
    let soon = client.with_timeout(Duration::from_millis(50));
    let mut tries = 0;
    // The call itself may be slow on a busy machine.
    let feed = loop {
        match soon.endless_feed().wait() {
            Ok(feed) => break feed,
            Err(CallError::Ended(why)) => assert_eq!(why.code, Code::TimedOut, "{why}"),
            Err(CallError::Service(never)) => match never {},
        }
        tries += 1;
        assert!(tries < 1000);
    };
    assert_eq!(ending(feed), Some(Code::TimedOut));
    while client.running().wait().unwrap() > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn streams_in_a_result_end_with_their_client() {
    let client = client();
    let feed = client.endless_feed().wait().unwrap();
    client.close();
    let code = ending(feed);
    assert!(
        matches!(code, Some(Code::Cancelled | Code::Stale)),
        "{code:?}"
    );
}

#[test]
fn resources_in_an_abandoned_reply_are_closed() {
    let client = client();
    for _ in 0..100 {
        drop(client.endless_feed());
    }
    while client.running().wait().unwrap() > 0 {
        std::thread::yield_now();
    }
}
