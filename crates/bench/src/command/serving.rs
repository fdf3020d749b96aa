//! `serve`.

use std::io::Read;
use std::os::unix::net::UnixStream;

use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::command::print;
use crate::guests::Guest;
use crate::nginx::{Echo, EchoServer, Language, Mode, Nginx, Server, Settings};
use crate::placement::Placement;
use crate::problem::Problem;
use crate::workloads::echo_nginx::SOCKET_BUFFER;

/// The arguments of `serve`.
#[derive(Args, Debug)]
pub struct Serve {
    /// The port on 127.0.0.1; 0 for a free one
    #[arg(long, default_value_t = 20000)]
    port: u16,
    /// The mode of the Lua package: A needs no module of nginx, B uses it
    #[arg(long, value_parser = ["A", "B"], default_value = "B")]
    mode: String,
    /// Let nginx and the service spin before they sleep
    #[arg(long)]
    spin: bool,
    /// The server on the Unix socket
    #[arg(long, value_parser = ["c", "c-epoll", "go"], default_value = "c")]
    server: String,
    /// `lua_socket_buffer_size` of nginx
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = SOCKET_BUFFER.default)]
    socket_buffer: String,
}

/// What the page can call. A library in Go would bring its own runtime into nginx.
const ECHOES: [Echo; 4] = [
    Echo::Service,
    Echo::Guest(Guest::C),
    Echo::LoadFfi(Language::C),
    Echo::Socket,
];

/// A size of nginx: digits, and `k` or `m` after them.
fn size(text: &str) -> Result<String, String> {
    let digits = text.trim_end_matches(['k', 'm']);
    if !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && text.len() < digits.len() + 2
    {
        Ok(text.to_owned())
    } else {
        Err("expected a size such as 4k or 1m".to_owned())
    }
}

/// Serves the benchmark `echo_nginx` until this program is ended with Ctrl-C or SIGTERM.
///
/// # Errors
/// nginx or a compiler is missing, or the port is in use.
pub fn execute(serve: &Serve) -> Result<(), Problem> {
    let mut signalled = signals().map_err(Problem::io("cannot wait for signals"))?;
    let server = match serve.server.as_str() {
        "go" => Server::Go,
        "c-epoll" => Server::CEpoll,
        _ => Server::CThreads,
    };
    let server = EchoServer::start(server, Placement::Free)?;
    let nginx = Nginx::start(&Settings {
        mode: if serve.mode == "A" { Mode::A } else { Mode::B },
        port: serve.port,
        echoes: &ECHOES,
        socket: server.socket(),
        socket_buffer: &serve.socket_buffer,
        placement: Placement::Free,
        spin: serve.spin,
        library_workers: None,
    })?;
    print(&format!(
        "curl 'localhost:{}/benchmark?times=100000&arr=512,4096,10240,102400'\nCtrl-C ends it.\n",
        nginx.port()
    ))?;
    // The end of the programs is the same, whatever ends the wait.
    let _ = signalled.read(&mut [0]);
    drop(nginx);
    server.finish()
}

/// A socket that is readable after a signal that ends this program.
fn signals() -> std::io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM] {
        pipe::register(signal, writer.try_clone()?)?;
    }
    Ok(reader)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_is_one_of_nginx() {
        for (text, good) in [
            ("4k", true),
            ("1m", true),
            ("4096", true),
            ("k", false),
            ("4kk", false),
            ("4;", false),
        ] {
            assert_eq!(size(text).is_ok(), good, "{text}");
        }
    }
}
