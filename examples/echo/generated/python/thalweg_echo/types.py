# Written by `thalweg gen` from thalweg:echo@0.1.0. Do not edit.
"""The types of thalweg:echo@0.1.0."""

from __future__ import annotations

from dataclasses import dataclass

import thalweg


@dataclass(frozen=True, slots=True)
class Request:
    """A message, and the delay of its response."""

    message: str
    delay_ms: int
    """Delay in milliseconds, at most one hour."""


@dataclass(frozen=True, slots=True)
class Response:
    """The response to a request."""

    message: str
    name: str
    """The name of the timer that responded."""


@dataclass(frozen=True, slots=True)
class ComplexRequest:
    """Lists and optional values."""

    messages: list[Request]
    tags: list[str]
    note: str | None = None
    retries: int | None = None


@dataclass(frozen=True, slots=True)
class ComplexResponse:
    """A summary of a complex request."""

    summary: str
    item_count: int
    has_note: bool


@dataclass(frozen=True, slots=True)
class Tick:
    """One firing of a timer."""

    number: int
    """Number of the tick, counted from 1."""
    late_ns: int
    """Delay in nanoseconds between the scheduled time and the actual time. A timer never fires early."""


class TimerError(thalweg.ServiceError):
    """An error of a timer."""


class TimerErrorNoName(TimerError):
    """A timer needs a name."""

    payload: None


class TimerErrorTooLong(TimerError):
    """The time is longer than one hour: the requested milliseconds."""

    payload: int


class TimerErrorTooShort(TimerError):
    """The time is shorter than one millisecond."""

    payload: None
