"""Parent handles in a child of fork(), and opening the library again in the child."""

import asyncio
import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection

import thalweg
from thalweg_conformance import AsyncConformance, Conformance

FORK = multiprocessing.get_context("fork")


def in_child(work: Callable[[], object]) -> object:
    """Runs `work` in a forked child. Returns its result or the class of its error."""
    here, there = FORK.Pipe()

    def child(pipe: Connection) -> None:
        try:
            pipe.send(work())
        except thalweg.Error as error:
            pipe.send(type(error))
        pipe.close()

    process = FORK.Process(target=child, args=(there,))
    process.start()
    assert here.poll(20), "the child does not answer"
    answer: object = here.recv()
    process.join(10)
    assert process.exitcode == 0
    return answer


def test_parent_handles_in_child_raise_forked(service: Conformance) -> None:
    counter = service.counter(1)
    stream = service.endless()
    batch = next(stream.batches(max=4))
    for use in (
        lambda: service.echo_u8(1),
        counter.value,
        lambda: next(stream),
        lambda: service.counter(1),
    ):
        assert in_child(use) is thalweg.Forked

    def close_all() -> None:
        counter.close()
        stream.close()
        service.close()

    # Closing the handles in the child does not affect the parent.
    assert in_child(close_all) is None
    assert list(batch) == list(range(len(batch)))
    assert counter.value() == 1
    assert service.echo_u8(1) == 1
    stream.close()


def test_library_opened_in_child_works(
    service: Conformance, conformance_library: str
) -> None:
    def again() -> object:
        with Conformance.open(conformance_library) as mine:
            return mine.echo_u64(7), list(mine.count(0, 1000))[-1]

    assert service.echo_u8(1) == 1
    for _ in range(3):
        assert in_child(again) == (7, 999)
    assert service.echo_u8(2) == 2


def test_asyncio_client_in_child_must_be_reopened(conformance_library: str) -> None:
    client = AsyncConformance.open(conformance_library)

    async def call() -> int:
        return await client.echo_u8(1)

    async def call_anew() -> int:
        async with AsyncConformance.open(conformance_library) as mine:
            return await mine.echo_u8(2)

    assert asyncio.run(call()) == 1
    assert in_child(lambda: asyncio.run(call())) is thalweg.Forked
    assert in_child(lambda: asyncio.run(call_anew())) == 2
    assert asyncio.run(call()) == 1
    client.close()


def test_client_of_child_in_grandchild_raises_forked(conformance_library: str) -> None:
    def grandchild() -> object:
        with Conformance.open(conformance_library) as mine:
            assert mine.echo_u8(1) == 1
            refused = in_child(lambda: mine.echo_u8(1)) is thalweg.Forked
            return refused and in_child(lambda: os.getpid() > 0)

    assert in_child(grandchild) is True


def test_child_that_uses_no_handle_exits_cleanly(service: Conformance) -> None:
    process = FORK.Process(target=lambda: None)
    process.start()
    process.join(10)
    assert process.exitcode == 0
    assert service.echo_u8(1) == 1
