//! Starts Debian's nginx with the benchmark `crates/bench/hosts/nginx/echo_benchmark.lua`, and the servers on Unix sockets
//! that it is compared with.
//!
//! 1. nginx has one worker, and a folder of its own below that of this program. It is removed at the end, unless this
//!    program is killed.
//! 2. It inherits its listening socket, so that it answers from the start on, and no other program can take the port.
//! 3. All programs end with this one, however it ends: the kernel signals nginx (`setpriv --pdeathsig`), and the
//!    servers see the end of their input. A server removes its socket itself.

mod echo;
mod server;

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};

use crate::guests;
use crate::hosts;
use crate::placement::Placement;
use crate::problem::Problem;

pub use echo::{Echo, Language};
pub use server::{EchoServer, SERVERS, Server};

/// The folder of nginx's modules in Debian.
const MODULES: &str = "/usr/lib/nginx/modules";

/// An answer that takes longer is a failure.
const LONGEST_ANSWER: Duration = Duration::from_secs(120);

/// A mode of the Lua package, as in docs/lua.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A Unix socket wakes the worker.
    A,
    /// The module of nginx wakes the worker.
    B,
}

impl Mode {
    /// Its name in docs/lua.md.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }
}

/// How to start nginx.
#[derive(Clone, Debug)]
pub struct Settings<'a> {
    /// The mode of the Lua package.
    pub mode: Mode,
    /// The port on 127.0.0.1; 0 for a free one.
    pub port: u16,
    /// The services and servers that its page can call. No others are loaded.
    pub echoes: &'a [Echo],
    /// The socket of the server that [`Echo::Socket`] calls.
    pub socket: &'a str,
    /// `lua_socket_buffer_size` of nginx, such as `128k`.
    pub socket_buffer: &'a str,
    /// The processors of nginx.
    pub placement: Placement,
    /// Whether the event loop and the service spin before they sleep: the option `spin` of `open`.
    pub spin: bool,
    /// Worker threads of the library; default: one per processor.
    pub library_workers: Option<u32>,
}

/// The version of the nginx that is installed with its Lua module.
///
/// # Errors
/// It is not installed.
pub fn version() -> Result<String, Problem> {
    let said = Command::new("nginx").arg("-v").output();
    let version = said.ok().and_then(|said| {
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        Some(text.trim().rsplit_once('/')?.1.to_owned())
    });
    let has_lua = Path::new(MODULES).join("ngx_http_lua_module.so").exists();
    version.filter(|_| has_lua).ok_or_else(|| {
        Problem::NotReady(
            "Debian's nginx with libnginx-mod-http-lua is missing: scripts/setup.sh test"
                .to_owned(),
        )
    })
}

/// The module of mode B, which this compiles if it is not there or its source has changed.
///
/// # Errors
/// It cannot be compiled, for example because `nginx-dev` is missing.
pub fn module() -> Result<PathBuf, Problem> {
    let folder = hosts::build_folder()?.join("lua");
    let built = Command::new(hosts::root().join("bindings/lua/build.sh"))
        .arg(&folder)
        .stdout(Stdio::null())
        .status()
        .map_err(Problem::io("cannot start bindings/lua/build.sh"))?;
    if built.success() {
        Ok(folder.join("ngx_http_thalweg_module.so"))
    } else {
        let text = "bindings/lua/build.sh cannot compile the module of nginx; its words are above";
        Err(Problem::NotReady(text.to_owned()))
    }
}

/// A running nginx: one master process and one worker.
#[derive(Debug)]
pub struct Nginx {
    child: Child,
    folder: PathBuf,
    port: u16,
    worker: u32,
}

/// An answer of nginx.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: String,
}

impl Nginx {
    /// Starts it, and makes one call of each kind.
    ///
    /// # Errors
    /// nginx or its module is missing, the port is in use, or nginx does not answer. The message has the error log.
    pub fn start(settings: &Settings<'_>) -> Result<Self, Problem> {
        version()?;
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = hosts::build_folder()?.join(format!("nginx-{}-{number}", std::process::id()));
        fs::create_dir(&folder).map_err(Problem::io(folder.display().to_string()))?;
        let started = Self::start_in(&folder, settings);
        if started.is_err() {
            let _ = fs::remove_dir_all(&folder);
        }
        started
    }

    fn start_in(folder: &Path, settings: &Settings<'_>) -> Result<Self, Problem> {
        let address = (Ipv4Addr::LOCALHOST, settings.port);
        let what = format!("cannot listen on port {}", settings.port);
        let listener = TcpListener::bind(address).map_err(Problem::io(what))?;
        let port = listener.local_addr().map_err(Problem::io("port"))?.port();
        let conf = folder.join("nginx.conf");
        fs::write(&conf, configuration(folder, port, settings)?)
            .map_err(Problem::io(conf.display().to_string()))?;
        // The child inherits the socket. nginx expects that it does not block.
        let not_blocking = listener.set_nonblocking(true);
        not_blocking.map_err(Problem::io("the socket"))?;
        fcntl_setfd(&listener, FdFlags::empty())
            .map_err(|errno| Problem::Io("fcntl".to_owned(), errno.into()))?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "nginx", "-p"]);
        command.arg(folder).arg("-c").arg(&conf).arg("-e");
        command.arg(folder.join("error.log")).stdin(Stdio::null());
        command.env("NGINX", format!("{};", listener.as_raw_fd()));
        command.env("RUST_BACKTRACE", "0").process_group(0);
        if let Some(workers) = settings.library_workers {
            command.env("THALWEG_WORKERS", workers.to_string());
        }
        let child = settings.placement.spawn(&mut command)?;
        drop(listener);
        let mut nginx = Self {
            child,
            folder: folder.to_owned(),
            port,
            worker: 0,
        };
        nginx.make_first_calls(settings)?;
        nginx.worker = nginx.find_worker()?;
        Ok(nginx)
    }

    /// Makes sure that each echo answers, in the mode.
    fn make_first_calls(&self, settings: &Settings<'_>) -> Result<(), Problem> {
        let ways: Vec<&str> = settings.echoes.iter().map(|echo| echo.name()).collect();
        let path = format!("/benchmark?times=1&arr=16&ways={}", ways.join(","));
        let response = self.get(&path)?;
        let expected = format!("mode={}", settings.mode.name());
        let lines: Vec<&str> = response.body.lines().collect();
        let has = |way: &&str| {
            let prefix = format!("{way}: ");
            lines.iter().any(|line| line.starts_with(&prefix))
        };
        let first = lines.first().copied().unwrap_or_default();
        if first.ends_with(&expected) && ways.iter().all(has) {
            return Ok(());
        }
        let body = &response.body;
        Err(self.problem(&format!("answered {body:?}, and not in {expected}")))
    }

    /// Requests `path`.
    ///
    /// # Errors
    /// nginx does not answer.
    pub fn get(&self, path: &str) -> Result<Response, Problem> {
        let asked = || {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
            stream.set_read_timeout(Some(LONGEST_ANSWER))?;
            write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok::<_, std::io::Error>(text)
        };
        let text = asked().map_err(|error| self.problem(&format!("does not answer: {error}")))?;
        let parsed = text.split_once("\r\n\r\n").and_then(|(head, body)| {
            let status = head.split(' ').nth(1)?.parse().ok()?;
            let body = body.to_owned();
            Some(Response { status, body })
        });
        parsed.ok_or_else(|| self.problem(&format!("answered {text:?}")))
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of its files, which is removed at its end.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The process that answers requests.
    #[must_use]
    pub fn worker(&self) -> u32 {
        self.worker
    }

    fn find_worker(&self) -> Result<u32, Problem> {
        let pid = self.child.id();
        let file = format!("/proc/{pid}/task/{pid}/children");
        let children = fs::read_to_string(&file).map_err(Problem::io(file))?;
        let worker = children.split_whitespace().next();
        let worker = worker.and_then(|worker| worker.parse().ok());
        worker.ok_or_else(|| self.problem("has no worker"))
    }

    fn problem(&self, what: &str) -> Problem {
        let log = fs::read_to_string(self.folder.join("error.log")).unwrap_or_default();
        Problem::Host(format!("nginx {what}; its error log: {log}"))
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.child.id())
            && let Some(pid) = Pid::from_raw(pid)
            && matches!(self.child.try_wait(), Ok(None))
        {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn configuration(folder: &Path, port: u16, settings: &Settings<'_>) -> Result<String, Problem> {
    let root = hosts::root();
    let root = root.display();
    let folder = folder.display();
    let shim = hosts::library("thalweg-resty-ffi")?.with_file_name("?.so");
    let shim = shim.display();
    let echoes = echo::table(settings.echoes, settings.spin)?;
    let core = match settings.echoes.iter().any(|echo| echo.is_guest()) {
        true => format!("env THALWEG_LIBRARY={};", guests::core()?.display()),
        false => String::new(),
    };
    let module = match settings.mode {
        Mode::A => String::new(),
        Mode::B => format!("load_module {};", module()?.display()),
    };
    // Workers of a master process that runs as root have another user by default, which cannot read the checkout.
    let user = if rustix::process::geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    let Settings {
        socket,
        socket_buffer,
        ..
    } = settings;
    Ok(format!(
        r#"load_module {MODULES}/ndk_http_module.so;
load_module {MODULES}/ngx_http_lua_module.so;
{module}
{user}
daemon off;
worker_processes 1;
error_log {folder}/error.log warn;
pid {folder}/nginx.pid;
env TMPDIR;
env THALWEG_WORKERS;
{core}
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  lua_package_path "{root}/bindings/lua/lib/?.lua;{root}/crates/bench/generated/lua/?.lua;{root}/crates/bench/hosts/nginx/?.lua;;";
  lua_package_cpath "{shim};;";
  lua_socket_pool_size 1000;
  lua_socket_buffer_size {socket_buffer};
  init_worker_by_lua_block {{
    require("echo_benchmark").start {{ socket = "{socket}", {echoes} }}
  }}
  server {{
    listen 127.0.0.1:{port};
    location = /benchmark {{
      lua_check_client_abort on;
      content_by_lua_block {{ require("echo_benchmark").page() }}
    }}
    location = /metrics {{
      content_by_lua_block {{
        ngx.header.content_type = "text/plain"
        ngx.print(require("thalweg").metrics())
      }}
    }}
  }}
}}
"#
    ))
}
