#!/usr/bin/env python3
"""Calls the echo service from Python: echo.py LIBRARY. It prints the same lines as the hosts in Rust and C.

Its package `thalweg` must be installed; `thalweg_echo` is the generated one beside it.
"""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "generated" / "python"))

import thalweg
from thalweg_echo import (
    AsyncEcho,
    AsyncTimer,
    ComplexRequest,
    Request,
    TimerErrorTooLong,
)

HOUR = 60 * 60 * 1_000


async def say(timer: AsyncTimer, message: str, delay_ms: int) -> None:
    """Sends one message and prints the response."""
    response = await timer.echo(Request(message=message, delay_ms=delay_ms))
    print(f"{response.name} said {response.message}")


async def show(library: str) -> None:
    """Calls every function of the service."""
    async with AsyncEcho.open(library) as client:
        print(f"version {await client.version()}")

        async with await client.timer("clock") as timer:
            # Both calls run concurrently.
            await asyncio.gather(say(timer, "later", 50), say(timer, "sooner", 0))

            request = ComplexRequest(
                messages=[Request("one", 10), Request("two", 20)],
                tags=["fast", "async"],
                note="an extra",
                retries=3,
            )
            response = await timer.complex(request)
            print(f"{response.summary} ({response.item_count})")

            async with await timer.schedule(5, 3) as ticks:
                async for tick in ticks:
                    print(f"tick {tick.number}")

            # A typed error of the service.
            try:
                await say(timer, "never", HOUR + 1)
            except TimerErrorTooLong as refused:
                print(f"refused: {refused.payload} ms")
            # At the caller's deadline, the service also stops its work for the call.
            try:
                await timer.echo(Request("in an hour", HOUR), timeout=0.02)
            except thalweg.TimedOut:
                print("timed out")


def main() -> int:
    """The program."""
    if len(sys.argv) != 2:
        print("usage: echo.py LIBRARY", file=sys.stderr)
        return 2
    try:
        asyncio.run(show(sys.argv[1]))
    except (OSError, thalweg.Error) as error:
        print(f"echo.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
