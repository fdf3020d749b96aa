//! Sockets, from actors and from threads.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use thalweg_runtime::inspect::ActorState;
use thalweg_runtime::io::Stopping;
use thalweg_runtime::net::{
    Shutdown, TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream,
};
use thalweg_runtime::{Config, Runtime, run, runtime, sleep, spawn};

fn with<T: 'static>(workers: usize, main: impl FnOnce() -> T + 'static) -> T {
    runtime::init(Config::with_workers(workers))
        .unwrap()
        .run(main)
}

/// Echoes what each of this many connections sends.
fn echo(connections: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    spawn(move || {
        for stream in listener.incoming().take(connections) {
            let mut stream = stream.unwrap();
            spawn(move || {
                let mut buf = [0; 1000];
                loop {
                    match stream.read(&mut buf) {
                        Ok(0) | Err(_) => return,
                        Ok(read) => stream.write_all(&buf[..read]).unwrap(),
                    }
                }
            });
        }
    });
    address
}

/// The two ends of a connection.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (one, listener.accept().unwrap().0)
}

#[test]
fn hundred_connections_are_served_by_one_worker_and_by_two() {
    for workers in [1, 2] {
        with(workers, || {
            let address = echo(100);
            let clients: Vec<_> = (0..100_u8)
                .map(|mine| {
                    spawn(move || {
                        let mut stream = TcpStream::connect(address).unwrap();
                        let mut answer = [0; 64];
                        for _ in 0..20 {
                            stream.write_all(&[mine; 64]).unwrap();
                            stream.read_exact(&mut answer).unwrap();
                            assert_eq!(answer, [mine; 64]);
                        }
                    })
                })
                .collect();
            for client in clients {
                client.join().unwrap();
            }
        });
    }
}

#[test]
fn data_beyond_the_buffers_arrives_while_both_ends_write() {
    for workers in [1, 2] {
        with(workers, || {
            const BYTES: usize = 8 << 20;
            let (one, other) = pair();
            let ends = [one, other].map(|stream| {
                let stream = Arc::new(stream);
                let writes = Arc::clone(&stream);
                let writer = spawn(move || {
                    let part: Vec<u8> = (0..100_003).map(|at| at as u8).collect();
                    let mut left = BYTES;
                    while left > 0 {
                        let length = part.len().min(left);
                        (&*writes).write_all(&part[..length]).unwrap();
                        left -= length;
                    }
                    writes.shutdown(Shutdown::Write).unwrap();
                });
                let reader = spawn(move || {
                    let mut all = Vec::new();
                    (&*stream).read_to_end(&mut all).unwrap();
                    all
                });
                (writer, reader)
            });
            for (writer, reader) in ends {
                writer.join().unwrap();
                let all = reader.join().unwrap();
                assert_eq!(all.len(), BYTES);
                let wrong = all.iter().enumerate().find(|(at, byte)| {
                    let expected = (at % 100_003) as u8;
                    **byte != expected
                });
                assert_eq!(wrong, None);
            }
        });
    }
}

#[test]
fn read_and_write_end_at_their_deadline() {
    run(|| {
        let (mut one, _other) = pair();
        one.set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        let start = Instant::now();
        let error = one.read(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(start.elapsed() >= Duration::from_millis(20));
        one.set_write_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        let error = std::iter::repeat_with(|| one.write_all(&[0; 1 << 16]))
            .find_map(Result::err)
            .unwrap();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(one.set_read_timeout(Some(Duration::ZERO)).is_err());
    });
}

#[test]
fn closed_peer_ends_the_read_and_fails_the_write() {
    run(|| {
        let (mut one, other) = pair();
        let reader = spawn(move || {
            assert_eq!(one.read(&mut [0; 8]).unwrap(), 0);
            assert_eq!(one.read(&mut [0; 8]).unwrap(), 0, "the end stays");
            loop {
                if let Err(error) = one.write_all(&[0; 1000]) {
                    return error.kind();
                }
                sleep(Duration::from_millis(1));
            }
        });
        sleep(Duration::from_millis(2));
        drop(other);
        let kind = reader.join().unwrap();
        assert!(matches!(
            kind,
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
        ));
    });
}

#[test]
fn last_bytes_and_end_that_arrive_together_are_both_read() {
    for workers in [1, 2] {
        with(workers, || {
            for _ in 0..200 {
                let (mut one, mut other) = pair();
                let reader = spawn(move || {
                    let mut all = Vec::new();
                    one.read_to_end(&mut all).map(|_| all)
                });
                thalweg_runtime::yield_now();
                other.write_all(b"last").unwrap();
                drop(other);
                assert_eq!(reader.join().unwrap().unwrap(), b"last");
            }
        });
    }
}

#[test]
fn urgent_byte_does_not_hide_the_bytes_after_it() {
    run(|| {
        let (mut one, other) = pair();
        let reader = spawn(move || {
            let mut all = [0; 6];
            one.read_exact(&mut all).map(|()| all)
        });
        sleep(Duration::from_millis(2));
        (&other).write_all(b"abc").unwrap();
        rustix::net::send(&other, b"!", rustix::net::SendFlags::OOB).unwrap();
        (&other).write_all(b"def").unwrap();
        assert_eq!(&reader.join().unwrap().unwrap(), b"abcdef");
    });
}

#[test]
fn shutdown_wakes_a_reader_of_the_same_socket() {
    run(|| {
        let (one, _other) = pair();
        let one = Arc::new(one);
        let same = Arc::clone(&one);
        let reader = spawn(move || (&*same).read(&mut [0; 8]));
        sleep(Duration::from_millis(2));
        one.shutdown(Shutdown::Both).unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), 0);
    });
}

#[test]
fn dropped_clone_does_not_disturb_a_waiter_on_another_clone() {
    run(|| {
        let (one, mut other) = pair();
        let clone = one.try_clone().unwrap();
        clone
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let reader = spawn(move || {
            let mut word = [0; 4];
            (&one).read_exact(&mut word).map(|()| word)
        });
        let waits = spawn(move || {
            clone.set_read_timeout(Some(Duration::from_millis(5)))?;
            clone.peek(&mut [0; 1])
        });
        assert_eq!(
            waits.join().unwrap().unwrap_err().kind(),
            ErrorKind::TimedOut
        );
        other.write_all(b"word").unwrap();
        assert_eq!(&reader.join().unwrap().unwrap(), b"word");
    });
}

#[test]
fn socket_moves_between_runtimes_and_outlives_the_first() {
    let first = Runtime::start(Config::with_workers(1)).unwrap();
    let second = Runtime::start(Config::with_workers(2)).unwrap();
    let (mut one, mut other) = pair();
    let waited = first.handle().spawn(move || {
        one.set_read_timeout(Some(Duration::from_millis(5)))
            .unwrap();
        let waited = one.read(&mut [0; 8]).unwrap_err().kind();
        one.set_read_timeout(None).unwrap();
        (one, waited)
    });
    let (mut one, waited) = waited.join().unwrap();
    assert_eq!(waited, ErrorKind::TimedOut);
    drop(first);
    let (tx, rx) = mpsc::channel();
    second.handle().spawn(move || {
        let mut word = [0; 4];
        one.read_exact(&mut word).unwrap();
        tx.send((one, word)).unwrap();
    });
    std::thread::sleep(Duration::from_millis(5));
    other.write_all(b"word").unwrap();
    let (mut one, word) = rx.recv().unwrap();
    assert_eq!(&word, b"word");
    // The socket also moves on to a plain thread.
    other.write_all(b"more").unwrap();
    let mut more = [0; 4];
    one.read_exact(&mut more).unwrap();
    assert_eq!(&more, b"more");
}

#[test]
fn waiter_of_a_stopping_runtime_continues_with_the_poller_of_another() {
    let first = Runtime::start(Config::with_workers(1)).unwrap();
    let second = Runtime::start(Config::with_workers(1)).unwrap();
    let (one, mut other) = pair();
    let one = Arc::new(one);
    let same = Arc::clone(&one);
    first.handle().spawn(move || (&*same).read(&mut [0; 1]));
    std::thread::sleep(Duration::from_millis(5));
    let reader = second.handle().spawn(move || {
        let mut byte = [0];
        (&*one).read(&mut byte).map(|_| byte)
    });
    std::thread::sleep(Duration::from_millis(5));
    drop(first);
    std::thread::sleep(Duration::from_millis(5));
    other.write_all(b"x").unwrap();
    assert_eq!(&reader.join().unwrap().unwrap(), b"x");
}

#[test]
fn runtime_stop_ends_accepts_reads_and_floods() {
    let runtime = Runtime::start(Config::with_workers(2)).unwrap();
    let (tx, rx) = mpsc::channel();
    // An actor that has not begun when the runtime stops never begins.
    let (begin, begun) = mpsc::channel();
    let (one, other) = pair();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let accepts = tx.clone();
    let handle = runtime.handle();
    let accepting = handle.spawn(move || {
        let error = listener.accept().map(|_| ()).unwrap_err();
        accepts.send(("accepts", error))
    });
    let one = Arc::new(one);
    let (same, reads) = (Arc::clone(&one), tx.clone());
    let begins = begin.clone();
    handle.spawn(move || {
        begins.send(()).unwrap();
        let error = loop {
            if let Err(error) = (&*same).read(&mut [0; 4096]) {
                break error;
            }
        };
        reads.send(("reads", error))
    });
    handle.spawn(move || {
        begin.send(()).unwrap();
        let error = loop {
            if let Err(error) = (&other).write_all(&[0; 4096]) {
                break error;
            }
        };
        tx.send(("floods", error))
    });
    assert_eq!(begun.iter().take(2).count(), 2);
    while !handle
        .actors()
        .get(accepting.id())
        .is_some_and(|actor| matches!(actor.state, ActorState::Waiting { .. }))
    {
        std::thread::yield_now();
    }
    drop(runtime);
    // Waiting actors receive the error. Running actors end without one when their time slice is
    // over.
    let errors: Vec<_> = rx.iter().collect();
    assert!(
        errors.iter().any(|(who, _)| *who == "accepts"),
        "{errors:?}"
    );
    for (who, error) in errors {
        assert!(error.get_ref().unwrap().is::<Stopping>(), "{who}: {error}");
    }
}

#[test]
fn plain_threads_use_the_same_types() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut word = [0; 4];
        stream.read_exact(&mut word).unwrap();
        stream.write_all(&word).unwrap();
    });
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(5)))
        .unwrap();
    let waited = stream.read(&mut [0; 4]).unwrap_err();
    assert_eq!(waited.kind(), ErrorKind::TimedOut);
    stream.set_read_timeout(None).unwrap();
    stream.write_all(b"word").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "word");
    server.join().unwrap();
}

#[test]
fn name_is_resolved_and_connect_without_a_listener_fails() {
    run(|| {
        let listener = TcpListener::bind("localhost:0").unwrap();
        let address = listener.local_addr().unwrap();
        TcpStream::connect(("localhost", address.port())).unwrap();
        drop(listener);
        let refused = TcpStream::connect(address).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let day = Duration::from_secs(86_400);
        let refused = TcpStream::connect_timeout(&address, day).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        assert!(TcpStream::connect("no port").is_err());
        let none: &[SocketAddr] = &[];
        let error = TcpStream::connect(none).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn connect_without_an_accept_times_out() {
    run(|| {
        // A full accept queue: Linux accepts one connection more than the backlog, and drops later
        // ones.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let mut kept = Vec::new();
        let failed = (0..8).find_map(|_| {
            match TcpStream::connect_timeout(&address, Duration::from_millis(50)) {
                Ok(stream) => {
                    kept.push(stream);
                    None
                }
                Err(error) => Some(error.kind()),
            }
        });
        assert_eq!(failed, Some(ErrorKind::TimedOut));
    });
}

#[test]
fn types_convert_from_and_into_those_of_std() {
    run(|| {
        let (one, other) = pair();
        let mut one = std::net::TcpStream::try_from(one).unwrap();
        one.write_all(b"x").unwrap();
        let mut other = TcpStream::try_from(std::net::TcpStream::try_from(other).unwrap()).unwrap();
        other.read_exact(&mut [0]).unwrap();
        let waits = spawn(move || other.read(&mut [0]));
        sleep(Duration::from_millis(1));
        drop(one);
        assert_eq!(waits.join().unwrap().unwrap(), 0);
    });
}

#[test]
fn datagrams_arrive_and_a_receive_ends_at_its_deadline() {
    with(2, || {
        let (one, other) = (
            UdpSocket::bind("127.0.0.1:0").unwrap(),
            UdpSocket::bind("127.0.0.1:0").unwrap(),
        );
        one.connect(other.local_addr().unwrap()).unwrap();
        let received = spawn(move || {
            let mut buf = [0; 16];
            let (length, from) = other.recv_from(&mut buf)?;
            other.set_read_timeout(Some(Duration::from_millis(5)))?;
            let waited = other.recv(&mut buf).unwrap_err().kind();
            std::io::Result::Ok((buf[..length].to_vec(), from, waited))
        });
        sleep(Duration::from_millis(1));
        one.send(b"hello").unwrap();
        let (text, from, waited) = received.join().unwrap().unwrap();
        assert_eq!(
            (&*text, from, waited),
            (
                &b"hello"[..],
                one.local_addr().unwrap(),
                ErrorKind::TimedOut
            )
        );
    });
}

#[test]
fn refused_datagram_is_reported_once_without_a_busy_loop() {
    run(|| {
        let one = UdpSocket::bind("127.0.0.1:0").unwrap();
        let gone = UdpSocket::bind("127.0.0.1:0").unwrap();
        one.connect(gone.local_addr().unwrap()).unwrap();
        drop(gone);
        one.set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        one.send(b"x").unwrap();
        let refused = one.recv(&mut [0; 8]).unwrap_err().kind();
        assert_eq!(refused, ErrorKind::ConnectionRefused);
        let waited = one.recv(&mut [0; 8]).unwrap_err().kind();
        assert_eq!(waited, ErrorKind::TimedOut);
    });
}

#[test]
fn unix_socket_connect_waits_while_the_accept_queue_is_full() {
    let folder = std::env::temp_dir().join(format!("thalweg-net-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("stream");
    with(2, move || {
        let listener = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let clients: Vec<_> = (0..5)
            .map(|_| {
                let path = path.clone();
                spawn(move || {
                    let mut stream = UnixStream::connect(&path)?;
                    stream.write_all(b"x")?;
                    stream.read(&mut [0; 1])
                })
            })
            .collect();
        sleep(Duration::from_millis(5));
        for _ in 0..clients.len() {
            let (mut stream, _) = listener.accept().unwrap();
            spawn(move || {
                stream.read_exact(&mut [0; 1])?;
                stream.write_all(b"y")
            });
        }
        for client in clients {
            assert_eq!(client.join().unwrap().unwrap(), 1);
        }
    });
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn unix_datagram_send_waits_while_the_peers_queue_is_full() {
    with(2, || {
        let (one, other) = UnixDatagram::pair().unwrap();
        let sender =
            spawn(move || (0..1_000_u32).try_for_each(|n| one.send(&n.to_le_bytes()).map(|_| ())));
        let mut buf = [0; 8];
        for n in 0..1_000_u32 {
            assert_eq!(other.recv(&mut buf).unwrap(), 4);
            assert_eq!(buf[..4], n.to_le_bytes());
        }
        sender.join().unwrap().unwrap();
    });
}

#[test]
fn several_actors_accept_from_one_listener() {
    with(2, || {
        let listener = Arc::new(TcpListener::bind("127.0.0.1:0").unwrap());
        let address = listener.local_addr().unwrap();
        let accepted: Vec<_> = (0..4)
            .map(|_| {
                let listener = Arc::clone(&listener);
                spawn(move || {
                    for _ in 0..25 {
                        listener.accept().unwrap();
                    }
                })
            })
            .collect();
        for _ in 0..100 {
            TcpStream::connect(address).unwrap();
        }
        for one in accepted {
            one.join().unwrap();
        }
    });
}
