"""Calls in numbers on asyncio: submitted and awaited by windows, drained when all are there, and the least that a drain can be."""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from time import perf_counter_ns
from typing import Any

from thalweg_lab import AsyncLab

WINDOW = 1024
"""Maximum number of calls in flight; a drain also waits for this many completions."""

FILL_SECONDS = 0.003
"""Untimed seconds for a service to answer a window: several times the need."""

Call = Callable[[int], Coroutine[Any, Any, None]]
Fill = Callable[[int, int], None]


async def windows(count: int, call: Call, fill: Fill | None) -> dict[str, int]:
    """`count` calls by windows. `fill` makes a window's answers lie ready, untimed; where it is None all of it is timed."""
    spent = records = checksum = 0
    while records < count:
        window = min(WINDOW, count - records)
        began = perf_counter_ns()
        tasks = [asyncio.ensure_future(call(records + n)) for n in range(window)]
        if fill is not None:
            # Each of them submits in its first turn.
            await asyncio.sleep(0)
            fill(records, window)
            began = perf_counter_ns()
        for token, task in enumerate(tasks, records):
            await task
            checksum += token
        spent += perf_counter_ns() - began
        records += window
    return {"ns": spent, "records": records, "checksum": checksum}


async def complete(lab: AsyncLab, count: int) -> dict[str, int]:
    """From the first submission to the last completion."""
    return await windows(count, lambda _: lab.nop(), None)


async def paced(lab: AsyncLab, count: int, per_s: int) -> dict[str, list[int]]:
    """How long after it was due each of `count` calls has ended, `per_s` a second, in ns. The loop turns until the next is due."""
    began = perf_counter_ns()
    latencies = [0] * count

    async def call(token: int, due: int) -> None:
        await lab.nop()
        latencies[token] = perf_counter_ns() - due

    tasks = []
    for token in range(count):
        due = began + token * 1_000_000_000 // per_s
        while perf_counter_ns() < due:
            await asyncio.sleep(0)
        tasks.append(asyncio.ensure_future(call(token, due)))
    await asyncio.gather(*tasks)
    return {"latencies": latencies}


async def drain(lab: AsyncLab, count: int) -> dict[str, int]:
    """Times only the awaiting of calls whose completions are ready."""

    def fill(_first: int, _window: int) -> None:
        time.sleep(FILL_SECONDS)

    return await windows(count, lambda _: lab.nop(), fill)


async def raw(count: int) -> dict[str, int]:
    """A baseline: a watched eventfd, a list of finished calls, a future for each."""
    loop = asyncio.get_running_loop()
    event = os.eventfd(0, os.EFD_CLOEXEC)
    waiting: dict[int, asyncio.Future[None]] = {}
    filled: list[int] = []

    async def call(token: int) -> None:
        future = waiting[token] = loop.create_future()
        await future

    def fill(first: int, window: int) -> None:
        filled.extend(range(first, first + window))
        os.eventfd_write(event, 1)

    def drained() -> None:
        os.eventfd_read(event)
        done = filled.copy()
        filled.clear()
        for token in done:
            waiting.pop(token).set_result(None)

    loop.add_reader(event, drained)
    try:
        return await windows(count, call, fill)
    finally:
        loop.remove_reader(event)
        os.close(event)
