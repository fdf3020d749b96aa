"""The Python host program of the lab's own service: `lab_host.py (sync | asyncio) LIBRARY BARE`.

Its lines are those of src/workloads/lab_hosts.rs; what it measures is how a Python program would
use the generated package.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable

import reading
from bare import AsyncBare, Bare
from sample import Paced, answer, commands, perf_counter_ns, ready
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


async def async_block(
    operation: Callable[[], Awaitable[object]], numbers: list[int]
) -> None:
    """The same on the running loop."""
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


def sync_main(library: str, bare: Bare) -> None:
    """Serves standard input with the blocking client."""
    with Lab.open(library) as lab:
        ready()
        kept: list[Match] = []
        for command, numbers in commands():
            match command:
                case "nop":
                    block(lab.nop, numbers)
                case "nop-async":
                    block(lab.nop_async, numbers)
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
                case "verify":
                    answer(reading.verify(lab.generate(numbers[0])))
                case _:
                    sys.exit(f"not a command: {command}")


async def async_main(library: str, bare: Bare) -> None:
    """Serves standard input with the client on asyncio."""
    async_bare = AsyncBare(bare)
    async with AsyncLab.open(library) as lab:
        ready()
        # Nothing else runs on this loop, so reading the next line may block it.
        for command, numbers in commands():
            match command:
                case "nop":
                    await async_block(lab.nop, numbers)
                case "nop-async":
                    await async_block(lab.nop_async, numbers)
                case "bare":
                    await async_block(async_bare.call, numbers)
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
    mode, library, bare_library = sys.argv[1:]
    bare = Bare(bare_library)
    if mode == "sync":
        sync_main(library, bare)
    else:
        asyncio.run(async_main(library, bare))
    bare.stop()


if __name__ == "__main__":
    main()
