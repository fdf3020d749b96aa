# Written by `thalweg gen` from thalweg:lab@0.1.0. Do not edit.
"""The client of thalweg:lab@0.1.0 for asyncio."""

from __future__ import annotations

from os import PathLike
from typing import Self

import thalweg

from . import _methods
from .types import BytesPayload, Event, Match, Pulse, Scalars, Tick
from .views import (
    BytesPayloadView,
    EventView,
    MatchView,
    PulseView,
    ScalarsView,
    TickView,
)


class AsyncLab(thalweg.AsyncClient):
    """What the lab measures: calls that do nothing, and a stream that costs nothing to produce.

    A client has an instance of the service of its own. Every call takes `timeout`, in
    seconds, and raises `thalweg.TimedOut` when it is over.
    """

    __slots__ = ()

    @classmethod
    def open(cls, path: str | PathLike[str]) -> Self:
        """Opens the library at `path` and makes a client of it.

        Raises `OSError` where it cannot be loaded and `thalweg.VersionMismatch` where it does
        not fit this package.
        """
        return cls._open(_methods.PACKAGE, path)

    async def nop(self, *, timeout: float | None = None) -> None:
        """Does nothing; answered on the service's own actor."""
        return await _methods.NOP.start(self, timeout)

    async def nop_async(self, *, timeout: float | None = None) -> None:
        """Does nothing; answered by an actor of its own."""
        return await _methods.NOP_ASYNC.start(self, timeout)

    async def generate(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[Match, MatchView]:
        """Matches number 0 to `count - 1`. What stands in each follows from its number alone.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.GENERATE.start(self, timeout, count)

    async def events(
        self,
        count: int,
        batch: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[Event, EventView]:
        """Events number 0 to `count - 1`, written `batch` at a time.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.EVENTS.start(self, timeout, count, batch)

    async def ticks(
        self,
        count: int,
        batch: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[Tick, TickView]:
        """Ticks number 0 to `count - 1`, written `batch` at a time.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.TICKS.start(self, timeout, count, batch)

    async def heartbeat(
        self,
        count: int,
        period_us: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[Tick, TickView]:
        """A tick each `period-us` microseconds, `count` of them, with the time of each.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.HEARTBEAT.start(self, timeout, count, period_us)

    async def pulses(
        self,
        count: int,
        batch: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[Pulse, PulseView]:
        """Pulses number 0 to `count - 1`, written `batch` at a time.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.PULSES.start(self, timeout, count, batch)

    async def feed(
        self,
        count: int,
        batch: int,
        writers: int,
        tails: int,
        per_s: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[Event, EventView]:
        """Events number 0 to `count - 1` by so many `writers`, of which each writes its share in order, `batch` at a time. Both tails together have `tails` bytes.
        Where `per-s` is not 0, so many are written a second by each writer, and `rest0` is when.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.FEED.start(
            self,
            timeout,
            count,
            batch,
            writers,
            tails,
            per_s,
        )

    async def feed_at_once(
        self,
        count: int,
        batch: int,
        writers: int,
        tails: int,
        per_s: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[Event, EventView]:
        """As `feed`, of a stream whose reader does not linger.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.FEED_AT_ONCE.start(
            self,
            timeout,
            count,
            batch,
            writers,
            tails,
            per_s,
        )

    async def events_in256(
        self,
        count: int,
        batch: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[Event, EventView]:
        """As `events`, through 256 places.

        Where its reader is slow, the writer waits; it holds 256 records.
        """
        return await _methods.EVENTS_IN256.start(self, timeout, count, batch)

    async def events_in1024(
        self,
        count: int,
        batch: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[Event, EventView]:
        """As `events`, through 1,024 places.

        Where its reader is slow, the writer waits; it holds 1024 records.
        """
        return await _methods.EVENTS_IN1024.start(self, timeout, count, batch)

    async def parity(
        self,
        a: int,
        b: int,
        x: float,
        *,
        timeout: float | None = None,
    ) -> bool:
        """Whether `a + b + x` is even."""
        return await _methods.PARITY.start(self, timeout, a, b, x)

    async def payload(
        self,
        data: bytes | bytearray | memoryview,
        *,
        timeout: float | None = None,
    ) -> bool:
        """Whether the first byte is even and the last one is the same."""
        return await _methods.PAYLOAD.start(self, timeout, data)

    async def parities(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[Scalars, ScalarsView]:
        """What `parity` is asked for, number 0 to `count - 1`.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.PARITIES.start(self, timeout, count)

    async def payloads(
        self,
        count: int,
        size: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[BytesPayload, BytesPayloadView]:
        """What `payload` is asked for, of `size` bytes each, number 0 to `count - 1`.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return await _methods.PAYLOADS.start(self, timeout, count, size)
