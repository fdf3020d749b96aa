"""The examples' programs run, and print what they print in every language."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
ECHO = EXAMPLES / "echo"
FEED = EXAMPLES / "feed"
HELLO = EXAMPLES / "hello"


def run(
    library: str, example: Path = ECHO, *options: str
) -> subprocess.CompletedProcess[str]:
    program = example / "hosts" / "python" / f"{example.name}.py"
    command = [sys.executable, str(program), library, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_echo_prints_what_the_others_print(echo_library: str) -> None:
    ran = run(echo_library)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == (EXAMPLES / "echo" / "expected.txt").read_text()


def test_echo_says_that_there_is_no_library() -> None:
    ran = run("no/such/library")
    assert ran.returncode == 1
    assert "no/such/library" in ran.stderr


@pytest.mark.parametrize("options", [(), ("--asyncio",)], ids=["sync", "asyncio"])
def test_feed_prints_what_the_others_print(
    feed_library: str, options: tuple[str, ...]
) -> None:
    ran = run(feed_library, FEED, *options)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == (FEED / "expected.txt").read_text()


def test_hello_prints_what_the_others_print(hello_library: str) -> None:
    ran = run(hello_library, HELLO)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == (HELLO / "expected.txt").read_text()
