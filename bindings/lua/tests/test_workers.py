"""Workers that reload, quit, or are killed, and clients that go away."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nginx
import pytest

pytestmark = pytest.mark.parametrize("mode", nginx.MODES)

INIT = f"""init_worker_by_lua_block {{
  client = assert(require("conformance").open("{nginx.LIBRARIES}/libthalweg_conformance.so"))
  own = false
}}"""

SERVER = """
location /echo { content_by_lua_block {
  ngx.req.read_body()
  ngx.print(assert(client:echo_bytes(ngx.req.get_body_data())))
} }
location /sleep { content_by_lua_block {
  for i = 1, 3 do assert(client:sleep(50)) end
  ngx.print("slept in ", ngx.worker.pid())
} }
location /never { lua_check_client_abort on; content_by_lua_block { client:never() } }
location /own { lua_check_client_abort on; content_by_lua_block {
  assert(ngx.on_abort(function() require("thalweg").cancel_request() own = true ngx.exit(499) end))
  client:never()
} }
location /endless { lua_check_client_abort on; content_by_lua_block {
  local stream = assert(client:endless())
  for number in stream do
    if not ngx.print(tostring(number), " ") or not ngx.flush(true) then break end
  end
  stream:close()
} }
location /ticks { lua_check_client_abort on; content_by_lua_block {
  local stream = assert(client:ticks())
  ngx.print("begun ") ngx.flush(true)
  for number in stream do ngx.print(tostring(number)) end
} }
location /busy { content_by_lua_block {
  ngx.print(assert(client:waiting()) + assert(client:running()), " ", own and "own" or "")
} }
location /readers { content_by_lua_block { ngx.print(assert(client:tick(1))) } }
location /metrics { content_by_lua_block { ngx.print(require("thalweg").metrics()) } }
"""


@contextmanager
def running(folder: Path, mode: str, workers: int = 1) -> Iterator[nginx.Nginx]:
    with nginx.started(folder, INIT, SERVER, mode=mode, workers=workers) as server:
        yield server
    assert not server.alerts()


def in_background(
    server: nginx.Nginx, path: str
) -> tuple[threading.Thread, list[nginx.Response]]:
    responses: list[nginx.Response] = []
    thread = threading.Thread(target=lambda: responses.append(server.get(path)))
    thread.start()
    return thread, responses


def reload(server: nginx.Nginx, counts: list[int]) -> None:
    """Reloads, and waits until the old workers have ended and the new ones have answered."""
    old, before = set(server.workers()), sum(counts)
    server.signal(signal.SIGHUP)
    nginx.wait_until(
        lambda: len(server.workers()) == 2 and not old & set(server.workers()),
        "the end of the old workers",
    )
    nginx.wait_until(lambda: sum(counts) > before + 20, "further requests")


def test_reload_under_load_loses_no_request(tmp_path: Path, mode: str) -> None:
    body = bytes(range(256)) * 16
    stop = threading.Event()
    wrong: list[object] = []
    counts = [0] * 4

    def load(index: int) -> None:
        while not stop.is_set():
            try:
                response = server.get("/echo", body)
                if response.status != 200 or response.body != body:
                    wrong.append(response.status)
            except OSError as error:
                wrong.append(error)
            counts[index] += 1

    with running(tmp_path, mode, workers=2) as server:
        nginx.wait_until(lambda: len(server.workers()) == 2, "the workers")
        threads = [threading.Thread(target=load, args=[index]) for index in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(3):
                reload(server, counts)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert not wrong
        assert sum(counts) > 60


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_request_in_flight_is_answered_by_the_worker_that_exits(
    tmp_path: Path, mode: str, number: signal.Signals
) -> None:
    with running(tmp_path, mode) as server:
        pid = int(server.get("/sleep").text.split()[-1])
        thread, responses = in_background(server, "/sleep")
        nginx.wait_until(lambda: metric(server, "nginx_waiting") > 0, "the call")
        server.signal(number)
        thread.join()
        assert responses[0].text == f"slept in {pid}"
        nginx.wait_until(
            lambda: not Path(f"/proc/{pid}").exists(), "the end of the old worker"
        )


def metric(server: nginx.Nginx, name: str) -> float:
    for line in server.get("/metrics").text.splitlines():
        label, value = line.split()
        if label.startswith(f'thalweg_{name}{{package="thalweg:conformance",library='):
            return float(value)
    raise AssertionError(name)


def test_killed_worker_is_replaced(tmp_path: Path, mode: str) -> None:
    with nginx.started(tmp_path, INIT, SERVER, mode=mode) as server:
        nginx.wait_until(lambda: len(server.workers()) == 1, "the worker")
        with connection(server, "/never"):
            nginx.wait_until(
                lambda: server.get("/busy").text.startswith("1"), "the call"
            )
            [pid] = server.workers()
            os.kill(pid, signal.SIGKILL)
        assert server.get("/echo", b"next").body == b"next"
        assert server.workers() != [pid]
    [line] = server.alerts()
    assert "exited on signal 9" in line


@contextmanager
def connection(server: nginx.Nginx, path: str) -> Iterator[socket.socket]:
    """A client that has sent a request, and goes away at the end."""
    with socket.create_connection(("127.0.0.1", server.port), nginx.LIMIT) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        yield client


@pytest.mark.parametrize("path", ["/never", "/own"])
def test_call_is_cancelled_when_the_client_goes_away(
    tmp_path: Path, mode: str, path: str
) -> None:
    with running(tmp_path, mode) as server:
        with connection(server, path):
            nginx.wait_until(
                lambda: server.get("/busy").text.startswith("1"), "the call"
            )
        nginx.wait_until(
            lambda: server.get("/busy").text.startswith("0"), "the end of the call"
        )
        assert server.get("/busy").text.endswith("own") == (path == "/own")
        nginx.wait_until(
            lambda: metric(server, "nginx_waiting") == 0, "the end of the wait"
        )


def test_stream_is_closed_when_the_client_goes_away(tmp_path: Path, mode: str) -> None:
    with running(tmp_path, mode) as server:
        with connection(server, "/endless") as client:
            assert client.recv(10)
            nginx.wait_until(
                lambda: server.get("/busy").text.startswith("1"), "the stream"
            )
        nginx.wait_until(
            lambda: server.get("/busy").text.startswith("0"), "the end of the stream"
        )
        with connection(server, "/ticks") as client:
            while b"begun" not in client.recv(1000):
                pass
            assert server.get("/readers").text == "1"
        nginx.wait_until(
            lambda: server.get("/readers").text == "0", "the end of the reader"
        )
        nginx.wait_until(
            lambda: metric(server, "streams") == 0, "the end of all streams"
        )


def test_full_port_is_overloaded(tmp_path: Path, mode: str) -> None:
    init = f'init_worker_by_lua_block {{ require("thalweg.port").capacity = 4 {INIT.split("{", 1)[1]}'
    server = """location / { content_by_lua_block {
      local threads, results = {}, {}
      for i = 1, 6 do threads[i] = ngx.thread.spawn(function() return client:sleep(20) end) end
      for i = 1, 6 do
        local _, value, err = ngx.thread.wait(threads[i])
        results[i] = value and "ok" or err.code .. " " .. tostring(err.retryable)
      end
      ngx.print(table.concat(results, ", "), ", ", tostring(client:sleep(1)))
    } }"""
    with nginx.started(tmp_path, init, server, mode=mode) as started:
        text = started.get("/").text
    assert text == "ok, ok, ok, ok, overloaded true, overloaded true, 1"
    assert not started.alerts()


def test_worker_that_is_terminated_ends_its_calls_with_borrowed_strings(
    tmp_path: Path, mode: str
) -> None:
    """The service reads a stream that does not end, so that the other call waits with its string."""
    server = (
        SERVER
        + """location /blocked { content_by_lua_block {
          ngx.thread.spawn(function() client:names_of(function() ngx.sleep(1000) end) end)
          ngx.thread.spawn(function() client:echo_bytes(("x"):rep(1000000)) end)
          ngx.print("begun") ngx.flush(true) ngx.sleep(1000)
        } }"""
    )
    with nginx.started(tmp_path, INIT, server, mode=mode) as started:
        with connection(started, "/blocked") as client:
            while b"begun" not in client.recv(1000):
                pass
            started.signal(signal.SIGTERM)
            assert started.process.wait(nginx.LIMIT) == 0
    assert not started.alerts()


def test_log_of_the_library_is_in_the_error_log(tmp_path: Path, mode: str) -> None:
    server = """location / { content_by_lua_block {
      ngx.print(tostring(select(2, client:panic("on purpose"))))
    } }"""
    with nginx.started(tmp_path, INIT, server, mode=mode) as started:
        assert "on purpose" in started.get("/").text
        line = "thalweg: service: conformance.panic panicked: on purpose"
        nginx.wait_until(lambda: line in started.log(), "the record")
        [written] = [one for one in started.log().splitlines() if line in one]
        assert "[error]" in written
    assert not started.alerts()


def test_spinning_caller_gets_its_answers(tmp_path: Path, mode: str) -> None:
    init = INIT.replace('conformance.so")', 'conformance.so", { spin = true })')
    with nginx.started(tmp_path, init, SERVER, mode=mode) as started:
        for size in (1, 100, 10000, 1000000):
            assert started.get("/echo", b"x" * size).body == b"x" * size
        assert started.get("/sleep").text.startswith("slept in")
        nginx.wait_until(
            lambda: (
                started.get("/echo", b"x").body == b"x"
                and metric(started, "nginx_direct_calls") > 0
            ),
            "a call without the dispatcher",
        )
    assert not started.alerts()


def test_metrics_are_served(tmp_path: Path, mode: str) -> None:
    with running(tmp_path, mode) as server:
        before = metric(server, "nginx_calls")
        server.get("/echo", b"x")
        assert metric(server, "nginx_calls") == before + 1
        assert metric(server, "clients") == 1
