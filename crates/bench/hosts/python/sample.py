"""The line protocol of the lab (src/child.rs), and blocks of operations that are timed one by one."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from time import perf_counter_ns

__all__ = [
    "Paced",
    "answer",
    "async_block",
    "commands",
    "move_caller",
    "perf_counter_ns",
    "ready",
]


def ready() -> None:
    """Says that the program can take samples."""
    answer({"ready": True})


def move_caller() -> None:
    """Moves this thread to its own processor if the lab asks for it; all others were started before."""
    cpu = os.environ.get("LAB_CALLER_CPU")
    if cpu is not None:
        os.sched_setaffinity(0, {int(cpu)})


def answer(value: object) -> None:
    """Answers the line that was asked."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def commands() -> Iterator[tuple[str, list[int]]]:
    """The lines that are asked: a command and its numbers."""
    for line in sys.stdin:
        command, *numbers = line.split()
        yield command, [int(number) for number in numbers]


class Paced:
    """Runs a block: `count` operations after `uncounted` ones, with pauses between."""

    def __init__(self, numbers: list[int]) -> None:
        self.count, self.uncounted, pause_us = numbers
        self.pause = pause_us / 1e6

    def wait(self) -> None:
        """The pause before an operation, if there is one."""
        if self.pause:
            time.sleep(self.pause)


async def async_block(
    operation: Callable[[], Awaitable[object]], numbers: list[int]
) -> None:
    """Times operations of the running loop one by one."""
    paced = Paced(numbers)
    for _ in range(paced.uncounted):
        await operation()
    latencies = []
    for _ in range(paced.count):
        if paced.pause:
            await asyncio.sleep(paced.pause)
        began = perf_counter_ns()
        await operation()
        latencies.append(perf_counter_ns() - began)
    answer({"latencies": latencies})
