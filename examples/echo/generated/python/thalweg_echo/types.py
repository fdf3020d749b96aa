# Written by `thalweg gen` from thalweg:echo@0.1.0. Do not edit.
"""The types of thalweg:echo@0.1.0."""

from __future__ import annotations

from dataclasses import dataclass

import thalweg


@dataclass(frozen=True, slots=True)
class Request:
    """What is said, and how long the answer takes."""

    message: str
    delay_ms: int
    """At most an hour."""


@dataclass(frozen=True, slots=True)
class Response:
    """What came back, and from whom."""

    message: str
    name: str
    """Of the timer that answered."""


@dataclass(frozen=True, slots=True)
class ComplexRequest:
    """A list of records, a list of texts, and what may be missing."""

    messages: list[Request]
    tags: list[str]
    note: str | None = None
    retries: int | None = None


@dataclass(frozen=True, slots=True)
class ComplexResponse:
    """What of it arrived."""

    summary: str
    item_count: int
    has_note: bool


@dataclass(frozen=True, slots=True)
class Tick:
    """The timer has fired."""

    number: int
    """From 1."""
    late_ns: int
    """Nanoseconds between the moment it was set to and the one at which it fired. Never negative: no timer is early."""


class TimerError(thalweg.ServiceError):
    """Why a timer does not do as it is told."""


class TimerErrorNoName(TimerError):
    """A timer needs a name."""

    payload: None


class TimerErrorTooLong(TimerError):
    """Longer than an hour: how long, in ms."""

    payload: int


class TimerErrorTooShort(TimerError):
    """Shorter than a millisecond."""

    payload: None
