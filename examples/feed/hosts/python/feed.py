#!/usr/bin/env python3
"""Reads the feed from Python: feed.py LIBRARY [--asyncio]. It prints the same lines as the hosts in Rust and C.

Its package `thalweg` must be installed, and numpy; `thalweg_feed` is the generated one beside it.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "generated" / "python"))

import numpy
import thalweg
from thalweg_feed import AsyncFeed, Event, EventView, Feed, Kind

Batch = thalweg.Batch[Event, EventView]

TRADE = list(Kind).index(Kind.TRADE)
DROPPED_OLDEST = 3


class Ledger:
    """Reads all events as arrays, without an object per event. The overflow policy is `block`."""

    def __init__(self) -> None:
        self.count = self.trades = self.volume = self.turnover = self.best = 0

    def add(self, batch: Batch) -> None:
        """The events of a batch."""
        columns = ("kind", "price", "size")
        kinds, prices, sizes = (self.column(batch, name) for name in columns)
        trades = kinds == TRADE
        self.count += len(batch)
        self.trades += int(trades.sum())
        self.volume += int(sizes[trades].sum())
        self.turnover += int((prices[trades] * sizes[trades].astype("int64")).sum())
        # The price of an event is the best bid.
        self.best = max(self.best, int(prices.max()))

    @staticmethod
    def column(batch: Batch, name: str) -> Any:
        """One field of all records."""
        return numpy.asarray(batch.column(name))

    def show(self) -> None:
        """The line."""
        print(
            f"all: {self.count} events, {self.trades} trades of {self.volume} for {self.turnover}, best bid {self.best}"
        )


class Screen:
    """Reads the remaining events and all halts. The overflow policy is `drop-oldest`."""

    def __init__(self) -> None:
        self.count = self.volume = 0

    def add(self, batch: Batch) -> None:
        """The events of a batch, or a halt."""
        if batch.control:
            for halt in batch:
                print(f"recent: halt at event {halt.number}")
            return
        if batch.lost_before:
            print(
                f"recent: gap of {batch.lost_before} events before number {batch.first_seq}, reason {batch.gap_reason}"
            )
        self.count += len(batch)
        self.volume += int(numpy.asarray(batch.column("size")).sum())

    def show(self, stats: thalweg.StreamStats) -> None:
        """The lines."""
        print(f"recent: {self.count} events of {self.volume}")
        print(
            f"recent: {stats.published} published, {stats.delivered} delivered, "
            f"{stats.lost[DROPPED_OLDEST]} dropped, {stats.control} halts"
        )


def newest(batch: Batch) -> None:
    """Reads the newest event. The overflow policy is `latest`."""
    for event in batch:
        print(
            f"newest: event {event.number} at {event.at_ns} ns, {batch.lost_before} overtaken"
        )


def show(library: str) -> None:
    """Reads all three streams on this thread."""
    with Feed.open(library) as client:
        ledger = Ledger()
        for batch in client.all(100_000).batches():
            ledger.add(batch)
        ledger.show()
        screen = Screen()
        for batch in client.recent(5_000).batches():
            screen.add(batch)
        # A stream that has ended is closed. Statistics cover all streams of a method.
        screen.show(client.recent(0).stats())
        for batch in client.newest(5_000).batches():
            newest(batch)


async def show_async(library: str) -> None:
    """Reads all three streams on asyncio."""
    async with AsyncFeed.open(library) as client:
        ledger = Ledger()
        async for batch in (await client.all(100_000)).batches():
            ledger.add(batch)
        ledger.show()
        screen = Screen()
        async for batch in (await client.recent(5_000)).batches():
            screen.add(batch)
        screen.show((await client.recent(0)).stats())
        async for batch in (await client.newest(5_000)).batches():
            newest(batch)


def main() -> int:
    """The program."""
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--asyncio"]):
        print("usage: feed.py LIBRARY [--asyncio]", file=sys.stderr)
        return 2
    try:
        if len(sys.argv) == 3:
            asyncio.run(show_async(sys.argv[1]))
        else:
            show(sys.argv[1])
    except (OSError, thalweg.Error) as error:
        print(f"feed.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
