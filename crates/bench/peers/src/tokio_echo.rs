//! `tokio_current_thread`, `tokio_multi_thread`: TCP connections with one task that sends requests
//! and one that answers.
//!
//! Reads and writes are polled like `tokio::io::AsyncReadExt` and `AsyncWriteExt` poll them: a read
//! that does not fill its buffer tells tokio that the socket is empty, and saves the next try.

use std::future::poll_fn;
use std::io;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn;

/// The message for operations on a live loopback connection, which cannot fail.
const ENDS: &str = "both ends of a connection on loopback live";

/// Bytes per message.
pub const MESSAGE: usize = 64;
/// The size of the read buffer.
pub const ROOM: usize = 1024;

/// Opens `connections` one after another, then makes `echoes` round trips on all of them at once.
/// Each message is `message` of its connection and its number. Returns the time of each echo in ns,
/// the number of wrong echoes, and the number of bytes that the servers sent back.
pub async fn echo(
    connections: u64,
    echoes: u64,
    message: fn(u64, u64) -> [u8; MESSAGE],
) -> (Vec<u64>, u64, u64) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.expect(ENDS);
    let address = listener.local_addr().expect(ENDS);
    let mut pairs = Vec::with_capacity(connections as usize);
    for _ in 0..connections {
        let client = TcpStream::connect(address).await.expect(ENDS);
        // Closing the connection this way leaves no port in TIME_WAIT.
        client.set_zero_linger().expect(ENDS);
        pairs.push((client, listener.accept().await.expect(ENDS).0));
    }
    let (mut clients, mut servers) = (Vec::new(), Vec::new());
    for (number, (client, server)) in (0..).zip(pairs) {
        servers.push(spawn(answer(server)));
        clients.push(spawn(ask(client, number, echoes, message)));
    }
    let (mut took, mut wrong, mut answered) = (Vec::new(), 0, 0);
    for client in clients {
        let (of_client, of_these) = client.await.expect(ENDS);
        took.extend(of_client);
        wrong += of_these;
    }
    for server in servers {
        answered += server.await.expect(ENDS);
    }
    (took, wrong, answered)
}

async fn answer(mut stream: TcpStream) -> u64 {
    let mut room = [0; ROOM];
    let mut answered = 0;
    loop {
        match read(&mut stream, &mut room).await {
            Ok(0) => break,
            Ok(count) => {
                write(&mut stream, &room[..count]).await.expect(ENDS);
                answered += count as u64;
            }
            // A client that does not linger ends its connection this way.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{ENDS}: {error}"),
        }
    }
    answered
}

async fn ask(
    mut stream: TcpStream,
    connection: u64,
    echoes: u64,
    message: fn(u64, u64) -> [u8; MESSAGE],
) -> (Vec<u64>, u64) {
    let mut room = [0; ROOM];
    let (mut took, mut wrong) = (Vec::with_capacity(echoes as usize), 0);
    for number in 0..echoes {
        let sent = message(connection, number);
        let began = Instant::now();
        write(&mut stream, &sent).await.expect(ENDS);
        let mut came = 0;
        while came < MESSAGE {
            match read(&mut stream, &mut room[came..]).await.expect(ENDS) {
                0 => panic!("{ENDS}"),
                count => came += count,
            }
        }
        took.push(began.elapsed().as_nanos() as u64);
        wrong += u64::from(room[..came] != sent);
    }
    (took, wrong)
}

async fn read(stream: &mut TcpStream, room: &mut [u8]) -> io::Result<usize> {
    let mut room = ReadBuf::new(room);
    poll_fn(|context| Pin::new(&mut *stream).poll_read(context, &mut room)).await?;
    Ok(room.filled().len())
}

async fn write(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = poll_fn(|context| Pin::new(&mut *stream).poll_write(context, bytes)).await?;
        bytes = &bytes[written..];
    }
    Ok(())
}
