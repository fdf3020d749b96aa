"""Starts Debian's nginx with the Lua module, in a folder of its own."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
LIBRARIES = BUILD / "debug"
MODULES = Path("/usr/lib/nginx/modules")

# How a port wakes the event loop; see docs/lua.md. `bindings/lua/build.sh` compiles the module of B.
MODES = ["A", "B"]

# A test that takes longer than this, in seconds, has failed.
LIMIT = 60

ALERT = re.compile(r"\[(warn|error|crit|alert|emerg)\]")
CORE = re.compile(r"thalweg: \w+: ")

LUA_PATH = ";".join(
    [
        f"{ROOT}/bindings/lua/lib/?.lua",
        f"{ROOT}/bindings/lua/tests/?.lua",
        f"{ROOT}/conformance/lua/?.lua",
        f"{ROOT}/conformance/generated/lua/?.lua",
        f"{BUILD}/guests/lua/?.lua",
        *(
            f"{ROOT}/examples/{name}/generated/lua/?.lua"
            for name in ("echo", "search", "feed", "hello")
        ),
    ]
)


def children(pid: int) -> list[int]:
    """The processes that a process with one thread has started."""
    return [
        int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ]


def alerts_in(log: str) -> list[str]:
    """The lines of an error log that a healthy nginx does not write, without those of the core."""
    return [
        line
        for line in log.splitlines()
        if ALERT.search(line) and not CORE.search(line)
    ]


class Response:
    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.body = body

    @property
    def text(self) -> str:
        return self.body.decode()


class Nginx:
    """A running nginx: one master process and its workers."""

    def __init__(
        self, folder: Path, port: int, process: subprocess.Popen[bytes]
    ) -> None:
        self.folder = folder
        self.port = port
        self.process = process

    def get(self, path: str, body: bytes | None = None) -> Response:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        try:
            connection.request("GET" if body is None else "POST", path, body)
            response = connection.getresponse()
            return Response(response.status, response.read())
        finally:
            connection.close()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def workers(self) -> list[int]:
        return children(self.process.pid)

    def alerts(self) -> list[str]:
        return alerts_in(self.log())

    def log(self) -> str:
        return (self.folder / "error.log").read_text()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.signal(signal.SIGQUIT)
        try:
            self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            # A worker does not end with its master.
            for worker in self.workers():
                os.kill(worker, signal.SIGKILL)
            raise
        finally:
            self.process.kill()
            self.process.wait()


def wait_until(condition: object, what: str) -> None:
    """Waits for something that no descriptor reports, such as the end of a process that is no child."""
    assert callable(condition)
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


@contextmanager
def started(
    folder: Path,
    http_block: str,
    server: str,
    *,
    main: str = "",
    workers: int = 1,
    mode: str = "A",
) -> Iterator[Nginx]:
    """nginx with these directives. It inherits the listening socket, so that it is ready at once."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(511)
        # nginx takes it to be non-blocking. Two workers that are woken for one connection would
        # otherwise wait for it in accept().
        listener.setblocking(False)
        os.set_inheritable(listener.fileno(), True)
        port = listener.getsockname()[1]
        (folder / "libraries.lua").write_text(
            "return {"
            + ", ".join(
                f'{name} = "{LIBRARIES}/libthalweg_{name}.so"'
                for name in ("conformance", "echo", "search")
            )
            + "}"
        )
        (folder / "nginx.conf").write_text(
            f"""load_module {MODULES}/ndk_http_module.so;
load_module {MODULES}/ngx_http_lua_module.so;
{f"load_module {BUILD}/lua/ngx_http_thalweg_module.so;" if mode == "B" else ""}
{main}
daemon off;
worker_processes {workers};
error_log {folder}/error.log info;
pid {folder}/nginx.pid;
{"user root;" if os.getuid() == 0 else ""}
events {{ worker_connections 1024; }}
http {{
  access_log {folder}/access.log;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  lua_package_path "{folder}/?.lua;{LUA_PATH};;";
  {http_block}
  server {{
    listen 127.0.0.1:{port};
    client_max_body_size 64m;
    client_body_buffer_size 64m;
    {server}
  }}
}}
"""
        )
        environment = {
            **os.environ,
            "NGINX": f"{listener.fileno()};",
            "RUST_BACKTRACE": "0",
        }
        process = subprocess.Popen(
            [
                "nginx",
                "-p",
                str(folder),
                "-c",
                str(folder / "nginx.conf"),
                "-e",
                str(folder / "error.log"),
            ],
            env=environment,
            pass_fds=[listener.fileno()],
        )
    nginx = Nginx(folder, port, process)
    try:
        yield nginx
    finally:
        nginx.stop()
