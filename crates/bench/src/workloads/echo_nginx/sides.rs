//! The sides of a placement, and the programs that measure them: an nginx for each way, and the servers on Unix sockets.

use std::time::Duration;

use crate::cell::Sample;
use crate::guests::Guest;
use crate::nginx::{Echo, EchoServer, Language, Mode, Nginx, Server, Settings};
use crate::placement::{self, Placement};
use crate::problem::Problem;
use crate::processes::Process;

use super::cost::Cost;

/// The side that answers, and how nginx waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The service in Rust inside of nginx, in this mode.
    Service(Mode),
    /// The service in mode B, with bounded spinning.
    Spinning,
    /// The service in another language inside of nginx, in mode B.
    Guest(Guest),
    /// A library for lua-resty-ffi inside of nginx, in mode B.
    LoadFfi(Language),
    /// A server on a Unix socket.
    Socket(Server),
}

impl Way {
    /// The parameter `mode` of its rows, unless it is a peer.
    #[must_use]
    pub fn mode(self) -> Option<&'static str> {
        match self {
            Self::Service(mode) => Some(mode.name()),
            Self::Spinning => Some("B+spin"),
            Self::Guest(_) | Self::LoadFfi(_) => Some(self.echo().name()),
            Self::Socket(_) => None,
        }
    }

    /// The language of the service.
    #[must_use]
    pub fn language(self) -> &'static str {
        match self {
            Self::Guest(guest) => guest.language(),
            Self::LoadFfi(Language::Go) => "go",
            _ => "rust",
        }
    }

    /// What its nginx calls. It loads nothing else.
    #[must_use]
    pub fn echo(self) -> Echo {
        match self {
            Self::Service(_) | Self::Spinning => Echo::Service,
            Self::Guest(guest) => Echo::Guest(guest),
            Self::LoadFfi(language) => Echo::LoadFfi(language),
            Self::Socket(_) => Echo::Socket,
        }
    }
}

/// One side: a way, and a point of the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// The side that answers.
    pub way: Way,
    /// Bytes of a message.
    pub length: u64,
    /// Light threads that call at the same time.
    pub concurrency: u64,
}

/// How to start the programs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The processors of all programs.
    pub placement: Placement,
    /// All sides.
    pub sides: Vec<Side>,
    /// The duration of a sample.
    pub sample: Duration,
    /// `lua_socket_buffer_size` of nginx.
    pub socket_buffer: String,
    /// The port of the first nginx, and the ports after it for the others; 0 for free ones.
    pub port: u16,
}

/// The fewest calls of a sample, for each light thread.
const FEWEST_CALLS: u64 = 4;

/// The programs of one round.
#[derive(Debug)]
pub struct Programs {
    plan: Plan,
    programs: Vec<Program>,
    /// Calls of a sample of each side; 0 before its first one.
    calls: Vec<u64>,
}

/// The programs of a way. nginx ends first.
#[derive(Debug)]
struct Program {
    way: Way,
    nginx: Nginx,
    server: Option<EchoServer>,
}

impl Programs {
    /// Starts the programs of each way that the plan has.
    ///
    /// # Errors
    /// One of the programs is missing or does not start.
    pub fn start(plan: &Plan) -> Result<Self, Problem> {
        let mut programs: Vec<Program> = Vec::new();
        for side in &plan.sides {
            if !programs.iter().any(|program| program.way == side.way) {
                let number = u16::try_from(programs.len()).unwrap_or(u16::MAX);
                programs.push(Program::start(side.way, plan, number)?);
            }
        }
        Ok(Self {
            calls: vec![0; plan.sides.len()],
            plan: plan.clone(),
            programs,
        })
    }

    fn program(&self, side: Side) -> &Program {
        let mut programs = self.programs.iter();
        let found = programs.find(|program| program.way == side.way);
        found.expect("each way was started")
    }

    /// The number of calls that takes as long as a sample.
    fn calibrate(&self, side: Side) -> Result<u64, Problem> {
        let fewest = FEWEST_CALLS * side.concurrency;
        let mut calls = fewest.max(200);
        for share in [0.1, 1.0] {
            let each = self.program(side).measure(side, calls)?.ns;
            let wanted = self.plan.sample.as_secs_f64() * share * 1e9;
            calls = ((wanted / each).min(1e7) as u64).max(fewest);
        }
        Ok(calls)
    }
}

impl Process for Programs {
    type Sample = Sample;

    fn take(&mut self, number: usize) -> Result<Sample, Problem> {
        let side = self.plan.sides[number];
        if self.calls[number] == 0 {
            self.calls[number] = self.calibrate(side)?;
        }
        self.program(side).measure(side, self.calls[number])
    }

    fn finish(self) -> Result<(), Problem> {
        let mut programs = self.programs.into_iter();
        programs.try_for_each(|Program { nginx, server, .. }| {
            drop(nginx);
            server.map_or(Ok(()), EchoServer::finish)
        })
    }
}

impl Program {
    /// `number` is that of the way, for its port.
    fn start(way: Way, plan: &Plan, number: u16) -> Result<Self, Problem> {
        let mode = match way {
            Way::Service(mode) => mode,
            _ => Mode::B,
        };
        let spin = way == Way::Spinning;
        let is_split = plan.placement == Placement::Split;
        let server = match way {
            Way::Socket(server) => Some(EchoServer::start(server, plan.placement)?),
            _ => None,
        };
        let nginx = Nginx::start(&Settings {
            mode,
            port: if plan.port == 0 {
                0
            } else {
                plan.port.saturating_add(number)
            },
            echoes: &[way.echo()],
            socket: server.as_ref().map_or("", EchoServer::socket),
            socket_buffer: &plan.socket_buffer,
            // Threads that start on one processor do not spin.
            placement: if is_split && spin {
                Placement::TwoCpus
            } else {
                plan.placement
            },
            spin,
            library_workers: is_split.then_some(1),
        })?;
        if is_split {
            placement::split_threads(nginx.worker())?;
        }
        Ok(Self { way, nginx, server })
    }

    /// Makes this many calls.
    fn measure(&self, side: Side, calls: u64) -> Result<Sample, Problem> {
        let name = self.way.echo().name();
        let server = self.server.as_ref().map(EchoServer::id);
        let Side {
            length,
            concurrency,
            ..
        } = side;
        let path =
            format!("/benchmark?times={calls}&arr={length}&concurrency={concurrency}&ways={name}");
        let wakes = self.wakes()?;
        let cost = Cost::read(self.nginx.worker(), server)?;
        let response = self.nginx.get(&path)?;
        let after = Cost::read(self.nginx.worker(), server)?;
        let wakes = self.wakes()? - wakes;
        let prefix = format!("{name}: ");
        let mut lines = response.body.lines();
        let seconds: Option<f64> = lines.find_map(|line| line.strip_prefix(&prefix)?.parse().ok());
        let Some(seconds) = seconds.filter(|_| response.status == 200) else {
            return Err(Problem::Check(format!("{path}: {}", response.body)));
        };
        let sample = Sample::of(Duration::from_secs_f64(seconds), calls)
            .with("wakes_per_call", wakes / calls as f64);
        let metrics = after.per_call(cost, calls).into_iter();
        Ok(metrics.fold(sample, |sample, (name, value)| sample.with(name, value)))
    }

    /// How often the library has woken the event loop.
    fn wakes(&self) -> Result<f64, Problem> {
        if self.way.echo() == Echo::Socket {
            return Ok(0.0);
        }
        let metrics = self.nginx.get("/metrics")?.body;
        let lines = metrics.lines();
        let wakes = lines.filter(|line| line.starts_with("thalweg_nginx_wakes{"));
        let wakes = wakes.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        wakes
            .reduce(|a, b| a + b)
            .ok_or_else(|| Problem::Check(format!("/metrics has no wake-ups: {metrics}")))
    }
}
