"""Ctrl-C and signal handlers, each tested in a separate process."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

SYNC_CALL = """
    with Conformance.open(library) as service:
        ready()
        service.never()
"""
SYNC_STREAM = """
    from thalweg_search import Options, Search
    options = Options(True, False, True, False, [])
    with Search.open(library.replace("conformance", "search")) as search:
        with search.query("needle", ".", options) as query:
            stream = query.progress()
            ready()
            for progress in stream:
                pass
"""
RUNNING_STREAM = """
    with Conformance.open(library) as service:
        ready()
        for number in service.endless():
            pass
"""
RUNNING_SEARCH = """
    from thalweg_search import Search
    with Search.open(library.replace("conformance", "search")) as search:
        ready()
        while True:
            search.count("(a|b|c|d|e)+x{3}y", "/usr")
"""
ASYNC_CALL = """
    async def main():
        async with AsyncConformance.open(library) as service:
            ready()
            await service.never()
    asyncio.run(main())
"""
ASYNC_STREAM = """
    async def main():
        async with AsyncConformance.open(library) as service:
            ready()
            async for number in await service.endless():
                pass
    asyncio.run(main())
"""

PROGRAM = """
import asyncio, sys
sys.path[:0] = {path!r}
from thalweg_conformance import AsyncConformance, Conformance

library = sys.argv[1]

def ready():
    print("ready", flush=True)

try:
{body}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def start(body: str, library: str) -> subprocess.Popen[str]:
    body = textwrap.indent(textwrap.dedent(body), "    ")
    program = PROGRAM.format(path=[p for p in sys.path if "generated" in p], body=body)
    process = subprocess.Popen(
        [sys.executable, "-c", program, library],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    return process


@pytest.mark.parametrize(
    "body",
    [SYNC_CALL, SYNC_STREAM, RUNNING_STREAM, RUNNING_SEARCH, ASYNC_CALL, ASYNC_STREAM],
    ids=["call", "stream", "busy-stream", "search", "async-call", "async-stream"],
)
def test_ctrl_c_interrupts_endless_work(body: str, conformance_library: str) -> None:
    process = start(body, conformance_library)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out == "interrupted\n"
    assert process.returncode == 0


def test_signal_handler_that_calls_keeps_outer_call_intact(
    conformance_library: str,
) -> None:
    body = """
        import signal
        with Conformance.open(library) as service:
            seen = []
            def handler(number, frame):
                seen.append(service.echo_u8(7))
                ready()
            signal.signal(signal.SIGUSR1, handler)
            ready()
            while len(seen) < 3:
                assert service.sleep(500) == 500
            print(seen, flush=True)
    """
    process = start(body, conformance_library)
    assert process.stdout is not None
    for _ in range(3):
        process.send_signal(signal.SIGUSR1)
        # A second signal that arrives before the handler runs would be merged.
        assert process.stdout.readline() == "ready\n"
    out, _ = process.communicate(timeout=60)
    assert out == "[7, 7, 7]\n"
    assert process.returncode == 0


def test_call_that_ends_during_signal_handler_returns(conformance_library: str) -> None:
    body = """
        import signal
        with Conformance.open(library) as service:
            def handler(number, frame):
                print(service.sleep(300), flush=True)
            signal.signal(signal.SIGALRM, handler)
            ready()
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            print(service.sleep(100), flush=True)
    """
    process = start(body, conformance_library)
    out, _ = process.communicate(timeout=60)
    assert out == "300\n100\n"
