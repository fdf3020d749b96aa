"""Load on nginx that is reloaded every few seconds: no request is lost, and memory does not grow.

    prove_reload.py [SECONDS] [INTERVAL]

It runs twice in each mode, for SECONDS [60] with a reload every INTERVAL seconds [5]. First there is
one request for each connection, at a fixed rate: all must be answered, with the right body, by a service in
Rust and by the guests of each language in turn. Then `wrk`
keeps its connections. nginx may close such a connection when the next request is already on its way, so
there every request that nginx has logged must have been answered whole.
"""

from __future__ import annotations

import http.client
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import nginx

THREADS = 4
#: Requests per second, of all threads together.
RATE = 800
BODY = bytes(range(256)) * 16
TEXT = "grüße ".encode() * 600
WRK_CONNECTIONS = 20
#: Growth of a process between the first and the last third of the reloads, in KiB.
GROWTH = 512

#: The guests that `build-guests.sh` has built from the echo example.
GUESTS = sorted((nginx.BUILD / "guests").glob("libguest_echo*.so"))
MAIN = f"env THALWEG_LIBRARY={nginx.LIBRARIES}/libthalweg.so;"

INIT = f"""log_format whole '$status $body_bytes_sent $request_completion';
keepalive_requests 1000000;
init_worker_by_lua_block {{
  client = assert(require("conformance").open("{nginx.LIBRARIES}/libthalweg_conformance.so"))
  guests = {{}}
  for path in ("{" ".join(map(str, GUESTS))}"):gmatch("%S+") do
    guests[#guests + 1] = assert(require("echo").open("thread:" .. path))
  end
}}"""

SERVER = f"""access_log logs/whole.log whole;
location /echo {{ content_by_lua_block {{
  ngx.req.read_body()
  local body = assert(client:echo_bytes(ngx.req.get_body_data()))
  ngx.header["Content-Length"] = #body
  ngx.print(body)
}} }}
location ~ ^/guest/(?<number>\\d+)$ {{ content_by_lua_block {{
  ngx.req.read_body()
  local timer = assert(guests[tonumber(ngx.var.number)]:timer("reload"))
  local response = assert(timer:echo {{ message = ngx.req.get_body_data(), delay_ms = 1 }})
  timer:close()
  ngx.header["Content-Length"] = #response.message
  ngx.print(response.message)
}} }}
location /same {{ content_by_lua_block {{
  local body = ("same"):rep({len(BODY) // 4})
  ngx.header["Content-Length"] = #body
  ngx.print(assert(client:echo_string(body)))
}} }}"""

WRK_SCRIPT = """local threads, wrong = {}, 0
function setup(thread) threads[#threads + 1] = thread thread:set("wrong", 0) end
function response(status, headers, body)
  if status ~= 200 or body ~= ("same"):rep(1024) then wrong = wrong + 1 end
end
function done(summary)
  local sum = 0
  for _, thread in ipairs(threads) do sum = sum + thread:get("wrong") end
  print("wrong bodies: " .. sum)
end"""


def memory(pid: int) -> int:
    """The resident memory of a process, in KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s*(\d+)", status)
    return int(found[1]) if found else 0


def reload(server: nginx.Nginx) -> None:
    old = set(server.workers())
    server.signal(signal.SIGHUP)
    nginx.wait_until(
        lambda: len(server.workers()) == 2 and not old & set(server.workers()),
        "the end of the old workers",
    )


class Memory:
    """The memory and descriptors of the processes, noted shortly before each reload."""

    def __init__(self) -> None:
        self.master: list[int] = []
        self.workers: list[int] = []
        self.descriptors: list[int] = []

    def note(self, server: nginx.Nginx) -> None:
        master = server.process.pid
        self.master.append(memory(master))
        self.workers.append(max(memory(pid) for pid in server.workers()))
        self.descriptors.append(len(list(Path(f"/proc/{master}/fd").iterdir())))

    @staticmethod
    def growth(values: list[int]) -> float:
        third = max(len(values) // 3, 1)
        return statistics.median(values[-third:]) - statistics.median(values[:third])

    def problems(self) -> list[str]:
        found = [
            f"the {name} grew by {self.growth(values):.0f} KiB: {values}"
            for name, values in (("master", self.master), ("workers", self.workers))
            if self.growth(values) > GROWTH
        ]
        if self.growth(self.descriptors) > 0:
            found.append(f"descriptors of the master: {self.descriptors}")
        return found


def reload_until(
    server: nginx.Nginx, end: float, interval: float, memory: Memory
) -> None:
    while time.monotonic() + interval < end:
        time.sleep(interval)
        memory.note(server)
        reload(server)


class Requests:
    """Sends requests at a fixed rate, each on its own connection."""

    def __init__(self, server: nginx.Nginx) -> None:
        self.server = server
        self.failed: list[object] = []
        self.counts = [0] * THREADS
        self.stop = threading.Event()

    def run(self, index: int) -> None:
        begin = time.monotonic()
        paths = ["/echo", *(f"/guest/{number + 1}" for number in range(len(GUESTS)))]
        while not self.stop.is_set():
            due = begin + self.counts[index] * THREADS / RATE
            time.sleep(max(due - time.monotonic(), 0))
            try:
                path = paths[self.counts[index] % len(paths)]
                body = TEXT if path.startswith("/guest/") else BODY
                response = self.server.get(path, body)
                if response.status != 200 or response.body != body:
                    self.failed.append((path, response.status))
            except (OSError, http.client.HTTPException) as error:
                self.failed.append((path, error))
            self.counts[index] += 1


def one_for_each_connection(
    server: nginx.Nginx, seconds: float, interval: float, memory: Memory
) -> tuple[int, list[str]]:
    requests = Requests(server)
    threads = [
        threading.Thread(target=requests.run, args=[index]) for index in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    try:
        reload_until(server, time.monotonic() + seconds, interval, memory)
    finally:
        requests.stop.set()
        for thread in threads:
            thread.join()
    problems = [f"failed: {requests.failed[:5]}"] if requests.failed else []
    return sum(requests.counts), problems


def keep_alive(
    server: nginx.Nginx, seconds: float, interval: float, memory: Memory
) -> tuple[int, list[str]]:
    script = server.folder / "wrk.lua"
    script.write_text(WRK_SCRIPT)
    wrk = subprocess.Popen(
        [
            "wrk",
            "-t2",
            f"-c{WRK_CONNECTIONS}",
            f"-d{seconds:.0f}s",
            f"-s{script}",
            f"http://127.0.0.1:{server.port}/same",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    reload_until(server, time.monotonic() + seconds, interval, memory)
    output, _ = wrk.communicate()
    server.stop()
    lines = (server.folder / "logs/whole.log").read_text().splitlines()
    answered = len([line for line in lines if line == f"200 {len(BODY)} OK"])
    problems = []
    received = int(re.search(r"(\d+) requests in", output)[1])  # type: ignore[index]
    # wrk ends while each connection may still have a request: nginx cannot send that answer.
    if len(lines) - answered > WRK_CONNECTIONS:
        problems.append(f"{len(lines) - answered} logged requests were not answered")
    if not 0 <= len(lines) - received <= WRK_CONNECTIONS:
        problems.append(f"nginx logged {len(lines)}, and wrk received {received}")
    if "wrong bodies: 0\n" not in output:
        problems.append(output)
    return received, problems


Load = Callable[[nginx.Nginx, float, float, Memory], tuple[int, list[str]]]


def run(mode: str, load: Load, seconds: float, interval: float) -> list[str]:
    seen = Memory()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "logs").mkdir()
        with nginx.started(
            folder, INIT, SERVER, main=MAIN, mode=mode, workers=2
        ) as server:
            nginx.wait_until(lambda: len(server.workers()) == 2, "the workers")
            count, problems = load(server, seconds, interval, seen)
        problems += [*seen.problems(), *server.alerts()]
    print(
        f"mode {mode}, {load.__name__.replace('_', ' ')}: {count} requests, {len(seen.master)} reloads,"
        f" master {seen.growth(seen.master):+.0f} KiB, worker {seen.growth(seen.workers):+.0f} KiB,"
        f" {len(problems)} problems",
        flush=True,
    )
    return problems


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    interval = float(sys.argv[2]) if len(sys.argv) > 2 else 5
    if not shutil.which("wrk"):
        print("prove_reload: needs wrk", file=sys.stderr)
        return 1
    if not GUESTS:
        print("prove_reload: needs scripts/build-guests.sh", file=sys.stderr)
        return 1
    problems = []
    for mode in nginx.MODES:
        for load in (one_for_each_connection, keep_alive):
            problems += run(mode, load, seconds, interval)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
