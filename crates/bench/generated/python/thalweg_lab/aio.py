# Written by `thalweg gen` from thalweg:lab@0.1.0. Do not edit.
"""The client of thalweg:lab@0.1.0 for asyncio."""

from __future__ import annotations

from os import PathLike
from typing import Self

import thalweg

from . import _methods
from .types import Event, Match
from .views import EventView, MatchView


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
