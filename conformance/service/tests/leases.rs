//! Async constructors and destructors: each resource is destroyed once.

use std::time::{Duration, Instant};

use thalweg::{CallError, Code};
use thalweg_conformance::Echo;
use thalweg_conformance::conformance::{ConformanceClient, LeaseClient};

fn open() -> ConformanceClient {
    ConformanceClient::start(Echo::default).unwrap()
}

fn made(client: &ConformanceClient, ms: u32) -> LeaseClient {
    client.lease(ms).wait().unwrap()
}

/// The outcome.
fn code<T, E>(result: Result<T, CallError<E>>) -> Code {
    match result {
        Ok(_) => Code::Ok,
        Err(CallError::Service(_)) => Code::Error,
        Err(CallError::Ended(why)) => why.code,
    }
}

/// Waits until the service reports these numbers of existing and of destroyed leases.
fn wait_for(client: &ConformanceClient, wanted: (u32, u32)) {
    let began = Instant::now();
    loop {
        let (living, ended) = client.leases().wait().unwrap();
        if (living, ended) == wanted {
            return;
        }
        assert!(
            ended <= wanted.1 && began.elapsed() < Duration::from_secs(60),
            "{living} live and {ended} have ended; {wanted:?} was wanted"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn destroy_waits_for_the_destructor() {
    let client = open();
    made(&client, 50).destroy().wait().unwrap();
    assert_eq!(client.leases().wait().unwrap(), (0, 1));
}

#[test]
fn resource_client_with_a_timeout_leaves_the_other_client_usable() {
    let client = open();
    let lease = made(&client, 2);
    let hurried = lease.with_timeout(Duration::from_secs(60));
    drop(hurried.detached());
    assert_eq!(client.leases().wait().unwrap(), (1, 0));
    drop(lease);
    assert_eq!(client.leases().wait().unwrap(), (1, 0));
    // Dropping the last client closes the instance.
    drop(hurried);
    wait_for(&client, (0, 1));

    let lease = made(&client, 2);
    let hurried = lease.with_timeout(Duration::from_secs(60));
    hurried.destroy().wait().unwrap();
    assert_eq!(code(lease.destroy().wait()), Code::Argument);
    assert_eq!(client.leases().wait().unwrap(), (0, 2));
}

#[test]
fn destructor_runs_once_after_destroy_or_drop() {
    let client = open();
    let leases: Vec<_> = (0..200).map(|_| made(&client, 2)).collect();
    let mut ending = Vec::new();
    for (i, lease) in leases.into_iter().enumerate() {
        match i % 3 {
            0 => ending.push(lease.destroy()),
            1 => drop(lease),
            // Nothing waits for the destructor. It is not cancelled once it has begun.
            _ => drop(std::thread::spawn(move || drop(lease)).join()),
        }
    }
    ending.into_iter().for_each(|end| end.wait().unwrap());
    wait_for(&client, (0, 200));
}

#[test]
fn more_destructors_than_queued_calls_all_run() {
    let client = open();
    // Two rounds, each while other calls sleep.
    let asleep: Vec<_> = (0..500).map(|_| client.sleep(200)).collect();
    let leases: Vec<_> = (0..5000).map(|_| made(&client, 0)).collect();
    drop(leases);
    wait_for(&client, (0, 5000));
    asleep.into_iter().for_each(|end| drop(end.wait()));
}

#[test]
fn destructor_runs_after_its_caller_has_gone() {
    for ms in [20, 200, 2_000, 20_000] {
        let client = open();
        let (began, deadline) = (Instant::now(), Duration::from_millis(ms));
        let pending = client.with_timeout(deadline).lease(2 * ms as u32);
        // This call is served after the constructor has begun.
        client.leases().wait().unwrap();
        let in_time = began.elapsed() < deadline;
        let ended = code(pending.wait());
        // Tries again if the machine was too slow: the constructor may not have begun, or may have
        // finished before the deadline.
        if in_time && ended == Code::TimedOut {
            // The constructor finished after its call had ended.
            return wait_for(&client, (0, 1));
        }
    }
    panic!("no deadline was long enough for a constructor to begin");
}

#[test]
fn resource_of_a_closed_client_is_dropped_and_its_calls_end_as_closed() {
    let client = open();
    let lease = made(&client, 2);
    client.close();
    assert_eq!(code(lease.destroy().wait()), Code::Closed);
}

#[test]
fn resource_of_a_replaced_service_is_stale() {
    let client = open();
    let (lease, other) = (made(&client, 2), made(&client, 2));
    client.panic("once").wait().unwrap_err();
    assert_eq!(code(lease.destroy().wait()), Code::Stale);
    drop(other);
    // The new incarnation has no leases.
    assert_eq!(client.leases().wait().unwrap(), (0, 0));
}

#[test]
fn resource_under_construction_during_a_replacement_is_stale() {
    let client = open();
    let pending = client.lease(100);
    // This call is served after the constructor has begun.
    client.panic("meanwhile").wait().unwrap_err();
    let lease = pending.wait().unwrap();
    assert_eq!(code(lease.ms().wait()), Code::Stale);
}
