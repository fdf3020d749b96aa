"""The gateway as serve.sh starts it, with the services that the other tests have built."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import nginx
import pytest

FOLDER = nginx.ROOT / "examples/gateway"


class Gateway:
    def __init__(self, port: int) -> None:
        self.port = port

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


@pytest.fixture(scope="module")
def gateway(tree: Path) -> Iterator[Gateway]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "DIR": str(tree),
        "LIBRARIES": str(nginx.LIBRARIES),
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
        yield Gateway(port)
        process.send_signal(signal.SIGTERM)
        assert process.wait(nginx.LIMIT) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


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
        ("GET", "/echo", None, 405, "expected POST"),
        ("POST", "/echo", b"\xff", 400, "UTF-8"),
        ("POST", "/echo?delay_ms=soon", b"x", 400, "delay_ms"),
        ("POST", "/echo?delay_ms=3600001", b"x", 400, "3600001"),
        ("POST", "/echo", bytes(2 << 20), 413, "Too Large"),
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


def test_echo_returns_the_body(gateway: Gateway) -> None:
    text = "grüße\n" * 1000
    response = gateway.request("POST", "/echo?delay_ms=1", text.encode())
    assert (response.status, response.text) == (200, text)
    assert gateway.request("POST", "/echo", b"").body == b""


def test_metrics_count_the_calls(gateway: Gateway) -> None:
    gateway.request("POST", "/echo", b"x")
    assert max(gateway.metric("nginx_calls", "echo")) > 0
    assert gateway.metric("clients", "search") == {1}
