# Written by `thalweg gen` from thalweg:echo@0.1.0. Do not edit.
"""The client of thalweg:echo@0.1.0 for sync code."""

from __future__ import annotations

from os import PathLike
from typing import Self

import thalweg

from . import _methods
from .types import ComplexRequest, ComplexResponse, Request, Response, Tick
from .views import TickView


class Timer(thalweg.Resource):
    """A timer with a name."""

    __slots__ = ()

    def echo(self, request: Request, *, timeout: float | None = None) -> Response:
        """Returns the message after its delay. The timer serves other calls meanwhile.

        Raises `TimerError`.
        """
        return _methods.TIMER_ECHO.call(self, timeout, self, request)

    def complex(
        self,
        request: ComplexRequest,
        *,
        timeout: float | None = None,
    ) -> ComplexResponse:
        """Summarizes the request."""
        return _methods.TIMER_COMPLEX.call(self, timeout, self, request)

    def schedule(
        self,
        every_ms: int,
        times: int,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Tick, TickView]:
        """Fires every `every-ms` milliseconds, `times` times. With 0 times, it fires until the stream is closed.

        The stream holds 64 unread records; when it is full, the writer waits.

        Raises `TimerError`.
        """
        return _methods.TIMER_SCHEDULE.call(self, timeout, self, every_ms, times)


class Echo(thalweg.Client):
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

    def timer(self, name: str, *, timeout: float | None = None) -> Timer:
        """A new `Timer`.

        Raises `TimerError`.
        """
        return _methods.TIMER.make(Timer, self, timeout, name)

    def version(self, *, timeout: float | None = None) -> str:
        """The version of the service."""
        return _methods.VERSION.call(self, timeout)
