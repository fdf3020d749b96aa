"""`ngx.load_ffi`: libraries that were written for lua-resty-ffi, in both modes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nginx
import pytest

LIBRARIES = nginx.BUILD / "lua/resty_ffi"
NAMES = re.findall(
    r"^function M\.(\w+)\(",
    (Path(__file__).parent / "load_ffi.lua").read_text(),
    re.MULTILINE,
)

INIT = 'init_worker_by_lua_block { require("load_ffi").init_worker() }'


@pytest.fixture(autouse=True, scope="module")
def path() -> Iterator[None]:
    """nginx finds the libraries by their names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_LIBRARY_PATH", f"{LIBRARIES}:{nginx.LIBRARIES}")
        yield


@pytest.fixture(scope="module", params=nginx.MODES)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[nginx.Nginx]:
    server = """location /run { content_by_lua_block { require("check").run(require("load_ffi")) } }"""
    with nginx.started(
        tmp_path_factory.mktemp("nginx"), INIT, server, mode=request.param
    ) as running:
        yield running
    assert not running.alerts()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "init_worker"])
def test_in_nginx(server: nginx.Nginx, name: str) -> None:
    response = server.get(f"/run?name={name}")
    assert response.text == "ok", server.alerts()


SERVER = """
location /echo { content_by_lua_block {
  ngx.req.read_body()
  ngx.print(select(2, assert(echo:echo(ngx.req.get_body_data()))))
} }
location /keep { lua_check_client_abort on; content_by_lua_block {
  local ok, answer = hostile:call("keep")
  ngx.print(tostring(ok), " ", #answer, " in ", ngx.worker.pid())
} }
location /full { content_by_lua_block {
  ngx.thread.spawn(full.call, full, "text")
  local ok, text, err = full:call("text")
  ngx.exit(err.code == "overloaded" and 204 or 500) -- it ends both light threads
} }
location /kept { content_by_lua_block { ngx.print(library.hostile_kept()) } }
location /answer { content_by_lua_block { ngx.print(library.hostile_answer_kept()) } }
location /metrics { content_by_lua_block { ngx.print(require("thalweg").metrics()) } }
"""

OPEN = """init_worker_by_lua_block {
  require("resty_ffi")
  echo = assert(ngx.load_ffi("ffi_c_echo"))
  require("ffi").cdef "int hostile_kept(void); int hostile_answer_kept(void);"
  library = require("ffi").load("ffi_hostile")
  hostile = assert(ngx.load_ffi("ffi_hostile"))
  full = assert(ngx.load_ffi("ffi_hostile", "idle", { max_queue = 1, timeout = 0.5 }))
  if answers then
    ngx.timer.every(0.01, function(premature) if premature then library.hostile_answer_kept() end end)
  end
}"""


@contextmanager
def running(folder: Path, mode: str) -> Iterator[nginx.Nginx]:
    with nginx.started(folder, OPEN, SERVER, mode=mode) as server:
        yield server
    assert not server.alerts()


def metric(server: nginx.Nginx, name: str) -> float:
    pattern = rf'^thalweg_{name}{{package="thalweg:resty-ffi",library="[^"]*",worker="0"}} (\d+)$'
    match = re.search(pattern, server.get("/metrics").text, re.MULTILINE)
    assert match, name
    return float(match[1])


@contextmanager
def connection(server: nginx.Nginx, path: str) -> Iterator[socket.socket]:
    """A client that has sent a request, and goes away at the end."""
    with socket.create_connection(("127.0.0.1", server.port), nginx.LIMIT) as client:
        client.sendall(
            f"GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode()
        )
        yield client


def wait_for_task(server: nginx.Nginx) -> None:
    nginx.wait_until(lambda: server.get("/kept").text == "1", "the task")


@pytest.mark.parametrize("mode", nginx.MODES)
def test_client_that_goes_away_leaves_its_task_to_the_library(
    tmp_path: Path, mode: str
) -> None:
    with running(tmp_path, mode) as server:
        for _ in range(3):
            with connection(server, "/keep"):
                wait_for_task(server)
                assert metric(server, "nginx_waiting") == 1
            nginx.wait_until(
                lambda: metric(server, "nginx_waiting") == 0,
                "the end of the wait",
            )
            # The answer of a task without a caller.
            assert server.get("/answer").text == "1"
            assert server.get("/echo", b"next").body == b"next"
        assert server.get("/answer").text == "0"


@pytest.mark.parametrize("mode", nginx.MODES)
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_task_is_answered_in_the_worker_that_exits(
    tmp_path: Path, mode: str, number: signal.Signals
) -> None:
    init = OPEN.replace("if answers", "answers = true if answers")
    with nginx.started(tmp_path, init, SERVER, mode=mode) as server:
        nginx.wait_until(lambda: len(server.workers()) == 1, "the worker")
        [pid] = server.workers()
        with connection(server, "/keep") as client:
            wait_for_task(server)
            server.signal(number)
            answer = b""
            while received := client.recv(65536):
                answer += received
        assert f"true {2**20} in {pid}".encode() in answer
        nginx.wait_until(
            lambda: not Path(f"/proc/{pid}").exists(), "the end of the worker"
        )
    assert not server.alerts()


@pytest.mark.parametrize("mode", nginx.MODES)
def test_worker_is_killed_while_tasks_are_out(tmp_path: Path, mode: str) -> None:
    with nginx.started(tmp_path, OPEN, SERVER, mode=mode) as server:
        nginx.wait_until(lambda: len(server.workers()) == 1, "the worker")
        with connection(server, "/keep"):
            wait_for_task(server)
            [pid] = server.workers()
            os.kill(pid, signal.SIGKILL)
        assert server.get("/echo", b"next").body == b"next"
        assert server.workers() != [pid]
    assert any("exited on signal 9" in line for line in server.alerts())


@pytest.mark.parametrize("mode", nginx.MODES)
def test_refused_request_can_end_at_once(tmp_path: Path, mode: str) -> None:
    with running(tmp_path, mode) as server:
        for _ in range(5):
            assert server.get("/full").status == 204
            nginx.wait_until(
                lambda: metric(server, "nginx_waiting") == 0, "the end of the wait"
            )


@pytest.mark.parametrize("mode", nginx.MODES)
def test_task_that_is_never_answered_ends_with_its_worker(
    tmp_path: Path, mode: str
) -> None:
    init = OPEN.replace(
        "if answers",
        'ngx.timer.at(0, function() local _ = hostile:call("keep") end) if answers',
    )
    main = "worker_shutdown_timeout 1s;"
    with nginx.started(tmp_path, init, SERVER, mode=mode, main=main) as server:
        wait_for_task(server)
    [line] = server.alerts()
    assert "completions of libthalweg_resty_ffi.so cannot be received" in line


@pytest.mark.parametrize("mode", nginx.MODES)
def test_phase_that_cannot_wait_refuses_calls_before_the_library_sees_them(
    tmp_path: Path, mode: str
) -> None:
    init = """init_worker_by_lua_block {
      require("resty_ffi")
      echo = assert(ngx.load_ffi("ffi_c_echo"))
      seen = {}
      function try(phase)
        local ok, text, err = echo:echo(phase)
        seen[#seen + 1] = phase .. " " .. (err and err.code or text)
      end
      try("init_worker")
    }"""
    server = """
    location /all {
      set_by_lua_block $unused { try("set") }
      rewrite_by_lua_block { try("rewrite") }
      access_by_lua_block { try("access") }
      content_by_lua_block { try("content") ngx.print("body") }
      header_filter_by_lua_block { try("header_filter") }
      body_filter_by_lua_block { if ngx.arg[2] then try("body_filter") end }
      log_by_lua_block { try("log") }
    }
    location /seen { content_by_lua_block { ngx.print(table.concat(seen, "\\n")) } }
    location /metrics { content_by_lua_block { ngx.print(require("thalweg").metrics()) } }"""
    with nginx.started(tmp_path, init, server, mode=mode) as running:
        assert running.get("/all").text == "body"
        nginx.wait_until(lambda: "log" in running.get("/seen").text, "the log phase")
        results = dict(
            line.split(" ", 1) for line in running.get("/seen").text.splitlines()
        )
        assert metric(running, "nginx_calls") == 3
    assert not running.alerts()
    for phase in ("rewrite", "access", "content"):
        assert results[phase] == phase
    for phase in ("init_worker", "set", "header_filter", "body_filter", "log"):
        assert results[phase] == "would_park"


@pytest.mark.parametrize("mode", nginx.MODES)
def test_program_of_the_documentation_prints_what_it_says(
    tmp_path: Path, mode: str
) -> None:
    text = (nginx.ROOT / "docs/migrating/lua-resty-ffi.md").read_text()
    [block] = re.findall(
        r"^```nginx\n(location .*?)^```$", text, re.MULTILINE | re.DOTALL
    )
    [expected] = re.findall(r"-- prints: (.*)", block)
    init = f"""lua_package_cpath "{nginx.LIBRARIES}/?.so;;";
      init_worker_by_lua_block {{ require("resty_ffi") }}"""
    with nginx.started(tmp_path, init, block, mode=mode) as running:
        assert running.get("/echo").text == f"{expected}\n"
    assert not running.alerts()


def test_library_is_not_loaded_before_the_fork(tmp_path: Path) -> None:
    init = """init_by_lua_block {
      require("resty_ffi")
      local runtime, err = ngx.load_ffi("ffi_c_echo")
      package.loaded.refused = runtime == nil and tostring(err)
    }"""
    server = "location / { content_by_lua_block { ngx.print(package.loaded.refused) } }"
    with nginx.started(tmp_path, init, server) as running:
        text = running.get("/").text
    assert text.startswith(
        "argument: ngx.load_ffi: a library cannot be opened in the phase init"
    )


def test_missing_shim_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(LIBRARIES))
    server = """location / { content_by_lua_block {
      require("resty_ffi")
      local runtime, err = ngx.load_ffi("ffi_c_echo")
      ngx.print(tostring(err))
    } }"""
    with nginx.started(tmp_path, "", server) as running:
        text = running.get("/").text
    assert text.startswith("argument: cannot load libthalweg_resty_ffi.so")


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
@pytest.mark.parametrize("mode", nginx.MODES)
def test_go_library_answers(tmp_path: Path, mode: str) -> None:
    init = 'init_worker_by_lua_block { require("resty_ffi") demo = assert(ngx.load_ffi("ffi_go_echo", "gc")) }'
    server = """location / { content_by_lua_block {
      for i = 1, 300 do -- more than 192: see pointer.rs
        local buf = ("\\0b"):rep(i)
        local ok, res = demo:echo(buf)
        assert(ok and res == buf)
      end
      local threads = {}
      for i = 1, 50 do
        threads[i] = ngx.thread.spawn(function() return select(2, demo:echo("thread " .. i)) end)
      end
      for i = 1, 50 do
        local _, answer = ngx.thread.wait(threads[i])
        assert(answer == "thread " .. i)
      end
      demo:__unload()
      local ok, text = ngx.load_ffi("ffi_go_echo", "again"):echo("")
      ngx.print(tostring(ok), " ", #text)
    } }"""
    with nginx.started(tmp_path, init, server, mode=mode) as running:
        assert running.get("/").text == "true 0"
    assert not running.alerts()
