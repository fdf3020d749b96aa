//! The servers on Unix sockets that `echo_nginx` compares with.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::child::HostProgram;
use crate::hosts;
use crate::placement::Placement;
use crate::problem::Problem;

/// A server on a Unix socket that sends each message back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// In C, a blocking thread for each connection.
    CThreads,
    /// In C, one thread for all connections.
    CEpoll,
    /// In Go.
    Go,
}

/// All servers.
pub const SERVERS: [Server; 3] = [Server::CThreads, Server::CEpoll, Server::Go];

impl Server {
    /// The name of the peer in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CThreads => "uds_c",
            Self::CEpoll => "uds_c_epoll",
            Self::Go => "uds_go",
        }
    }

    /// Compiles it, and returns the command that starts it.
    ///
    /// # Errors
    /// The compiler is missing or reports an error.
    pub fn command(self) -> Result<Command, Problem> {
        let how = match self {
            Self::CThreads => "threads",
            Self::CEpoll => "epoll",
            Self::Go => {
                return Ok(Command::new(hosts::go_program(
                    "echo_server_go",
                    "./echo_server",
                )?));
            }
        };
        let mut command = Command::new(hosts::c_program("echo_server")?);
        command.arg(how);
        Ok(command)
    }
}

/// A running server.
#[derive(Debug)]
pub struct EchoServer {
    program: HostProgram,
    socket: Socket,
}

/// The path of a socket in a folder of its own. A server that ends normally removes both.
#[derive(Debug)]
struct Socket(String);

impl Drop for Socket {
    fn drop(&mut self) {
        let socket = Path::new(&self.0);
        if fs::remove_file(socket).is_ok()
            && let Some(folder) = socket.parent()
        {
            let _ = fs::remove_dir(folder);
        }
    }
}

impl EchoServer {
    /// Starts `server`.
    ///
    /// # Errors
    /// It cannot be compiled or started.
    pub fn start(server: Server, placement: Placement) -> Result<Self, Problem> {
        let mut program = HostProgram::start(server.name(), server.command()?, placement)?;
        let socket = Socket(program.ask("path")?);
        Ok(Self { program, socket })
    }

    /// The path of its socket.
    #[must_use]
    pub fn socket(&self) -> &str {
        &self.socket.0
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.program.id()
    }

    /// Ends it.
    ///
    /// # Errors
    /// It failed.
    pub fn finish(self) -> Result<(), Problem> {
        self.program.finish()
    }
}
