"""The Python recipes of `docs/recipes.md`."""

import asyncio
import http.client
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from thalweg_recipes import AsyncRecipes, JobErrorFailedStep

ROOT = Path(__file__).parents[3]
WEB = ROOT / "examples" / "recipes" / "hosts" / "python" / "web.py"


class Web:
    """A running server."""

    def __init__(self, library: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WEB), library], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().split()[1])

    def get(self, path: str) -> tuple[int, str]:
        """The status and the body of a response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()

    def stop(self) -> str:
        """Asks the server to stop and returns the rest of its output."""
        self.process.send_signal(signal.SIGTERM)
        printed, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return printed


@pytest.fixture
def web(recipes_library: str) -> Iterator[Web]:
    web = Web(recipes_library)
    yield web
    if web.process.poll() is None:
        web.process.kill()
        web.process.communicate()


def test_web_server_answers_and_stops(web: Web) -> None:
    status, digest = web.get("/digest?text=a")
    assert (status, len(digest)) == (200, 17)
    assert web.get("/digest?text=a") == (200, digest)
    assert web.get("/digest")[0] == 400
    assert web.get("/nothing")[0] == 404
    assert web.stop() == "stopped\n"


def test_web_server_sends_settings_until_the_browser_leaves(web: Web) -> None:
    assert web.get("/set?color=red") == (200, "done\n")
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=60)
    connection.request("GET", "/settings")
    events = connection.getresponse()
    assert events.readline() == b"data: color=red\n"
    assert events.readline() == b"\n"
    assert web.get("/set?color=blue") == (200, "done\n")
    assert events.readline() == b"data: color=blue\n"
    connection.close()
    assert web.get("/digest?text=a")[0] == 200


def test_web_server_answers_many_requests_at_once(web: Web) -> None:
    answers: list[tuple[int, str]] = []
    threads = [
        threading.Thread(target=lambda: answers.append(web.get("/digest?text=a")))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 20
    assert {status for status, _ in answers} == {200}
    assert web.stop() == "stopped\n"


def test_stream_ends_with_exception_of_its_function(recipes_library: str) -> None:
    seen: list[int | str] = []

    async def read() -> None:
        async with AsyncRecipes.open(recipes_library) as recipes:
            try:
                async for step in await recipes.steps(5, 3):
                    seen.append(step)
            except JobErrorFailedStep as error:
                seen.append(f"step {error.payload} failed")

    asyncio.run(read())
    assert seen == [1, 2, "step 3 failed"]


def python_blocks(page: str) -> list[str]:
    """The Python code of a page."""
    blocks = (ROOT / "docs" / page).read_text().split("```")[1::2]
    return [block.removeprefix("python\n") for block in blocks if block[:6] == "python"]


def trimmed(text: str) -> str:
    """The lines without their indentation."""
    return "".join(f"{line.strip()}\n" for line in text.splitlines())


def test_pages_show_tested_code() -> None:
    code = trimmed(WEB.read_text() + Path(__file__).read_text())
    shown = python_blocks("recipes.md") + python_blocks("services.md")
    assert len(shown) == 5
    for block in shown:
        assert trimmed(block) in code, block
