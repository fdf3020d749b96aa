//! Futures in results.

use std::sync::atomic::Ordering;
use thalweg_port::Code;

use crate::lab;

#[test]
fn future_with_a_value_returns_it_at_once() {
    let client = lab::client();
    assert_eq!(
        lab::later(&client, lab::SAID)
            .wait()
            .unwrap()
            .wait()
            .unwrap(),
        "said"
    );
    let mut future = lab::later(&client, lab::SAID).wait().unwrap();
    assert_eq!(future.wait_until(u64::MAX).unwrap(), "said");
    let awaited = lab::later(&client, lab::SAID).wait().unwrap();
    assert_eq!(lab::block_on(awaited).unwrap(), "said");
}

#[test]
fn future_without_a_value_waits_for_it() {
    let (client, seen) = lab::seen();
    let mut waits = lab::later(&client, lab::LATER).wait().unwrap();
    assert_eq!(waits.wait_until(0).unwrap_err().code, Code::WouldPark);
    let soon = thalweg_queue::clock::now() + 1;
    assert_eq!(waits.wait_until(soon).unwrap_err().code, Code::TimedOut);
    let awaits = lab::later(&client, lab::LATER).wait().unwrap();
    seen.says.store(true, Ordering::SeqCst);
    assert_eq!(waits.wait().unwrap(), "later");
    assert_eq!(lab::block_on(awaits).unwrap(), "later");
}

#[test]
fn future_writer_dropped_without_a_value_is_guest_lost() {
    let client = lab::client();
    let lost = lab::later(&client, lab::DEFAULT).wait().unwrap();
    assert_eq!(lost.wait().unwrap_err().code, Code::GuestLost);
    let awaited = lab::later(&client, lab::DEFAULT).wait().unwrap();
    assert_eq!(lab::block_on(awaited).unwrap_err().code, Code::GuestLost);
    let mut again = lab::later(&client, lab::DEFAULT).wait().unwrap();
    assert_eq!(
        again.wait_until(u64::MAX).unwrap_err().code,
        Code::GuestLost
    );
}

#[test]
fn future_writer_that_panics_is_guest_panicked() {
    let (client, seen) = lab::seen();
    let panics = lab::later(&client, lab::PANICS).wait().unwrap();
    seen.panics.store(true, Ordering::SeqCst);
    assert_eq!(panics.wait().unwrap_err().code, Code::GuestPanicked);
}

#[test]
fn dropped_future_notifies_its_writer() {
    let (client, seen) = lab::seen();
    drop(lab::later(&client, lab::NEVER).wait().unwrap());
    lab::wait_until(&seen.unwanted, 1);
}

#[test]
fn client_close_ends_its_futures() {
    let client = lab::client();
    let never = lab::later(&client, lab::NEVER).wait().unwrap();
    client.close();
    assert_eq!(never.wait().unwrap_err().code, Code::Cancelled);
}
