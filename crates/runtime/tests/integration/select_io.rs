//! Sockets and descriptors in `select!`.

use std::io::{self, Read, Write};
use std::time::Duration;

use thalweg_runtime::net::{TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixStream};
use thalweg_runtime::{Config, channel, init, run, select, sleep_async, spawn};

use crate::kit::LONG;

fn on_both(test: fn() -> io::Result<()>) {
    for workers in [1, 2] {
        init(Config::with_workers(workers))
            .unwrap()
            .run(test)
            .unwrap();
    }
}

/// Evaluates to the operation's result after it wins a `select!`.
macro_rules! wins {
    ($operation:expr) => {
        select! { value = $operation => value?, () = sleep_async(LONG) => unreachable!() }
    };
}

#[test]
fn a_socket_with_nothing_to_read_is_not_readable_and_wins_when_there_is() {
    on_both(|| {
        let (mut one, mut other) = UnixStream::pair()?;
        let (sender, mut numbers) = channel();
        let mut buf = [0; 8];
        for n in 0..3 {
            // This includes a socket that was not used before.
            let sender = sender.clone();
            spawn(move || sender.send(n).unwrap());
            select! {
                _ = other.readable_async() => panic!("nothing was written"),
                m = numbers.recv_async() => assert_eq!(m, Ok(n)),
            }
            select! {
                biased;
                _ = other.read_async(&mut buf) => panic!("nothing was written"),
                () = sleep_async(Duration::from_micros(10)) => {}
            }
        }
        wins!(one.writable_async());
        let writes = spawn(move || one.write_all(b"three").map(|()| one));
        wins!(other.readable_async());
        assert_eq!(wins!(other.read_async(&mut buf)), 5);
        let mut one = writes.join().unwrap()?;
        one.write_all(b"s")?;
        // The blocking calls and the futures share one readiness state.
        assert_eq!(other.read(&mut buf)?, 1);
        drop(one);
        assert_eq!(wins!(other.read_async(&mut buf)), 0);
        Ok(())
    });
}

#[test]
fn what_a_read_that_lost_had_is_there_for_the_next() {
    on_both(|| {
        let (mut one, other) = UnixStream::pair()?;
        let writes = spawn(move || (0..=255u8).try_for_each(|n| one.write_all(&[n])));
        let mut next = 0;
        while next <= 255 {
            let mut byte = [0];
            let read = select! {
                read = other.read_async(&mut byte) => Some(read?),
                () = sleep_async(Duration::from_micros(next % 70)) => None,
            };
            if read.is_some() {
                assert_eq!(u64::from(byte[0]), next);
                next += 1;
            }
        }
        writes.join().unwrap()
    });
}

#[test]
fn connections_and_datagrams_are_selected() {
    on_both(|| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        select! {
            biased;
            _ = listener.accept_async() => panic!("nobody connects"),
            () = sleep_async(Duration::from_micros(10)) => {}
        }
        let address = listener.local_addr()?;
        let connects = spawn(move || TcpStream::connect(address));
        let (stream, peer) = wins!(listener.accept_async());
        let client = connects.join().unwrap()?;
        assert_eq!(peer, client.local_addr()?);
        assert_eq!(wins!(client.write_async(b"hello")), 5);
        let mut buf = [0; 16];
        assert_eq!(wins!(stream.read_async(&mut buf)), 5);

        let (one, other) = (
            UdpSocket::bind("127.0.0.1:0")?,
            UdpSocket::bind("127.0.0.1:0")?,
        );
        select! {
            biased;
            _ = other.recv_async(&mut buf) => panic!("nobody sent"),
            () = sleep_async(Duration::from_micros(10)) => {}
        }
        let (to, from) = (other.local_addr()?, one.local_addr()?);
        spawn(move || one.send_to(b"word", to));
        assert_eq!(wins!(other.recv_from_async(&mut buf)), (4, from));

        let (one, other) = UnixDatagram::pair()?;
        spawn(move || one.send(b"text"));
        assert_eq!(wins!(other.recv_async(&mut buf)), 4);
        Ok(())
    });
}

#[test]
fn a_connection_is_begun_in_a_select_and_one_that_lost_is_given_up() {
    on_both(|| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let accepts = spawn(move || listener.accept());
        let stream = wins!(TcpStream::connect_async(address));
        let (accepted, peer) = accepts.join().unwrap()?;
        assert_eq!(peer, stream.local_addr()?);
        assert_eq!(wins!(stream.write_async(b"hello")), 5);
        assert_eq!(wins!(accepted.read_async(&mut [0; 8])), 5);
        // The listener was dropped when that actor ended.
        let refused = select! { stream = TcpStream::connect_async(address) => stream.unwrap_err() };
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);

        // A full accept queue: Linux accepts one connection more than the backlog, and drops later
        // ones.
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        rustix::net::listen(&listener, 0)?;
        let address = listener.local_addr()?;
        let mut kept = Vec::new();
        loop {
            select! {
                stream = TcpStream::connect_async(address) => kept.push(stream?),
                () = sleep_async(Duration::from_millis(50)) => break,
            }
            assert!(kept.len() < 8, "it is never full");
        }
        Ok(())
    });
}

#[test]
fn a_descriptor_of_anybody_is_selected_twice_at_once() {
    on_both(|| {
        let (reader, mut writer) = io::pipe()?;
        let (sender, mut numbers) = channel();
        spawn(move || sender.send(1).unwrap());
        select! {
            _ = thalweg_runtime::io::wait_readable_async(&reader) => panic!("nothing was written"),
            n = numbers.recv_async() => assert_eq!(n, Ok(1)),
        }
        spawn(move || writer.write_all(b"x").map(|()| writer));
        let mut which = [0; 2];
        wins!(async {
            select! {
                ready = thalweg_runtime::io::wait_readable_async(&reader) => { which[0] += 1; ready }
                ready = thalweg_runtime::io::wait_readable_async(&reader) => { which[1] += 1; ready }
            }
        });
        assert_eq!(which[0] + which[1], 1);
        // A file on disk is always ready.
        let file = std::fs::File::open("Cargo.toml")?;
        wins!(thalweg_runtime::io::wait_readable_async(&file));
        Ok(())
    });
}

#[test]
fn a_thread_has_what_is_there_and_is_told_that_it_cannot_wait() {
    let (one, other) = run(UnixStream::pair).unwrap();
    let mut buf = [0; 4];
    let error = select! { read = other.read_async(&mut buf) => read.unwrap_err() };
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    (&one).write_all(b"word").unwrap();
    let read = select! { read = other.read_async(&mut buf) => read.unwrap() };
    assert_eq!(read, 4);
}
