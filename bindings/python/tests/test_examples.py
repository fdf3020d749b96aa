"""The example's program runs, and prints what it prints in every language."""

import subprocess
import sys
from pathlib import Path

ECHO = Path(__file__).parents[3] / "examples" / "echo"


def run(library: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ECHO / "hosts" / "python" / "echo.py"), library]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_echo_prints_what_the_others_print(echo_library: str) -> None:
    ran = run(echo_library)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == (ECHO / "expected.txt").read_text()


def test_echo_says_that_there_is_no_library() -> None:
    ran = run("no/such/library")
    assert ran.returncode == 1
    assert "no/such/library" in ran.stderr
