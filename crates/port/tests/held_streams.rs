//! Streams and futures inside of results: who reads them, and that nobody's are closed.

mod lab;

use std::sync::atomic::Ordering;
use thalweg_port::{Code, Instance, Port};

/// What `lab::sources` is asked for by the test that counts what nobody reads, and by the one that does not.
const COUNTED: u8 = 1;
const GOES_ON: u8 = 2;

/// How many of the counted streams have seen that nobody reads them.
fn unread() -> u32 {
    lab::UNREAD[usize::from(COUNTED)].load(Ordering::SeqCst)
}

fn wait_for_unread(count: u32) {
    while unread() < count {
        std::thread::yield_now();
    }
}

#[test]
fn streams_and_a_future_in_a_result_are_read_each_by_itself() {
    let client = lab::client();
    let (streams, said) = lab::sources(&client, 3, lab::ENDS).wait().unwrap();
    assert_eq!(streams.len(), 3);
    // Not in the order in which they stand there.
    for (last, held) in streams.into_iter().enumerate().rev() {
        let numbers = held.into_reader().unwrap().collect::<Result<Vec<_>, _>>();
        assert_eq!(numbers.unwrap(), (0..=last as u64).collect::<Vec<_>>());
    }
    assert_eq!(said.unwrap().into_reader().unwrap().wait().unwrap(), "said");
}

#[test]
fn what_is_not_read_is_closed_whoever_has_it_last() {
    // One test for all: they count in one place, and nothing else counts there.
    let client = lab::client();
    let (mut streams, _) = lab::sources(&client, 3, COUNTED).wait().unwrap();
    let kept = streams.remove(1);
    drop(streams);
    wait_for_unread(2);
    let mut reader = kept.into_reader().unwrap();
    assert_eq!(reader.next().unwrap().unwrap(), 0);
    assert_eq!(unread(), 2);
    drop(reader);
    wait_for_unread(3);

    // A completion that nobody reads, of which one was taken out.
    let instance = Instance::open(lab::Lab::default, Instance::runtime().unwrap());
    let port = Port::open(4).unwrap();
    let args = lab::encode(lab::SOURCES, &(2u64, COUNTED));
    instance
        .submit(&port, 0, lab::SOURCES, &args, u64::MAX)
        .unwrap();
    port.wait(u64::MAX).unwrap();
    let mut given = port.reap().unwrap().next().unwrap();
    let taken = given.take(0).unwrap();
    drop(given);
    wait_for_unread(4);
    thalweg_port::close_handle(taken).unwrap();
    wait_for_unread(5);
}

#[test]
fn a_reader_outlives_its_client_and_ends_with_one_that_is_closed() {
    let client = lab::client();
    let (mut streams, said) = lab::sources(&client, 2, lab::ENDS).wait().unwrap();
    drop(client);
    let mut first = streams.remove(0).into_reader().unwrap();
    assert_eq!(first.next().unwrap().unwrap(), 0);
    assert!(first.next().is_none());
    drop((streams, said));

    let client = lab::client();
    let (mut streams, _) = lab::sources(&client, 1, GOES_ON).wait().unwrap();
    client.close();
    let ended = streams.remove(0).into_reader().map(|reader| reader.last());
    let code = match ended {
        Ok(last) => last.unwrap().unwrap_err().code,
        Err(failure) => failure.code,
    };
    assert!(matches!(code, Code::Cancelled | Code::Stale), "{code:?}");
}
