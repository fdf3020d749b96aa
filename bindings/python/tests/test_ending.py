"""Processes that end or continue with work in progress.

Each program runs in its own process and must exit by itself with status 0.
"""

import asyncio
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

import pytest
from options import FIXED
from thalweg_conformance import AsyncConformance, Conformance
from thalweg_search import Search

PROGRAM = """
import asyncio, atexit, sys, threading
sys.path[:0] = {path!r}
from thalweg_conformance import AsyncConformance, Conformance
library = sys.argv[1]
"""

ENDINGS = {
    "an open stream and an unreleased batch": """
        service = Conformance.open(library)
        stream = service.endless()
        batch = next(stream.batches(max=4))
    """,
    "a pending call that is not awaited": """
        async def main():
            service = AsyncConformance.open(library)
            asyncio.ensure_future(service.never())
            await asyncio.sleep(0)
        asyncio.run(main())
    """,
    "a loop that is not closed": """
        loop = asyncio.new_event_loop()
        service = AsyncConformance.open(library)
        task = loop.create_task(service.never())
        loop.run_until_complete(asyncio.sleep(0))
        task._log_destroy_pending = False
    """,
    "a daemon thread in a blocking call": """
        service = Conformance.open(library)
        begun = threading.Event()
        def wait():
            begun.set()
            service.never()
        threading.Thread(target=wait, daemon=True).start()
        begun.wait()
    """,
    "a daemon thread that reads a stream": """
        service = Conformance.open(library)
        begun = threading.Event()
        def read():
            for number in service.endless():
                begun.set()
        threading.Thread(target=read, daemon=True).start()
        begun.wait()
    """,
    "a daemon thread that receives notices": """
        service = Conformance.open(library)
        begun = threading.Event()
        def wait():
            service.never(on_notice=lambda seconds: begun.set())
        threading.Thread(target=wait, daemon=True).start()
        begun.wait()
    """,
    "a task that receives notices": """
        loop = asyncio.new_event_loop()
        service = AsyncConformance.open(library)
        begun = asyncio.Event()
        task = loop.create_task(service.never(on_notice=lambda seconds: begun.set()))
        loop.run_until_complete(begun.wait())
        task._log_destroy_pending = False
    """,
    "a call from atexit": """
        service = Conformance.open(library)
        atexit.register(lambda: print(service.echo_u8(7)))
    """,
    "an exit in a task": """
        async def main():
            service = AsyncConformance.open(library)
            stream = await service.endless()
            await anext(stream)
            sys.exit(0)
        asyncio.run(main())
    """,
    "values of a service in a reference cycle": """
        class Cycle:
            pass
        one = Cycle()
        one.itself, one.service = one, Conformance.open(library)
        one.counter, one.stream = one.service.counter(1), one.service.endless()
        next(one.stream)
    """,
    "a client kept by a module": """
        import thalweg_conformance
        thalweg_conformance.kept = Conformance.open(library)
        thalweg_conformance.stream = thalweg_conformance.kept.endless()
    """,
}


@pytest.mark.parametrize("program", ENDINGS.values(), ids=ENDINGS)
def test_process_exits_cleanly_with(program: str, conformance_library: str) -> None:
    text = PROGRAM.format(path=sys.path) + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", text, conformance_library],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("7\n" if "atexit" in program else "")


def double(library: str, number: int) -> int:
    """Opens the library in a pool process and makes one call."""
    with Conformance.open(library) as service:
        return service.echo_u32(number) * 2


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_pool_workers_call_while_parent_has_open_stream(
    method: str, conformance_library: str, service: Conformance
) -> None:
    stream = service.endless()
    context: BaseContext = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        made = pool.starmap(double, [(conformance_library, n) for n in range(20)])
    assert made == [n * 2 for n in range(20)]
    assert next(stream) == 0
    assert service.echo_u32(7) == 7


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Runs `work` in `count` threads at once and returns the results."""
    answers: list[Any] = [None] * count

    def one(number: int) -> None:
        answers[number] = work(number)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_two_event_loops_share_one_client_concurrently(
    conformance_library: str,
) -> None:
    shared = AsyncConformance.open(conformance_library)

    def run(number: int) -> int:
        async def main() -> int:
            async with AsyncConformance.open(conformance_library) as own:
                calls = [client.echo_u32(number) for client in (shared, own) * 50]
                return sum(await asyncio.gather(*calls))

        return asyncio.run(main())

    assert in_threads(2, run) == [0, 100]
    shared.close()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def resident() -> int:
    """Resident memory of this process in bytes."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def test_ten_thousand_short_threads_leak_nothing(service: Conformance) -> None:
    def some(count: int) -> None:
        for _ in range(count // 10):
            assert in_threads(10, lambda n: service.echo_u32(n)) == list(range(10))

    some(1_000)
    files, memory = open_files(), resident()
    some(9_000)
    assert open_files() <= files + 2
    assert resident() <= memory + (8 << 20)


def test_closing_one_library_keeps_the_other_usable(
    conformance_library: str, search_library: str, tree: Path
) -> None:
    conformance, search = (
        Conformance.open(conformance_library),
        Search.open(search_library),
    )
    stream = conformance.endless()
    assert next(stream) == 0
    with search.query("needle", str(tree), FIXED) as query:
        found = search.matches(query)
        first = next(found)
        conformance.close()
        assert 1 + sum(1 for _ in found) == 7
    assert first.text.count("needle") >= 1
    search.close()
    with Conformance.open(conformance_library) as again:
        assert again.echo_u8(3) == 3
