"""A library whose package was extended after the program's code was generated."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
sys.path[:0] = {path!r}
import thalweg
from thalweg_conformance import Conformance
try:
    with Conformance.open(sys.argv[1]) as client:
        print(client.echo_u32(7))
except thalweg.VersionMismatch as refused:
    print("refused:", refused)
"""


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("later") / "libproxy.so")
    include = f"-I{ROOT / 'bindings' / 'c' / 'include'}"
    source = str(Path(__file__).with_name("proxy.c"))
    flags = ["-std=c99", "-fPIC", "-shared", include, source, "-o", path, "-ldl"]
    subprocess.run(["cc", *flags], check=True)
    return path


@pytest.mark.parametrize(
    ("version", "more", "host", "said"),
    [
        ("0.1.0", 1, 0, "7"),
        ("0.1.12", 1, 0, "7"),
        ("0.2.0", 1, 0, "another version"),
        ("1.1.0", 1, 0, "another version"),
        ("0.1.0-rc", 1, 0, "another version"),
        ("0.1.1", 0, 0, "the methods differ"),
        ("0.1.1", -1, 0, "the library has no conformance."),
        ("0.1.1", 1, 1, "by the proxy"),
    ],
)
def test_later_library_opens_if_only_extended(
    proxy: str, conformance_library: str, version: str, more: int, host: int, said: str
) -> None:
    settings = {
        "PROXY_OF": conformance_library,
        "PROXY_VERSION": version,
        "PROXY_MORE": str(more),
        "PROXY_HOST": str(host),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(path=sys.path), proxy],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert said in done.stdout
    assert done.stdout.startswith("7" if said == "7" else "refused:")
