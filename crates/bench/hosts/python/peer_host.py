"""The Python host program of the peers that are modules of Python: `peer_host.py (pyo3 | uniffi) FOLDER`.

Its lines are `nop COUNT UNCOUNTED PAUSE_US`, also `ready`, awaited one by one; and of PyO3's `ticks COUNT`.
"""

import asyncio
import importlib
import sys
from typing import Any

from sample import answer, async_block, commands, move_caller, perf_counter_ns, ready
from tick import one_by_one


def ticks(peer: Any, count: int) -> dict[str, int]:
    """All of them, from the call on."""
    began = perf_counter_ns()
    total, records = one_by_one(peer.ticks(count))
    return {"ns": perf_counter_ns() - began, "records": records, "checksum": total}


async def serve(peer: Any) -> None:
    """Serves standard input on the running loop."""
    await peer.nop()
    move_caller()
    ready()
    # Nothing else runs on this loop, so reading the next line may block it.
    for command, numbers in commands():
        match command:
            case "nop":
                await async_block(peer.nop, numbers)
            case "ready":
                await async_block(peer.ready, numbers)
            case "ticks":
                answer(ticks(peer, numbers[0]))
            case _:
                sys.exit(f"not a command: {command}")


def main() -> None:
    """See the module."""
    module, folder = sys.argv[1:]
    sys.path.insert(0, folder)
    asyncio.run(serve(importlib.import_module(f"peer_{module}")))


if __name__ == "__main__":
    main()
