//! Calls of a guest.

use std::time::Duration;

use thalweg::guest::OpenGuest;
use thalweg::{CallError, Code};
use thalweg_codegen_tests::guests::probe::{CellClient, Colors, Point, ProbeClient, Trouble};

use crate::library::{address, becomes, counter, few, guest};

fn point(name: &str, x: i32, y: i32) -> Point {
    let name = name.to_owned();
    Point { name, x, y }
}

#[test]
fn values_are_passed_in_both_directions() {
    let _few = few();
    let probe = ProbeClient::open(&address(&guest("values", &[]))).unwrap();
    assert_eq!(probe.add(3).wait(), Ok(3));
    assert_eq!(probe.add(4).wait(), Ok(7));
    assert_eq!(probe.echo("héllo").wait(), Ok("héllo".to_owned()));
    assert_eq!(probe.nothing().wait(), Ok(()));
    assert_eq!(probe.bytes(&[0, 255]).wait(), Ok(vec![0, 255]));
    assert_eq!(probe.later(5, 11).wait(), Ok(11));
    let points = [point("a", 1, 2), point("b", 3, 4)];
    let moved = probe.move_all(&points, &point("by", 10, 20), Some(Colors::BLUE));
    assert_eq!(moved.wait(), Ok(vec![point("b", 13, 0), point("a", 11, 0)]));
    let sums = probe.batch(|probe| [probe.add(1), probe.add(1)]);
    assert_eq!(sums.map(|sum| sum.wait()), [Ok(8), Ok(9)]);
}

#[test]
fn clients_have_states_of_their_own() {
    let _few = few();
    let path = guest("states", &[]);
    let first = ProbeClient::open(&address(&path)).unwrap();
    let second = ProbeClient::open(&address(&path)).unwrap();
    let states = counter(&path, "probe_states");
    assert_eq!((first.add(3).wait(), second.add(1).wait()), (Ok(3), Ok(1)));
    assert_eq!(states(), 2);
    drop(first);
    becomes("the first state ends", || states() == 1);
    assert_eq!(second.clone().add(1).wait(), Ok(2));
}

#[test]
fn errors_and_outcomes_reach_the_caller() {
    let _few = few();
    let path = guest("errors", &[]);
    let probe = ProbeClient::open(&address(&path)).unwrap();
    let long = "x".repeat(100_001);
    let refused = probe.echo(&long).wait();
    assert_eq!(refused, Err(CallError::Service(Trouble::TooLong(100_001))));

    let ended = |how| match probe.misbehave(how).wait() {
        Err(CallError::Ended(why)) => why,
        other => panic!("{other:?}"),
    };
    let malformed = ended(1);
    assert_eq!(malformed.code, Code::GuestLost);
    assert!(malformed.message.contains("probe.misbehave"), "{malformed}");
    assert!(malformed.message.contains("UTF-8"), "{malformed}");
    assert_eq!(probe.misbehave(2).wait(), Ok("first".to_owned()));
    assert_eq!(probe.add(5).wait(), Ok(5));
    let panicked = ended(5);
    assert_eq!(panicked.code, Code::GuestPanicked);
    assert!(panicked.message.contains("it went wrong"), "{panicked}");
    // A new state.
    assert_eq!(probe.add(5).wait(), Ok(5));

    let hurried = probe.with_timeout(Duration::from_millis(20));
    match hurried.later(200, 1).wait() {
        Err(CallError::Ended(why)) => assert_eq!(why.code, Code::TimedOut),
        other => panic!("{other:?}"),
    }
    let threads = counter(&path, "probe_threads");
    becomes("the threads end", || threads() == 0);
    let cancels = counter(&path, "probe_cancels");
    let before = cancels();
    let dropped = probe.later(200, 1);
    becomes("the guest has the call", || threads() == 1);
    drop(dropped);
    becomes("the guest is told", || cancels() == before + 1);
    // Its threads end before it is unloaded.
    becomes("the threads end", || threads() == 0);
}

#[test]
fn resources_are_dropped_with_their_last_client() {
    let _few = few();
    let path = guest("resources", &[]);
    let probe = ProbeClient::open(&address(&path)).unwrap();
    let cells = counter(&path, "probe_cells");
    let cell: CellClient = probe.cell(7).wait().unwrap();
    assert_eq!((cell.get().wait(), cells()), (Ok(7), 1));
    assert_eq!(cell.add(3).wait(), Ok(10));
    let other = probe.cell(1).wait().unwrap();
    assert_eq!(cells(), 2);
    drop(cell);
    becomes("the first is dropped", || cells() == 1);
    assert_eq!(probe.cell_open(other).wait(), Ok(1));
    assert_eq!(cells(), 0);
    // A resource keeps its client open.
    let last = probe.cell(5).wait().unwrap();
    drop(probe);
    assert_eq!(last.get().wait(), Ok(5));
    drop(last);
    becomes("the last is dropped", || cells() == 0);
}

#[test]
fn streams_end_as_the_guest_ends_them() {
    let _few = few();
    let path = guest("streams", &[]);
    let probe = ProbeClient::open(&address(&path)).unwrap();
    let numbers = probe.numbers(25_000).wait().unwrap();
    assert!(numbers.map(Result::unwrap).eq(0..25_000));

    let mut points = probe.points(3, 3).wait().unwrap();
    assert_eq!(points.next(), Some(Ok(point("point 1", 1, -1))));
    assert_eq!(points.next(), Some(Ok(point("point 2", 2, -2))));
    let because = Trouble::Because("it was asked to".to_owned());
    assert_eq!(points.next(), Some(Err(CallError::Service(because))));
    assert_eq!(points.next(), None);

    assert_eq!(probe.soon(9).wait().unwrap().wait(), Ok(9));
    // A reader that leaves.
    let mut numbers = probe.numbers(u64::MAX).wait().unwrap();
    assert_eq!(numbers.next(), Some(Ok(0)));
    drop(numbers);
    let threads = counter(&path, "probe_threads");
    becomes("the threads end", || threads() == 0);
}
