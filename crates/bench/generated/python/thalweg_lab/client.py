# Written by `thalweg gen` from thalweg:lab@0.1.0. Do not edit.
"""The client of thalweg:lab@0.1.0 for sync code."""

from __future__ import annotations

from os import PathLike
from typing import Self

import thalweg

from . import _methods
from .types import Event, Match
from .views import EventView, MatchView


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
