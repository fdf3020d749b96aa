# Written by `thalweg gen` from thalweg:hello@0.1.0. Do not edit.
"""The client of thalweg:hello@0.1.0 for sync code."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Self

import thalweg

from . import _methods
from .types import Person, Tone
from .views import PersonView


class Guests(thalweg.Resource):
    """A guest list, which stays in the service."""

    __slots__ = ()

    def count(self, *, timeout: float | None = None) -> int:
        """The number of guests."""
        return _methods.GUESTS_COUNT.call(self, timeout, self)

    def arrive(
        self,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Person, PersonView]:
        """The guests, one after the other.

        The stream holds 64 unread records; when it is full, the writer waits.
        """
        return _methods.GUESTS_ARRIVE.call(self, timeout, self)


class Hello(thalweg.Client):
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

    def guests(
        self,
        people: Sequence[Person],
        *,
        timeout: float | None = None,
    ) -> Guests:
        """Makes a list. Each person must have a name.

        Raises `HelloError`.
        """
        return _methods.GUESTS.make(Guests, self, timeout, people)

    def greet(self, person: Person, tone: Tone, *, timeout: float | None = None) -> str:
        """A greeting.

        Raises `HelloError`.
        """
        return _methods.GREET.call(self, timeout, person, tone)

    def greet_all(self, guests: Guests, *, timeout: float | None = None) -> list[str]:
        """A greeting for each guest. The service serves other calls meanwhile."""
        return _methods.GREET_ALL.call(self, timeout, guests)

    def greeted(self, *, timeout: float | None = None) -> int:
        """The number of greetings so far."""
        return _methods.GREETED.call(self, timeout)
