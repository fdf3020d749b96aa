"""The gateway as serve.sh starts it, with the services that the other tests have built."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import nginx
import pytest

FOLDER = nginx.ROOT / "examples/gateway"


GUESTS = nginx.BUILD / "guests"
FOLDERS = {"LIBRARIES": nginx.LIBRARIES, "GUESTS": GUESTS}

# The echo's languages: the lines of nginx.conf whose libraries this machine could build.
LANGUAGES = [
    language
    for language, folder, file in re.findall(
        r"^ +(\w+) = \"(?:thread:)?@(\w+)@/(\S+)\",$",
        (FOLDER / "nginx.conf").read_text(),
        re.MULTILINE,
    )
    if (FOLDERS[folder] / file).exists()
]


class Gateway:
    def __init__(self, port: int, script: int) -> None:
        self.port = port
        [self.master] = nginx.children(script)

    def log(self) -> str:
        """The error log, in the folder that the script has made."""
        command = Path(f"/proc/{self.master}/cmdline").read_text()
        found = re.search(r"-p (\S+)", command)
        assert found, command
        return (Path(found[1]) / "error.log").read_text()

    def request(
        self, method: str, path: str, body: bytes | None = None
    ) -> nginx.Response:
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=nginx.LIMIT
        )
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            return nginx.Response(response.status, response.read())
        finally:
            connection.close()

    def echo(self, language: str, text: str, delay_ms: int = 0) -> nginx.Response:
        path = f"/echo/{language}?delay_ms={delay_ms}"
        return self.request("POST", path, text.encode())

    def ticks(self, language: str, every_ms: int, times: int) -> list[str]:
        """The numbers of the ticks."""
        path = f"/ticks/{language}?every_ms={every_ms}&times={times}"
        response = self.request("GET", path)
        assert response.status == 200, response.text
        return re.findall(r"^tick (\d+), \d+ us late\n", response.text, re.MULTILINE)

    def search(self, **query: object) -> nginx.Response:
        return self.request("GET", f"/search?{urlencode(query, doseq=True)}")

    def metric(self, name: str, package: str) -> set[float]:
        """The values that the workers gave in some answers. Any of them may answer."""
        label = f'thalweg_{name}{{package="thalweg:{package}",'
        answers = [self.request("GET", "/metrics").text for _ in range(8)]
        return {
            float(line.split()[1])
            for text in answers
            for line in text.splitlines()
            if line.startswith(label)
        }


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    (folder / "a.txt").write_text("one fish\ntwo Fish\nno match\n")
    (folder / "b.rs").write_text("fn fish() {}\n")
    (folder / "big.log").write_text("a long line of a log\n" * 500_000)
    return folder


@contextmanager
def started(tree: Path, guests: Path = GUESTS) -> Iterator[Gateway]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "DIR": str(tree),
        "LIBRARIES": str(nginx.LIBRARIES),
        "GUESTS": str(guests),
        "CARGO_TARGET_DIR": str(nginx.BUILD),
    }
    with subprocess.Popen(
        [str(FOLDER / "serve.sh"), str(port)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert f"http://127.0.0.1:{port}/search" in process.stdout.readline()
        try:
            yield Gateway(port, process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(nginx.LIMIT) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


@pytest.fixture(scope="module")
def gateway(tree: Path) -> Iterator[Gateway]:
    with started(tree) as running:
        yield running


def test_search_prints_the_matches(gateway: Gateway, tree: Path) -> None:
    response = gateway.search(pattern="fi.h", glob=["*.txt", "*.rs"])
    assert response.status == 200
    assert sorted(response.text.splitlines()) == [
        f"{tree}/a.txt:1:5:one fish",
        f"{tree}/b.rs:1:4:fn fish() {{}}",
    ]
    lines = gateway.search(
        pattern="FISH", ignore_case=1, fixed=1, glob="*.txt"
    ).text.splitlines()
    assert [line.split(":", 3)[3] for line in lines] == ["one fish", "two Fish"]
    assert gateway.search(pattern="nowhere to be found").body == b""


def test_all_lines_of_a_long_answer_arrive(gateway: Gateway) -> None:
    response = gateway.search(pattern="log$", glob="big.log")
    assert response.body.count(b"\n") == 500_000


def test_client_that_goes_away_ends_the_search(gateway: Gateway) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port), nginx.LIMIT) as client:
        client.sendall(b"GET /search?pattern=log HTTP/1.1\r\nHost: test\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 200"
        nginx.wait_until(lambda: 1 in gateway.metric("streams", "search"), "the stream")
    nginx.wait_until(
        lambda: gateway.metric("streams", "search") == {0}, "the end of the stream"
    )


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("GET", "/search", None, 400, "pattern=REGEX"),
        ("GET", "/search?pattern=a&pattern=b", None, 400, "one parameter"),
        ("GET", "/search?pattern=(", None, 400, "unclosed group"),
        ("GET", "/search?pattern=a&glob=%5B", None, 400, "["),
        ("GET", "/search?pattern=%ff", None, 400, "UTF-8"),
        ("POST", "/search?pattern=a", b"", 405, "expected GET"),
        ("POST", "/echo", b"x", 405, "expected GET"),
        ("POST", "/echo/cobol", b"x", 404, "no echo in `cobol`; there is c, cpp, "),
        ("GET", "/ticks/cobol", None, 404, "no echo in `cobol`; there is c, cpp, "),
        ("GET", "/other", None, 404, "Not Found"),
    ],
)
def test_wrong_request_is_refused(
    gateway: Gateway,
    method: str,
    path: str,
    body: bytes | None,
    status: int,
    text: str,
) -> None:
    response = gateway.request(method, path, body)
    assert response.status == status
    assert text in response.text


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("GET", "/echo/%s", None, 405, "expected POST"),
        ("POST", "/echo/%s", b"\xff", 400, "UTF-8"),
        ("POST", "/echo/%s?delay_ms=soon", b"x", 400, "delay_ms"),
        ("POST", "/echo/%s?delay_ms=3600001", b"x", 400, "3600001"),
        ("POST", "/echo/%s", bytes(2 << 20), 413, "Too Large"),
        ("POST", "/ticks/%s", b"x", 405, "expected GET"),
        ("GET", "/ticks/%s?every_ms=0", None, 400, "too-short"),
        ("GET", "/ticks/%s?every_ms=3600001", None, 400, "3600001"),
        ("GET", "/ticks/%s?times=-1", None, 400, "times"),
    ],
)
def test_wrong_request_is_refused_in_each_language(
    gateway: Gateway,
    language: str,
    method: str,
    path: str,
    body: bytes | None,
    status: int,
    text: str,
) -> None:
    test_wrong_request_is_refused(gateway, method, path % language, body, status, text)


def test_languages_have_a_version(gateway: Gateway) -> None:
    assert {"c", "cpp", "rust"} <= set(LANGUAGES)
    lines = gateway.request("GET", "/echo").text.splitlines()
    assert {f"{language} 0.1.0" for language in LANGUAGES} <= set(lines)


@pytest.mark.parametrize("language", LANGUAGES)
def test_echo_returns_the_body(gateway: Gateway, language: str) -> None:
    text = "grüße\n" * 1000
    response = gateway.echo(language, text, delay_ms=1)
    assert (response.status, response.text) == (200, text)
    assert gateway.echo(language, "").body == b""


def test_all_languages_answer_at_the_same_time(gateway: Gateway) -> None:
    """Calls and streams overlap: in sequence, they would take a minute."""
    count = 10
    expected = [str(number) for number in range(1, 21)]
    begin = time.monotonic()
    with ThreadPoolExecutor(max_workers=2 * count * len(LANGUAGES)) as pool:
        echoes = {
            f"{language} {number}": pool.submit(
                gateway.echo, language, f"{language} {number}", 1000
            )
            for language in LANGUAGES
            for number in range(count)
        }
        streams = [
            pool.submit(gateway.ticks, language, 50, 20)
            for language in LANGUAGES
            for _ in range(count)
        ]
    for text, echo in echoes.items():
        assert (echo.result().status, echo.result().text) == (200, text)
    assert [stream.result() for stream in streams] == [expected] * len(streams)
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("language", LANGUAGES)
def test_client_that_goes_away_ends_its_ticks(gateway: Gateway, language: str) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port), nginx.LIMIT) as client:
        path = f"/ticks/{language}?every_ms=1"
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        assert client.recv(12) == b"HTTP/1.1 200"
        nginx.wait_until(
            lambda: max(gateway.metric("streams", "echo")) > 0, "the stream"
        )
    nginx.wait_until(
        lambda: gateway.metric("streams", "echo") == {0}, "the end of the stream"
    )


def test_reload_under_load_loses_no_request(tree: Path) -> None:
    """The old workers end with their requests; the new ones open the same guests."""
    with started(tree) as gateway:
        wrong: list[object] = []
        counts = dict.fromkeys(LANGUAGES, 0)
        is_over = threading.Event()

        def run(language: str, send: Callable[[str], bool]) -> None:
            while not is_over.is_set():
                text = f"{language} {counts[language]}"
                counts[language] += 1
                try:
                    if not send(text):
                        wrong.append(text)
                except Exception as error:
                    wrong.append(error)

        def load(language: str) -> list[threading.Thread]:
            def echo(text: str) -> bool:
                response = gateway.echo(language, text, delay_ms=5)
                return (response.status, response.text) == (200, text)

            def ticks(_: str) -> bool:
                return gateway.ticks(language, 20, 10) == [*map(str, range(1, 11))]

            return [
                threading.Thread(target=run, args=[language, send])
                for send in (echo, ticks)
            ]

        threads = [one for language in LANGUAGES for one in load(language)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(3):
                begin = dict(counts)
                nginx.wait_until(
                    lambda begin=begin: all(counts[one] > begin[one] for one in counts),
                    "requests of each language",
                )
                old = set(nginx.children(gateway.master))
                os.kill(gateway.master, signal.SIGHUP)
                nginx.wait_until(
                    lambda old=old: not old & set(nginx.children(gateway.master)),
                    "the end of the old workers",
                )
        finally:
            is_over.set()
            for thread in threads:
                thread.join()
        assert not wrong
        assert not nginx.alerts_in(gateway.log())


@pytest.fixture(scope="module")
def failing(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """The guest in C is one that fails, and there are no others."""
    folder = tmp_path_factory.mktemp("guests")
    subprocess.run(
        [
            "cc",
            "-shared",
            "-fPIC",
            "-fvisibility=hidden",
            f"-I{nginx.ROOT}/bindings/c/include",
            f"-I{GUESTS}/guest-c",
            FOLDER / "tests/failing.c",
            "-o",
            folder / "libguest_echo.so",
        ],
        check=True,
    )
    with started(tree, folder) as running:
        yield running


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        ("guest_lost", 502),
        ("guest_panicked", 502),
        ("overloaded", 503),
        ("timed_out", 504),
    ],
)
def test_guest_that_fails_has_a_status_and_a_reason(
    failing: Gateway, outcome: str, status: int
) -> None:
    for _ in range(2):
        response = failing.echo("c", outcome)
        assert response.status == status
        assert response.text == f"{outcome}: the guest has a reason\n"
    assert failing.echo("rust", "next").text == "next"


def test_stream_that_fails_is_not_complete(failing: Gateway) -> None:
    with pytest.raises(http.client.IncompleteRead):
        failing.ticks("c", 1, 2)


def test_guest_that_cannot_be_opened_has_a_reason(failing: Gateway) -> None:
    response = failing.echo("cpp", "text")
    assert response.status == 502
    assert response.text.startswith("argument: ")
    assert "libguest_echo_cpp.so" in response.text
    lines = failing.request("GET", "/echo").text.splitlines()
    assert "c guest_lost: the guest has no function for echo.version" in lines
    assert f"cpp {response.text}".rstrip() in lines
    assert "rust 0.1.0" in lines


def test_metrics_count_the_calls(gateway: Gateway) -> None:
    gateway.echo("c", "x")
    assert max(gateway.metric("nginx_calls", "echo")) > 0
    assert gateway.metric("clients", "search") == {1}
