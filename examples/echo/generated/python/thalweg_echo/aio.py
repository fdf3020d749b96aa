# Written by `thalweg gen` from thalweg:echo@0.1.0. Do not edit.
"""The client of thalweg:echo@0.1.0 for asyncio."""

from __future__ import annotations

from os import PathLike
from typing import Self

import thalweg

from . import _methods
from .types import ComplexRequest, ComplexResponse, Request, Response, Tick
from .views import TickView


class AsyncTimer(thalweg.AsyncResource):
    """A timer with a name."""

    __slots__ = ()

    async def echo(self, request: Request, *, timeout: float | None = None) -> Response:
        """Returns the message after its delay. The timer serves other calls meanwhile.

        Raises `TimerError`.
        """
        return await _methods.TIMER_ECHO.start(self, timeout, self, request)

    async def complex(
        self,
        request: ComplexRequest,
        *,
        timeout: float | None = None,
    ) -> ComplexResponse:
        """Summarizes the request."""
        return await _methods.TIMER_COMPLEX.start(self, timeout, self, request)

    async def schedule(
        self,
        every_ms: int,
        times: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[Tick, TickView]:
        """Fires every `every-ms` milliseconds, `times` times. With 0 times, it fires until the stream is closed.

        The stream holds 64 unread records; when it is full, the writer waits.

        Raises `TimerError`.
        """
        return await _methods.TIMER_SCHEDULE.start(self, timeout, self, every_ms, times)


class AsyncEcho(thalweg.AsyncClient):
    """An echo and a timer: a small service with state, typed errors, calls that take time, and a stream.

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

    async def timer(self, name: str, *, timeout: float | None = None) -> AsyncTimer:
        """A new `AsyncTimer`.

        Raises `TimerError`.
        """
        return await _methods.TIMER.start_make(AsyncTimer, self, timeout, name)

    async def version(self, *, timeout: float | None = None) -> str:
        """The version of the service."""
        return await _methods.VERSION.start(self, timeout)
