# Written by `thalweg gen` from thalweg:conformance@0.1.0. Do not edit.
"""Records of thalweg:conformance@0.1.0 as batches of a stream give them."""

from __future__ import annotations

import thalweg.layout

from . import _layout
from .types import Color, Days, Item, Point, Sample, Scalars


class ItemView(thalweg.View[Item]):
    """A `Item` in a batch. Its fields raise once that is released."""

    __slots__ = ()

    number: thalweg.layout.Field[int] = thalweg.layout.field(0, thalweg.layout.U64)
    name: thalweg.layout.Field[str] = thalweg.layout.field(8, thalweg.layout.STRING)
    tags: thalweg.layout.Field[list[str]] = thalweg.layout.field(
        16,
        thalweg.layout.list_of(thalweg.layout.STRING),
    )
    blob: thalweg.layout.Field[bytes | None] = thalweg.layout.field(
        24,
        thalweg.layout.option(thalweg.layout.BYTES, 12, 4, 4),
    )


class SampleView(thalweg.View[Sample]):
    """A `Sample` in a batch. Its fields raise once that is released."""

    __slots__ = ()

    number: thalweg.layout.Field[int] = thalweg.layout.field(0, thalweg.layout.U32)
    at: thalweg.layout.Field[Point] = thalweg.layout.field(4, _layout.POINT)
    all: thalweg.layout.Field[Scalars] = thalweg.layout.field(16, _layout.SCALARS)
    weight: thalweg.layout.Field[float | None] = thalweg.layout.field(
        80,
        thalweg.layout.option(thalweg.layout.F64, 16, 8, 8),
    )
    color: thalweg.layout.Field[Color] = thalweg.layout.field(96, _layout.COLOR)
    days: thalweg.layout.Field[Days] = thalweg.layout.field(98, _layout.DAYS)
    pair: thalweg.layout.Field[tuple[int, int]] = thalweg.layout.field(
        104,
        thalweg.layout.tuple_of(16, 8, (0, thalweg.layout.U8), (8, thalweg.layout.U64)),
    )
    name: thalweg.layout.Field[str | None] = thalweg.layout.field(
        120,
        thalweg.layout.option(thalweg.layout.STRING, 12, 4, 4),
    )
    corners: thalweg.layout.Field[list[Point]] = thalweg.layout.field(
        132,
        thalweg.layout.list_of(_layout.POINT),
    )
