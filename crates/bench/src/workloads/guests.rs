//! `guest_call` and `guest_stream`: what a service costs that is not written in Rust.
//!
//! The program is the same, and so are its calls: the host in C, with the generated header. Only the
//! library differs. The service in Rust is opened by its path, and the others by their addresses. The
//! core calls the functions of the service in C on a worker (`delivery=callback`), or a thread of it takes the calls
//! from a port (`delivery=port`); in Go, a goroutine takes them. Each has a program of its own, in turns.
//!
//! | row | ours | peers |
//! | --- | --- | --- |
//! | `guest_call`, `service=c` | a call of the service in C | `rust_service`; `eventfd`, two bare hand-offs between two threads |
//! | `guest_call`, `service=rust` | a call of the service in Rust | `eventfd` |
//! | `guest_call`, `service=go` | a call of the service in Go | `netpoll`, the same two hand-offs to a goroutine that waits in the poller of Go |
//! | `in_flight=64 batch=64` | 64 calls in one submission, until all have ended | `rust_service` |
//! | `in_flight=64 batch=1` | calls of the service in Go, submitted one by one | `chan_cgo`, a channel between two goroutines that each cross to C |
//! | `guest_stream` | a stream that a thread or goroutine of the guest writes | `rust_service` |
//!
//! The methods are those of [`first_calls`](super::first_calls), where the waiting of both sides is
//! described; streams are read as in [`streaming_hosts`](super::streaming::hosts).

mod calls;
mod streams;

use std::process::Command;

use crate::child::HostProgram;
use crate::guests::Guest;
use crate::hosts;
use crate::interleave::Plan;
use crate::lab::Lab;
use crate::placement::Placement;
use crate::problem::Problem;
use crate::processes::{self, PROCESSES, Process};
use crate::report::Row;
use crate::statistics::Samples;
use crate::workloads::Workload;
use crate::workloads::lab_hosts;

/// `guest_call`; see the module.
pub const CALL: Workload = Workload {
    name: "guest_call",
    group: "boundary",
    what: "A call from C of a service in C or Go, opened by its address, against the same service in Rust and bare hand-offs.",
    source: "services in other languages: what the second language costs",
    peers: &[RUST_SERVICE, EVENTFD, NETPOLL, CHAN_CGO],
    seconds: 150,
    run: calls::run,
    ..Workload::USUAL
};

/// `guest_stream`; see the module.
pub const STREAM: Workload = Workload {
    name: "guest_stream",
    group: "streaming",
    what: "The whole way of a tick of 64 bytes or an event of 488 from a service in C or Go to a host in C, against the same service in Rust.",
    source: "services in other languages: what the check and the copy of their records cost",
    peers: &[RUST_SERVICE],
    seconds: 60,
    run: streams::run,
    ..Workload::USUAL
};

/// The peer that is the same service in Rust.
const RUST_SERVICE: &str = "rust_service";
/// The peer that is two bare hand-offs.
const EVENTFD: &str = "eventfd";
/// The peer that is two bare hand-offs, to a goroutine in the poller of Go and back.
const NETPOLL: &str = "netpoll";
/// The peer that is a channel of Go and two calls of C.
const CHAN_CGO: &str = "chan_cgo";

/// A program that answers lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    /// The host in C of a guest.
    Guest(Guest),
    /// The host in C of the service in Rust.
    Rust,
    /// `crates/bench/hosts/go/guest_peers`.
    GoPeers,
}

impl Program {
    fn command(self) -> Result<Command, Problem> {
        match self {
            Self::Guest(guest) => lab_hosts::c_of_guest(guest),
            Self::Rust => (lab_hosts::C.command)(),
            Self::GoPeers => {
                let program = hosts::go_program("guest_peers_go", "./guest_peers")?;
                Ok(Command::new(program))
            }
        }
    }
}

/// A program, and the line that it answers with a sample.
type Side = (Program, String);

/// The programs of some sides, which take turns.
struct Programs<'a, S> {
    programs: Vec<(Program, HostProgram)>,
    sides: &'a [Side],
    read: &'a dyn Fn(&mut HostProgram, &str) -> Result<S, Problem>,
}

impl<S> Process for Programs<'_, S> {
    type Sample = S;

    fn take(&mut self, side: usize) -> Result<S, Problem> {
        let (wanted, line) = &self.sides[side];
        let mut programs = self.programs.iter_mut();
        let (_, program) = programs
            .find(|(program, _)| program == wanted)
            .expect("the program of each side was started");
        (self.read)(program, line)
    }

    fn finish(self) -> Result<(), Problem> {
        let mut programs = self.programs.into_iter();
        programs.try_for_each(|(_, program)| program.finish())
    }
}

/// Measures `sides`, whose programs have a process each.
fn measure<S>(
    lab: &Lab,
    title: &str,
    placement: Placement,
    plan: Plan,
    sides: &[Side],
    read: &dyn Fn(&mut HostProgram, &str) -> Result<S, Problem>,
) -> Result<Vec<Samples<S>>, Problem> {
    processes::measure(lab, title, sides.len(), plan, PROCESSES, || {
        let mut programs: Vec<(Program, HostProgram)> = Vec::new();
        for (program, _) in sides {
            if !programs.iter().any(|(started, _)| started == program) {
                let started = HostProgram::start(title, program.command()?, placement)?;
                programs.push((*program, started));
            }
        }
        Ok(Programs {
            programs,
            sides,
            read,
        })
    })
}

/// The parameters of a guest's rows.
fn params_of(guest: Guest) -> [(&'static str, &'static str); 3] {
    [
        ("language", "c"),
        ("service", guest.language()),
        ("delivery", guest.delivery()),
    ]
}

/// The row of `workload` without Go.
fn without_go(workload: &Workload, why: &str) -> Row {
    let of = (workload.name, workload.group);
    Row::not_measured(of, &params_of(Guest::Go), "ns", why)
}
