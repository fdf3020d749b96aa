# Written by `thalweg gen` from thalweg:feed@0.1.0. Do not edit.
"""The client of thalweg:feed@0.1.0 for sync code."""

from __future__ import annotations

from os import PathLike
from typing import Self

import thalweg

from . import _methods
from .types import Event
from .views import EventView


class Feed(thalweg.Client):
    """Market events: three streams of the same records with different overflow policies.

    A client has an instance of the service of its own. Every call takes `timeout`, in
    seconds, and raises `thalweg.TimedOut` when it is over.
    """

    __slots__ = ()

    @classmethod
    def open(cls, path: str | PathLike[str] | None = None) -> Self:
        """Opens a library, by default the one in this package, and makes a client of it.

        Raises `OSError` where it cannot be loaded and `thalweg.VersionMismatch` where it does
        not fit this package.
        """
        return cls._open(_methods.PACKAGE, thalweg.library_path(path, __file__))

    def all(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Event, EventView]:
        """All of `count` events. A slow reader delays the market. Use it for a ledger.

        The stream holds 4096 unread records; when it is full, the writer waits.
        """
        return _methods.ALL.call(self, timeout, count)

    def recent(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Event, EventView]:
        """`count` events. If the stream is full, the oldest are dropped, and the reader gets their number. Every thousandth event
        is a halt on the control lane, which is never dropped. Use it for a screen.

        The stream holds 1024 unread records; when it is full, the oldest records are dropped and counted.
        """
        return _methods.RECENT.call(self, timeout, count)

    def newest(
        self,
        count: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Event, EventView]:
        """The newest of `count` events. Use it for a reader that polls.

        The stream holds one unread record; a newer record replaces it, which is counted.
        """
        return _methods.NEWEST.call(self, timeout, count)
