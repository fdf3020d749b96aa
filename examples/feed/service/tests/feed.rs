//! Behaviour that the host programs do not test.

use std::time::Duration;

use thalweg::port::Reason;
use thalweg::wire::Decode;
use thalweg_feed::Market;
use thalweg_feed::feed::{Event, FeedClient, Kind};

#[test]
fn an_event_has_488_bytes() {
    assert_eq!(<Event as Decode>::SIZE, 488);
}

#[test]
fn a_market_waits_for_a_slow_ledger() {
    let client = FeedClient::start(|| Market).unwrap();
    let events = client.all(20_000).wait().unwrap();
    // Far more events than the capacity; none was read until here.
    assert_eq!(client.newest(1).wait().unwrap().count(), 1);
    let numbers = events.map(|event| event.unwrap().number);
    assert!(numbers.eq(0..20_000));
}

#[test]
fn a_screen_is_told_of_every_halt_and_of_what_is_missing() {
    let client = FeedClient::start(|| Market).unwrap();
    let mut events = client.recent(10_000).wait().unwrap();
    let (mut halts, mut next) = (Vec::new(), 0);
    while let Some(batch) = events.next_batch(100, u64::MAX).unwrap() {
        if batch.is_control() {
            assert!(batch.iter().all(|event| event.kind == Kind::Halt));
            halts.extend(batch.iter().map(|event| event.number));
            continue;
        }
        if batch.lost_before() > 0 {
            assert_eq!(batch.lost_reason(), Some(Reason::DroppedOldest));
        }
        next += batch.lost_before();
        assert_eq!(batch.first_sequence(), next);
        let numbers = batch.iter().map(|event| event.number);
        assert!(numbers.eq(next..next + u64::from(batch.len())));
        next += u64::from(batch.len());
    }
    assert_eq!(next, 10_000);
    assert!(halts.into_iter().eq((1..10).map(|halt| halt * 1_000)));
}

#[test]
fn a_ledger_that_goes_ends_the_market_s_work_for_it() {
    let client = FeedClient::start(|| Market).unwrap();
    let mut events = client.all(u64::MAX).wait().unwrap();
    assert_eq!(events.next().unwrap().unwrap().number, 0);
    drop(events);
    // The service still serves calls.
    let hurried = client.with_timeout(Duration::from_secs(60));
    assert_eq!(hurried.newest(3).wait().unwrap().count(), 1);
}
