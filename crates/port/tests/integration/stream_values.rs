//! Streams and futures inside results: their readers, and that unread ones are closed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use thalweg_port::{Code, Instance, Port};

use crate::lab;

#[test]
fn streams_and_a_future_in_a_result_are_read_independently() {
    let client = lab::client();
    let (streams, said) = lab::sources(&client, 3, lab::ENDS).wait().unwrap();
    assert_eq!(streams.len(), 3);
    // In another order than in the value.
    for (last, held) in streams.into_iter().enumerate().rev() {
        let numbers = held.into_reader().unwrap().collect::<Result<Vec<_>, _>>();
        assert_eq!(numbers.unwrap(), (0..=last as u64).collect::<Vec<_>>());
    }
    assert_eq!(said.unwrap().into_reader().unwrap().wait().unwrap(), "said");
}

#[test]
fn unread_stream_is_closed_by_its_last_owner() {
    let (client, seen) = lab::seen();
    let (mut streams, _) = lab::sources(&client, 3, lab::GOES_ON).wait().unwrap();
    let kept = streams.remove(1);
    drop(streams);
    lab::wait_until(&seen.unread, 2);
    let mut reader = kept.into_reader().unwrap();
    assert_eq!(reader.next().unwrap().unwrap(), 0);
    assert_eq!(seen.unread.load(Ordering::SeqCst), 2);
    drop(reader);
    lab::wait_until(&seen.unread, 3);
}

#[test]
fn stream_left_in_a_completion_is_closed() {
    let seen = Arc::default();
    let instance = Instance::open(lab::make(&seen), Instance::runtime().unwrap());
    let port = Port::open(4).unwrap();
    let args = lab::encode(lab::SOURCES, &(2u64, lab::GOES_ON));
    instance
        .submit(&port, 0, lab::SOURCES, &args, u64::MAX)
        .unwrap();
    port.wait(u64::MAX).unwrap();
    let mut given = port.reap().unwrap().next().unwrap();
    let taken = given.take(0).unwrap();
    drop(given);
    lab::wait_until(&seen.unread, 1);
    assert_eq!(seen.unread.load(Ordering::SeqCst), 1);
    thalweg_port::close_handle(taken).unwrap();
    lab::wait_until(&seen.unread, 2);
}

#[test]
fn reader_survives_a_dropped_client_and_ends_with_a_closed_one() {
    let client = lab::client();
    let (mut streams, said) = lab::sources(&client, 2, lab::ENDS).wait().unwrap();
    drop(client);
    let mut first = streams.remove(0).into_reader().unwrap();
    assert_eq!(first.next().unwrap().unwrap(), 0);
    assert!(first.next().is_none());
    drop((streams, said));

    let client = lab::client();
    let (mut streams, _) = lab::sources(&client, 1, lab::GOES_ON).wait().unwrap();
    client.close();
    let ended = streams.remove(0).into_reader().map(|reader| reader.last());
    let code = match ended {
        Ok(last) => last.unwrap().unwrap_err().code,
        Err(failure) => failure.code,
    };
    assert!(matches!(code, Code::Cancelled | Code::Stale), "{code:?}");
}
