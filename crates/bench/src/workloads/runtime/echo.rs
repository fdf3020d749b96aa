//! `io_echo`: sockets with an actor at each end.
//!
//! Clients and servers run in the runtime under test. A program that serves requests usually also
//! makes requests, and a client outside of the runtime would take a processor away from the
//! measured one. Half of the measured time is therefore the client's, on both sides alike.

use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thalweg_peers::tokio_echo::{self, MESSAGE, ROOM};
use thalweg_runtime::net::{TcpListener, TcpStream};
use thalweg_runtime::spawn;

use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::judgement::Target;
use crate::latency::Latencies;
use crate::problem::Problem;
use crate::workloads::{Knob, Workload};

use super::driver::{self, run};
use super::pair::{Pair, same};
use super::point::{DRIVERS, HOOK, LIFETIME, OWN, Point, WORKERS};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "io_echo",
    group: "runtime",
    what: "64 B there and back over TCP on loopback, with an actor at each end of a connection; both ends are in the runtime under test.",
    source: "smarm's benchmark of this name: 1, 100 and 1,000 connections with 10,000 echoes each",
    peers: &["tokio_current_thread", "tokio_multi_thread"],
    seconds: 240,
    run: run::<Echo>,
    knobs: &[
        LIFETIME,
        WORKERS,
        Knob {
            default: "all",
            what: "the drivers that tokio runs between tasks: all, because sockets need them",
            ..DRIVERS
        },
        HOOK,
        OWN[0],
        OWN[1],
        OWN[2],
        Knob {
            name: "connections",
            default: "1x10000,100x500,1000x50",
            what: "connections x echoes over each, as a list; the default keeps a sample below a second. smarm's counts, a minute a sample: 1x10000,100x10000,1000x10000",
        },
    ],
    cells: Some(open),
};

/// The message for operations on a live loopback connection, which cannot fail.
const ENDS: &str = "both ends of a connection on loopback live";

/// The largest number of connections: most systems allow a descriptor for each end and some for the
/// lab.
const MOST_CONNECTIONS: u64 = 9_000;

/// See [`WORKLOAD`].
#[derive(Clone, Copy, Debug)]
pub struct Echo {
    connections: u64,
    echoes: u64,
}

impl Pair for Echo {
    const WORKLOAD: &'static Workload = &WORKLOAD;
    const CHECKED: &'static str = "an operation is an echo, and the percentiles are of single echoes; connections are made in the time, too; every byte that came back is the one that was sent, and none is missing";
    /// The time of each echo in ns, the number of wrong echoes, and the number of bytes that the
    /// servers sent back.
    type Found = (Vec<u64>, u64, u64);

    fn of(cell: &Cell) -> Result<Self, Problem> {
        let text = cell.text("connections")?;
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
        text.split_once('x')
            .and_then(|(connections, echoes)| {
                Some(Self {
                    connections: number(connections)?,
                    echoes: number(echoes)?,
                })
            })
            .filter(|echo| echo.connections <= MOST_CONNECTIONS && echo.echoes <= 1 << 20)
            .map(|echo| Self {
                echoes: if cell.quick {
                    echo.echoes.div_ceil(50)
                } else {
                    echo.echoes
                },
                ..echo
            })
            .ok_or_else(|| {
                Problem::Usage(format!(
                    "connections is 100x500, up to {MOST_CONNECTIONS}x1048576, not `{text}`"
                ))
            })
    }

    fn operations(self) -> u64 {
        self.connections * self.echoes
    }

    fn ours(self) -> Self::Found {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect(ENDS);
        let address = listener.local_addr().expect(ENDS);
        let connect = |_| {
            let client = TcpStream::connect(address).expect(ENDS);
            // Closing the connection this way leaves no port in TIME_WAIT.
            set_socket_linger(&client, Some(Duration::ZERO)).expect(ENDS);
            (client, listener.accept().expect(ENDS).0)
        };
        let pairs: Vec<_> = (0..self.connections).map(connect).collect();
        let (mut clients, mut servers) = (Vec::new(), Vec::new());
        for (number, (client, server)) in (0..).zip(pairs) {
            servers.push(spawn(move || answer(server)));
            clients.push(spawn(move || ask(client, number, self.echoes)));
        }
        let (mut took, mut wrong) = (Vec::new(), 0);
        for client in clients {
            let (of_client, of_these) = client.join().expect(ENDS);
            took.extend(of_client);
            wrong += of_these;
        }
        let servers = servers.into_iter();
        let answered = servers.map(|server| server.join().expect(ENDS)).sum();
        (took, wrong, answered)
    }

    fn tokio(self) -> impl Future<Output = Self::Found> + Send + 'static {
        tokio_echo::echo(self.connections, self.echoes, message)
    }

    fn check(self, (took, wrong, answered): &Self::Found) -> Result<(), String> {
        same("echoes", took.len() as u64, self.operations())?;
        same("echoes with a wrong byte", *wrong, 0)?;
        let bytes = self.operations() * MESSAGE as u64;
        same("bytes that the servers answered", *answered, bytes)
    }

    fn record((took, ..): &Self::Found, latencies: &mut Latencies) {
        for ns in took {
            latencies.record(*ns);
        }
    }

    fn target(self, point: Point) -> Option<Target> {
        let barred = point.silent && point.io && point.workers <= 2;
        barred.then_some(Target::Ratio(1.0))
    }
}

/// The payload of message `number` on this connection: consecutive messages differ in every byte.
fn message(connection: u64, number: u64) -> [u8; MESSAGE] {
    let first = connection.wrapping_mul(31).wrapping_add(number) as u8;
    std::array::from_fn(|place| first.wrapping_add(place as u8))
}

fn answer(mut stream: TcpStream) -> u64 {
    let mut room = [0; ROOM];
    let mut answered = 0;
    loop {
        match stream.read(&mut room) {
            Ok(0) => break,
            Ok(count) => {
                stream.write_all(&room[..count]).expect(ENDS);
                answered += count as u64;
            }
            // A client that does not linger ends its connection this way.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{ENDS}: {error}"),
        }
    }
    answered
}

fn ask(mut stream: TcpStream, connection: u64, echoes: u64) -> (Vec<u64>, u64) {
    let mut room = [0; ROOM];
    let (mut took, mut wrong) = (Vec::with_capacity(echoes as usize), 0);
    for number in 0..echoes {
        let sent = message(connection, number);
        let began = Instant::now();
        stream.write_all(&sent).expect(ENDS);
        let mut came = 0;
        while came < MESSAGE {
            match stream.read(&mut room[came..]).expect(ENDS) {
                0 => panic!("{ENDS}"),
                count => came += count,
            }
        }
        took.push(began.elapsed().as_nanos() as u64);
        wrong += u64::from(room[..came] != sent);
    }
    (took, wrong)
}

fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    // Each connection needs two descriptors; the limit of a shell is often 1,024.
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).map_err(|error| {
        Problem::Io(
            "cannot have as many files as the system allows".to_owned(),
            error.into(),
        )
    })?;
    driver::open::<Echo>(cell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_follow_each_other_differ_in_every_byte() {
        let differ = |one: [u8; MESSAGE], other: [u8; MESSAGE]| {
            one.iter().zip(other).all(|(one, other)| *one != other)
        };
        assert!(differ(message(0, 0), message(0, 1)));
        assert!(differ(message(0, 255), message(0, 256)));
        assert!(differ(message(0, 0), message(1, 0)));
    }

    #[test]
    fn a_byte_that_is_wrong_or_missing_is_told() {
        let echo = Echo {
            connections: 2,
            echoes: 3,
        };
        assert_eq!(echo.check(&(vec![1; 6], 0, 384)), Ok(()));
        assert!(echo.check(&(vec![1; 5], 0, 384)).is_err());
        assert!(echo.check(&(vec![1; 6], 1, 384)).is_err());
        assert!(echo.check(&(vec![1; 6], 0, 383)).is_err());
    }

    #[test]
    fn connections_that_make_no_sense_are_refused() {
        let of = |text| Echo::of(&Cell::new("io_echo", &[("connections", text)], &[]));
        assert_eq!(of("100x500").unwrap().operations(), 50_000);
        for text in ["100", "0x5", "5x0", "x", "9001x1", "1x-1"] {
            assert_eq!(of(text).unwrap_err().exit_status(), 2, "{text}");
        }
    }
}
