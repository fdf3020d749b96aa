# Written by `thalweg gen` from thalweg:lab@0.1.0. Do not edit.
"""The client of thalweg:lab@0.1.0 for sync code."""

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


class Lab(thalweg.Client):
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

    def nop(self, *, timeout: float | None = None) -> None:
        """Does nothing; answered on the service's own actor."""
        return _methods.NOP.call(self, timeout)

    def nop_async(self, *, timeout: float | None = None) -> None:
        """Does nothing; answered by an actor of its own."""
        return _methods.NOP_ASYNC.call(self, timeout)

    def generate(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Match, MatchView]:
        """Matches number 0 to `count - 1`. What stands in each follows from its number alone.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.GENERATE.call(self, timeout, count)

    def events(
        self,
        count: int,
        batch: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Event, EventView]:
        """Events number 0 to `count - 1`, written `batch` at a time.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.EVENTS.call(self, timeout, count, batch)

    def ticks(
        self,
        count: int,
        batch: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Tick, TickView]:
        """Ticks number 0 to `count - 1`, written `batch` at a time.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.TICKS.call(self, timeout, count, batch)

    def heartbeat(
        self,
        count: int,
        period_us: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Tick, TickView]:
        """A tick each `period-us` microseconds, `count` of them, with the time of each.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.HEARTBEAT.call(self, timeout, count, period_us)

    def pulses(
        self,
        count: int,
        batch: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Pulse, PulseView]:
        """Pulses number 0 to `count - 1`, written `batch` at a time.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.PULSES.call(self, timeout, count, batch)

    def feed(
        self,
        count: int,
        batch: int,
        writers: int,
        tails: int,
        per_s: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Event, EventView]:
        """Events number 0 to `count - 1` by so many `writers`, of which each writes its share in order, `batch` at a time. Both tails together have `tails` bytes.
        Where `per-s` is not 0, so many are written a second by each writer, and `rest0` is when.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.FEED.call(self, timeout, count, batch, writers, tails, per_s)

    def feed_at_once(
        self,
        count: int,
        batch: int,
        writers: int,
        tails: int,
        per_s: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Event, EventView]:
        """As `feed`, of a stream whose reader does not linger.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.FEED_AT_ONCE.call(
            self,
            timeout,
            count,
            batch,
            writers,
            tails,
            per_s,
        )

    def events_in256(
        self,
        count: int,
        batch: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Event, EventView]:
        """As `events`, through 256 places.

        Where its reader is slow, the writer waits; it holds 256 records.
        """
        return _methods.EVENTS_IN256.call(self, timeout, count, batch)

    def events_in1024(
        self,
        count: int,
        batch: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Event, EventView]:
        """As `events`, through 1,024 places.

        Where its reader is slow, the writer waits; it holds 1024 records.
        """
        return _methods.EVENTS_IN1024.call(self, timeout, count, batch)

    def parity(self, a: int, b: int, x: float, *, timeout: float | None = None) -> bool:
        """Whether `a + b + x` is even."""
        return _methods.PARITY.call(self, timeout, a, b, x)

    def payload(
        self,
        data: bytes | bytearray | memoryview,
        *,
        timeout: float | None = None,
    ) -> bool:
        """Whether the first byte is even and the last one is the same."""
        return _methods.PAYLOAD.call(self, timeout, data)

    def parities(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Scalars, ScalarsView]:
        """What `parity` is asked for, number 0 to `count - 1`.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.PARITIES.call(self, timeout, count)

    def payloads(
        self,
        count: int,
        size: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[BytesPayload, BytesPayloadView]:
        """What `payload` is asked for, of `size` bytes each, number 0 to `count - 1`.

        Where its reader is slow, the writer waits; it holds 8192 records.
        """
        return _methods.PAYLOADS.call(self, timeout, count, size)
