//! A walk stops at a deadline, on cancellation, for a slow or closed reader, and for a closed
//! client.

use std::time::Duration;

use thalweg::{CallError, Code, StreamReader};
use thalweg_search::search::{Progress, QueryClient};

use crate::tree::Tree;
use crate::{client, code, ending, query};

/// Of [`endless`]: 48 GiB to read, which no machine does before these tests look.
const FILES: u64 = 6_000;

/// Many names for one file: a walk of seconds that takes no room. Each has one line with "needle"
/// at its beginning.
fn endless() -> Tree {
    let tree = Tree::new();
    let mut bytes = b"needle\n".to_vec();
    bytes.resize(8 << 20, b'\n');
    tree.file("d/0", bytes);
    for number in 1..FILES {
        std::fs::hard_link(tree.path("d/0"), tree.path(format!("d/{number}"))).unwrap();
    }
    tree
}

/// The newest state of a query's searches.
fn now(query: &QueryClient) -> Progress {
    let mut states = query.progress().wait().unwrap();
    states.next().unwrap().unwrap()
}

/// Waits until a file was read to its end.
fn begun(query: &QueryClient) {
    while now(query).files == 0 {
        std::thread::yield_now();
    }
}

/// Waits until the searches of a query make no more progress, and says where that was.
fn rest(query: &QueryClient) -> Progress {
    let mut before = now(query);
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let state = now(query);
        if state == before {
            return state;
        }
        before = state;
    }
}

#[test]
fn a_deadline_ends_the_stream_and_the_walk() {
    let tree = endless();
    let client = client();
    let query = query(&client, "needle", tree.root());
    let hurried = client.with_timeout(Duration::from_millis(150));
    let matches = hurried.matches(&query).wait().unwrap();
    let last = matches.last().unwrap();
    let Err(CallError::Ended(why)) = last else {
        panic!("the walk goes on after the deadline");
    };
    assert_eq!(why.code, Code::TimedOut);
    assert!(rest(&query).files < FILES);
}

#[test]
fn a_deadline_ends_a_count() {
    let tree = endless();
    let client = client().with_timeout(Duration::from_millis(50));
    let failure = ending(client.count("needle", tree.root().to_str().unwrap()).wait());
    assert_eq!(failure.code, Code::TimedOut);
}

#[test]
fn a_cancel_ends_a_count_and_the_service_serves_on() {
    let tree = endless();
    let client = client();
    let count = client.count("needle", tree.root().to_str().unwrap());
    std::thread::sleep(Duration::from_millis(20));
    count.cancel();
    assert_eq!(code(count.wait()), Code::Cancelled);
    assert_eq!(client.escape("a.b").wait().unwrap(), r"a\.b");
}

#[test]
fn a_reader_that_closes_its_stream_stops_the_walk_also_where_nothing_matches() {
    let tree = endless();
    // One file is found at once; in the others there is nothing to send, and so nothing that could
    // fail.
    tree.file("once", b"only here\n");
    let client = client();
    let query = query(&client, "only here", tree.root());
    let matches = client.matches(&query).wait().unwrap();
    begun(&query);
    drop(matches);
    assert!(rest(&query).files < FILES);
}

#[test]
fn a_slow_reader_stops_the_walk_and_gets_everything_in_the_end() {
    let tree = Tree::new();
    for number in 0..400 {
        tree.file(
            number.to_string(),
            "needle and more of this line\n".repeat(1_000),
        );
    }
    let client = client();
    let query = query(&client, "needle", tree.root());
    let mut matches = client.matches(&query).wait().unwrap();
    begun(&query);
    let stopped = rest(&query);
    assert!(stopped.files < 100, "{stopped:?}");
    assert!(
        stopped.matches < 20_000,
        "what is under way is bounded: {stopped:?}"
    );
    let read = matches.by_ref().map(Result::unwrap).count();
    assert_eq!(read, 400_000);
    assert_eq!(now(&query).files, 400);
}

#[test]
fn a_service_with_a_stopped_walk_answers_others_meanwhile() {
    let tree = Tree::with(&[("f", &b"needle\n".repeat(100_000))]);
    let client = client();
    let query = query(&client, "needle", tree.root());
    let streams: Vec<StreamReader<_, _>> = (0..20)
        .map(|_| client.matches(&query).wait().unwrap())
        .collect();
    rest(&query);
    assert_eq!(
        client.count("needle", tree.root().to_str().unwrap()).wait(),
        Ok(100_000)
    );
    for stream in streams {
        assert_eq!(stream.count(), 100_000);
    }
}

#[test]
fn a_stream_goes_on_when_the_query_and_the_client_it_came_from_are_gone() {
    let tree = Tree::with(&[("f", &b"needle\n".repeat(100_000))]);
    let client = client();
    let query = query(&client, "needle", tree.root());
    let matches = client.matches(&query).wait().unwrap();
    drop((client, query));
    assert_eq!(matches.map(Result::unwrap).count(), 100_000);
}

#[test]
fn dropping_the_call_stops_the_walk_before_its_answer_and_after() {
    let tree = endless();
    let client = client();
    let query = query(&client, "needle", tree.root());
    drop(client.matches(&query));
    assert!(rest(&query).files < FILES);
    let before = now(&query).files;
    let answered = client.matches(&query);
    while now(&query).files == before {
        std::thread::yield_now();
    }
    drop(answered);
    assert!(rest(&query).files < FILES);
    let alive = client.count("(", "/");
    assert!(matches!(alive.wait(), Err(CallError::Service(_))));
}
