"""The Python host program of the lab's own service: `lab_host.py (sync | asyncio) LIBRARY UNIX_PEER`.

Its lines are those of src/workloads/lab_hosts.rs; what it measures is how a Python program would
use the generated package.
"""

import asyncio
import sys
from collections.abc import Callable

import completions
import e2e
import reading
import ticks
from bare import AsyncBare, Bare
from sample import (
    Paced,
    answer,
    async_block,
    commands,
    move_caller,
    perf_counter_ns,
    ready,
)
from thalweg_lab import AsyncLab, Lab, Match


def block(operation: Callable[[], object], numbers: list[int]) -> None:
    """Times operations one by one."""
    paced = Paced(numbers)
    for _ in range(paced.uncounted):
        operation()
    latencies = []
    for _ in range(paced.count):
        paced.wait()
        began = perf_counter_ns()
        operation()
        latencies.append(perf_counter_ns() - began)
    answer({"latencies": latencies})


def sync_main(library: str, unix_peer: str, bare: Bare) -> None:
    """Serves standard input with the blocking client."""
    with Lab.open(library) as lab:
        for operation in (lab.nop, lab.nop_async, bare.call):
            operation()
        move_caller()
        ready()
        kept: list[Match] = []
        for command, numbers in commands():
            match command:
                case "nop":
                    block(lab.nop, numbers)
                case "nop-async":
                    block(lab.nop_async, numbers)
                case "tally":
                    block(lambda: lab.tally(1), numbers)
                case "bare":
                    block(bare.call, numbers)
                case "views":
                    answer(reading.views(lab.generate(numbers[0])))
                case "objects":
                    answer(reading.objects(lab.generate(numbers[0])))
                case "array":
                    if len(kept) != numbers[0]:
                        kept = list(lab.generate(numbers[0]))
                    answer(reading.array(kept))
                case "tick-array":
                    answer(ticks.array(lab, numbers[0]))
                case "pause":
                    answer(ticks.pause(lab, *numbers))
                case tick if tick.startswith("tick-"):
                    answer(ticks.ready(lab, tick.removeprefix("tick-"), numbers[0]))
                case stream if stream.startswith("stream-"):
                    answer(ticks.whole(lab, stream.removeprefix("stream-"), numbers[0]))
                case way if way.startswith("e2e-"):
                    way = way.removeprefix("e2e-")
                    size, count, threads = numbers
                    answer(e2e.run(library, unix_peer, way, size, count, threads))
                case "verify":
                    answer(reading.verify(lab.generate(numbers[0])))
                case _:
                    sys.exit(f"not a command: {command}")


async def async_main(library: str, unix_peer: str, bare: Bare) -> None:
    """Serves standard input with the client on asyncio."""
    async_bare = AsyncBare(bare)
    async with AsyncLab.open(library) as lab:
        for operation in (lab.nop, lab.nop_async, async_bare.call):
            await operation()
        move_caller()
        ready()
        # Nothing else runs on this loop, so reading the next line may block it.
        for command, numbers in commands():
            match command:
                case "nop":
                    await async_block(lab.nop, numbers)
                case "nop-async":
                    await async_block(lab.nop_async, numbers)
                case "tally":
                    await async_block(lambda: lab.tally(1), numbers)
                case "bare":
                    await async_block(async_bare.call, numbers)
                case "complete":
                    answer(await completions.complete(lab, numbers[0]))
                case "paced":
                    answer(await completions.paced(lab, *numbers))
                case "drain":
                    answer(await completions.drain(lab, numbers[0]))
                case "raw":
                    answer(await completions.raw(numbers[0]))
                case way if way.startswith("e2e-"):
                    way = way.removeprefix("e2e-")
                    size, count, _ = numbers
                    answer(await e2e.async_run(library, unix_peer, way, size, count))
                case "views":
                    stream = await lab.generate(numbers[0])
                    records = checksum = 0
                    began = perf_counter_ns()
                    async for batch in stream.batches(reading.BATCH):
                        checksum += reading.touch(batch)
                        records += len(batch)
                    spent = perf_counter_ns() - began
                    answer({"ns": spent, "records": records, "checksum": checksum})
                case _:
                    sys.exit(f"not a command: {command}")
    async_bare.stop()


def main() -> None:
    """See the module."""
    mode, library, unix_peer = sys.argv[1:]
    bare = Bare(library)
    if mode == "sync":
        sync_main(library, unix_peer, bare)
    else:
        asyncio.run(async_main(library, unix_peer, bare))
    bare.stop()


if __name__ == "__main__":
    main()
