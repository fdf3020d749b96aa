# Written by `thalweg gen` from thalweg:lab@0.1.0. Do not edit.
"""Records of thalweg:lab@0.1.0 as batches of a stream give them."""

from __future__ import annotations

import thalweg.layout

from .types import BytesPayload, Event, Match, Pulse, Scalars, Tick


class MatchView(thalweg.View[Match]):
    """A `Match` in a batch. Its fields raise once that is released."""

    __slots__ = ()

    path: thalweg.layout.Field[str] = thalweg.layout.field(0, thalweg.layout.STRING)
    """Path of the file."""
    line: thalweg.layout.Field[int] = thalweg.layout.field(8, thalweg.layout.U64)
    """The line's number, from 1."""
    column: thalweg.layout.Field[int] = thalweg.layout.field(16, thalweg.layout.U64)
    """Byte of the line at which the first match begins, from 1."""
    text: thalweg.layout.Field[str] = thalweg.layout.field(24, thalweg.layout.STRING)
    """The line without its end."""
    path_bytes: thalweg.layout.Field[bytes | None] = thalweg.layout.field(
        32,
        thalweg.layout.option(thalweg.layout.BYTES, 12, 4, 4),
    )
    """The path's bytes, where they are not UTF-8."""
    text_bytes: thalweg.layout.Field[bytes | None] = thalweg.layout.field(
        44,
        thalweg.layout.option(thalweg.layout.BYTES, 12, 4, 4),
    )
    """The text's bytes, where they are not UTF-8."""
    cut: thalweg.layout.Field[bool] = thalweg.layout.field(56, thalweg.layout.BOOL)
    """The line was longer than `text` holds."""


class EventView(thalweg.View[Event]):
    """A `Event` in a batch. Its fields raise once that is released."""

    __slots__ = ()

    words: thalweg.layout.Field[list[int]] = thalweg.layout.field(
        0,
        thalweg.layout.array_of(thalweg.layout.U64, 56),
    )
    """The event itself, 448 bytes. The first is its number, the second its kind."""
    rest0: thalweg.layout.Field[int] = thalweg.layout.field(448, thalweg.layout.U64)
    """What the two tails take more where they are on the heap."""
    rest1: thalweg.layout.Field[int] = thalweg.layout.field(456, thalweg.layout.U64)
    rest2: thalweg.layout.Field[int] = thalweg.layout.field(464, thalweg.layout.U64)
    detail: thalweg.layout.Field[str] = thalweg.layout.field(472, thalweg.layout.STRING)
    """A text, mostly empty."""
    payload: thalweg.layout.Field[bytes] = thalweg.layout.field(
        480,
        thalweg.layout.BYTES,
    )
    """Bytes, mostly none."""


class TickView(thalweg.View[Tick]):
    """A `Tick` in a batch. Its fields raise once that is released."""

    __slots__ = ()

    number: thalweg.layout.Field[int] = thalweg.layout.field(0, thalweg.layout.U64)
    at: thalweg.layout.Field[int] = thalweg.layout.field(8, thalweg.layout.U64)
    """When it was written, in nanoseconds of the monotonic clock; 0 where nobody asked."""
    bid: thalweg.layout.Field[int] = thalweg.layout.field(16, thalweg.layout.U64)
    ask: thalweg.layout.Field[int] = thalweg.layout.field(24, thalweg.layout.U64)
    bid_size: thalweg.layout.Field[int] = thalweg.layout.field(32, thalweg.layout.U64)
    ask_size: thalweg.layout.Field[int] = thalweg.layout.field(40, thalweg.layout.U64)
    last: thalweg.layout.Field[int] = thalweg.layout.field(48, thalweg.layout.U64)
    volume: thalweg.layout.Field[int] = thalweg.layout.field(56, thalweg.layout.U64)


class PulseView(thalweg.View[Pulse]):
    """A `Pulse` in a batch. Its fields raise once that is released."""

    __slots__ = ()

    number: thalweg.layout.Field[int] = thalweg.layout.field(0, thalweg.layout.U64)
    kind: thalweg.layout.Field[int] = thalweg.layout.field(8, thalweg.layout.U64)


class ScalarsView(thalweg.View[Scalars]):
    """A `Scalars` in a batch. Its fields raise once that is released."""

    __slots__ = ()

    a: thalweg.layout.Field[int] = thalweg.layout.field(0, thalweg.layout.S64)
    b: thalweg.layout.Field[int] = thalweg.layout.field(8, thalweg.layout.S64)
    x: thalweg.layout.Field[float] = thalweg.layout.field(16, thalweg.layout.F64)


class BytesPayloadView(thalweg.View[BytesPayload]):
    """A `BytesPayload` in a batch. Its fields raise once that is released."""

    __slots__ = ()

    data: thalweg.layout.Field[bytes] = thalweg.layout.field(0, thalweg.layout.BYTES)
