//! When a guest is unloaded.

use thalweg::guest::OpenGuest;
use thalweg::{CallError, Code};
use thalweg_codegen_tests::guests::probe::ProbeClient;

use crate::library::{address, becomes, few, guest, is_loaded};

#[test]
fn guest_is_unloaded_after_its_last_client_and_opened_again() {
    let _few = few();
    let path = guest("closing", &[]);
    for _ in 0..3 {
        let first = ProbeClient::open(&address(&path)).unwrap();
        let second = ProbeClient::open(&address(&path)).unwrap();
        // The static variables are new: the guest refuses to be loaded twice.
        assert_eq!(first.add(1).wait(), Ok(1));
        assert_eq!(second.add(1).wait(), Ok(1));
        drop(first);
        assert!(is_loaded(&path));
        assert_eq!(second.add(1).wait(), Ok(2));
        drop(second);
        becomes("it is unloaded", || !is_loaded(&path));
    }
}

#[test]
fn guest_is_opened_again_while_it_is_unloaded() {
    let _few = few();
    let address = address(&guest("again", &[]));
    for number in 1..=50 {
        let probe = ProbeClient::open(&address).unwrap();
        assert_eq!(probe.add(number).wait(), Ok(number));
    }
}

#[test]
fn stream_keeps_the_guest_open() {
    let _few = few();
    let path = guest("kept", &[]);
    let probe = ProbeClient::open(&address(&path)).unwrap();
    let mut numbers = probe.numbers(10).wait().unwrap();
    drop(probe);
    assert!(numbers.by_ref().map(Result::unwrap).eq(0..10));
    assert!(is_loaded(&path));
    drop(numbers);
    becomes("it is unloaded", || !is_loaded(&path));
}

#[test]
fn closed_client_refuses_calls() {
    let _few = few();
    let probe = ProbeClient::open(&address(&guest("closed", &[]))).unwrap();
    let clone = probe.clone();
    assert_eq!(clone.add(1).wait(), Ok(1));
    probe.close();
    match clone.add(1).wait() {
        Err(CallError::Ended(why)) => assert_eq!(why.code, Code::Closed),
        other => panic!("{other:?}"),
    }
}
