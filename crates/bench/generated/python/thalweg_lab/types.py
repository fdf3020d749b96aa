# Written by `thalweg gen` from thalweg:lab@0.1.0. Do not edit.
"""The types of thalweg:lab@0.1.0."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Match:
    """One line that matched: the same record as in `thalweg:search`, so that what is measured
    here is what a search delivers.
    """

    path: str
    """Path of the file."""
    line: int
    """The line's number, from 1."""
    column: int
    """Byte of the line at which the first match begins, from 1."""
    text: str
    """The line without its end."""
    path_bytes: bytes | None
    """The path's bytes, where they are not UTF-8."""
    text_bytes: bytes | None
    """The text's bytes, where they are not UTF-8."""
    cut: bool
    """The line was longer than `text` holds."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a market's feed: 488 bytes in a slot, as in the benchmark that the lab repeats."""

    words: list[int]
    """The event itself, 448 bytes. The first is its number, the second its kind."""
    rest0: int
    """What the two tails take more where they are on the heap."""
    rest1: int
    rest2: int
    detail: str
    """A text, mostly empty."""
    payload: bytes
    """Bytes, mostly none."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A market's state: 64 bytes, all of them numbers."""

    number: int
    at: int
    """When it was written, in nanoseconds of the monotonic clock; 0 where nobody asked."""
    bid: int
    ask: int
    bid_size: int
    ask_size: int
    last: int
    volume: int


@dataclass(frozen=True, slots=True)
class Pulse:
    """The least of an event: 16 bytes."""

    number: int
    kind: int


@dataclass(frozen=True, slots=True)
class Scalars:
    """What `parity` takes."""

    a: int
    b: int
    x: float


@dataclass(frozen=True, slots=True)
class EchoRequest:
    """A text and a number: what comes back is asked for by it."""

    message: str
    delay_ms: int


@dataclass(frozen=True, slots=True)
class EchoResponse:
    """Two texts."""

    echoed: str
    timer_name: str


@dataclass(frozen=True, slots=True)
class ComplexRequest:
    """A bit of everything."""

    messages: list[EchoRequest]
    tags: list[str]
    note: str | None = None
    retries: int | None = None


@dataclass(frozen=True, slots=True)
class BytesPayload:
    """Bytes."""

    data: bytes
