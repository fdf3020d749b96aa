# Written by `thalweg gen` from thalweg:hello@0.1.0. Do not edit.
"""The client of thalweg:hello@0.1.0 for asyncio."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Self

import thalweg

from . import _methods
from .types import Person, Tone
from .views import PersonView


class AsyncGuests(thalweg.AsyncResource):
    """A guest list, which stays in the service."""

    __slots__ = ()

    async def count(self, *, timeout: float | None = None) -> int:
        """The number of guests."""
        return await _methods.GUESTS_COUNT.start(self, timeout, self)

    async def arrive(
        self,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[Person, PersonView]:
        """The guests, one after the other.

        The stream holds 64 unread records; when it is full, the writer waits.
        """
        return await _methods.GUESTS_ARRIVE.start(self, timeout, self)


class AsyncHello(thalweg.AsyncClient):
    """Greets people, and counts the greetings.

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

    async def guests(
        self,
        people: Sequence[Person],
        *,
        timeout: float | None = None,
    ) -> AsyncGuests:
        """Makes a list. Each person must have a name.

        Raises `HelloError`.
        """
        return await _methods.GUESTS.start_make(AsyncGuests, self, timeout, people)

    async def greet(
        self,
        person: Person,
        tone: Tone,
        *,
        timeout: float | None = None,
    ) -> str:
        """A greeting.

        Raises `HelloError`.
        """
        return await _methods.GREET.start(self, timeout, person, tone)

    async def greet_all(
        self,
        guests: AsyncGuests,
        *,
        timeout: float | None = None,
    ) -> list[str]:
        """A greeting for each guest. The service serves other calls meanwhile."""
        return await _methods.GREET_ALL.start(self, timeout, guests)

    async def greeted(self, *, timeout: float | None = None) -> int:
        """The number of greetings so far."""
        return await _methods.GREETED.start(self, timeout)
