"""Repeated opening and closing leaks nothing.

`THALWEG_SOAK` sets the number of rounds; the default is 10,000.
"""

import gc
import os
import resource
from pathlib import Path

import pytest
from thalweg_conformance import Conformance, FailureCode

ROUNDS = int(os.environ.get("THALWEG_SOAK", "10000"))

SLACK = 6 << 20
"""Bytes that the allocators may still take, whatever the number of rounds."""


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def one_round(library: str, number: int) -> None:
    """Opens a client, uses it and closes it.

    The client makes a call, a resource, a failing constructor, and a stream that is
    closed while an array of its batch is alive.
    """
    with Conformance.open(library) as service:
        assert service.echo_u64(number) == number
        counter = service.counter(number)
        with pytest.raises(FailureCode):
            service.even(1)
        stream = service.endless()
        kept = next(stream.batches(max=16)).array()
        stream.close()
        assert kept[0] == 0
        if number % 2 == 0:
            counter.close()


def test_rounds_leak_neither_memory_nor_descriptors(conformance_library: str) -> None:
    first = ROUNDS // 10
    for number in range(first):
        one_round(conformance_library, number)
    gc.collect()
    memory, files = resident(), descriptors()
    for number in range(first, ROUNDS):
        one_round(conformance_library, number)
    gc.collect()
    grown = resident() - memory
    print(f"soak: {ROUNDS} rounds: {grown} bytes more than after {first}")
    assert grown < SLACK
    assert descriptors() == files
