"""The Python example programs run and print the output expected of every language."""

import shutil
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


def test_echo_prints_expected_output(echo_library: str) -> None:
    ran = run(echo_library)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == (EXAMPLES / "echo" / "expected.txt").read_text()


@pytest.mark.parametrize("guest", ["echo", "echo_cpp", "echo_nim"])
def test_echo_of_a_guest_prints_the_same(
    guests: Path, core_library: str, guest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if guest == "echo_nim" and shutil.which("nim") is None:
        pytest.skip("Nim is not installed")
    monkeypatch.setenv("THALWEG_LIBRARY", core_library)
    ran = run(f"thread:{guests / f'libguest_{guest}.so'}")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == (EXAMPLES / "echo" / "expected.txt").read_text()


def test_echo_with_missing_library_reports_its_path() -> None:
    ran = run("no/such/library")
    assert ran.returncode == 1
    assert "no/such/library" in ran.stderr


@pytest.mark.parametrize("options", [(), ("--asyncio",)], ids=["sync", "asyncio"])
def test_feed_prints_expected_output(
    feed_library: str, options: tuple[str, ...]
) -> None:
    ran = run(feed_library, FEED, *options)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == (FEED / "expected.txt").read_text()


def test_hello_prints_expected_output(hello_library: str) -> None:
    ran = run(hello_library, HELLO)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == (HELLO / "expected.txt").read_text()
