"""Repeated work leaks no memory."""

import asyncio
import contextlib
import gc
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import thalweg
from thalweg_conformance import AsyncConformance, Conformance, FailureCode
from thalweg_conformance.types import Point, ShapeLabel, ShapeLine


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def growth(work: Callable[[], None], rounds: int) -> int:
    """Growth of memory in bytes over the second of two series of `rounds` calls."""
    for _ in range(rounds):
        work()
    gc.collect()
    before = resident()
    for _ in range(rounds):
        work()
    gc.collect()
    return resident() - before


def values(service: Conformance) -> None:
    shape = ShapeLine((Point(1, 2), Point(3, 4)))
    assert service.echo_shapes([shape, ShapeLabel("x" * 100)]) == [
        shape,
        ShapeLabel("x" * 100),
    ]


def errors(service: Conformance) -> None:
    with pytest.raises(FailureCode):
        service.fail(FailureCode(3))
    with pytest.raises(TypeError):
        service.echo_u8("x")  # type: ignore[arg-type]


def streams(service: Conformance) -> None:
    with service.items(50) as stream:
        for batch in stream.batches(max=20):
            assert [view.name for view in batch] == [
                item.name for item in batch.objects()
            ]
    next(iter(service.endless()))


def resources(service: Conformance) -> None:
    assert service.counter(1).value() == 1


def sent(service: Conformance) -> None:
    assert service.sum_of(iter(range(20))) == (20, 190)
    assert service.first_numbers(1, range(20)) == [0]
    assert service.hear("now") == "now"
    with pytest.raises(thalweg.ServiceError):
        service.hear(thalweg.NoValue())
    with pytest.raises(TypeError):
        service.words_first([1], "x")
    with pytest.raises(TypeError):
        service.sum_of([1, "x"])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("work", "rounds"),
    [(values, 5000), (errors, 5000), (streams, 5000), (resources, 5000), (sent, 1000)],
)
def test_sync_work_leaks_no_memory(
    work: Callable[[Conformance], None], rounds: int, service: Conformance
) -> None:
    assert growth(lambda: work(service), rounds) < 2 << 20


def test_clients_leak_no_memory(conformance_library: str) -> None:
    def work() -> None:
        with Conformance.open(conformance_library) as service:
            service.nothing()

    assert growth(work, 500) < 2 << 20


def test_asyncio_work_leaks_no_memory(conformance_library: str) -> None:
    async def once(service: AsyncConformance) -> None:
        await asyncio.gather(*(service.echo_u64(number) for number in range(20)))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(service.never(), 0)
        async for _ in await service.items(50):
            pass
        with contextlib.suppress(thalweg.ServiceError):
            await service.fail(FailureCode(1))
        assert await service.first_numbers(1, range(300)) == [0]
        with contextlib.suppress(TypeError):
            await service.sum_of([1, "x"])  # type: ignore[list-item]
        with contextlib.suppress(thalweg.ServiceError):
            await service.hear(asyncio.sleep(0, thalweg.NoValue()))

    def work() -> None:
        async def many() -> None:
            async with AsyncConformance.open(conformance_library) as service:
                for _ in range(20):
                    await once(service)

        asyncio.run(many())

    assert growth(work, 30) < 4 << 20


def test_import_in_subinterpreter_is_refused() -> None:
    program = """
import thalweg
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
refused = "try:\\n import thalweg\\nexcept ImportError:\\n import os; os.write(1, b'refused')"
interpreters.run_string(interpreters.create(), refused)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "refused"
