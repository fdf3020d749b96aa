# Written by `thalweg gen` from thalweg:feed@0.1.0. Do not edit.
"""Records of thalweg:feed@0.1.0 as batches of a stream give them."""

from __future__ import annotations

import thalweg.layout

from . import _layout
from .types import Event, Kind, Level


class EventView(thalweg.View[Event]):
    """A `Event` in a batch. Its fields raise once that is released."""

    __slots__ = ()

    number: thalweg.layout.Field[int] = thalweg.layout.field(0, thalweg.layout.U64)
    """Number of the event, counted from 0."""
    at_ns: thalweg.layout.Field[int] = thalweg.layout.field(8, thalweg.layout.U64)
    """Nanoseconds since the market opened."""
    symbol: thalweg.layout.Field[int] = thalweg.layout.field(16, thalweg.layout.U32)
    kind: thalweg.layout.Field[Kind] = thalweg.layout.field(20, _layout.KIND)
    price: thalweg.layout.Field[int] = thalweg.layout.field(24, thalweg.layout.S64)
    """Price of the trade, or the best bid, in hundredths."""
    size: thalweg.layout.Field[int] = thalweg.layout.field(32, thalweg.layout.U64)
    bids: thalweg.layout.Field[list[Level]] = thalweg.layout.field(
        40,
        thalweg.layout.array_of(_layout.LEVEL, 14),
    )
    """Bids, best first."""
    asks: thalweg.layout.Field[list[Level]] = thalweg.layout.field(
        264,
        thalweg.layout.array_of(_layout.LEVEL, 14),
    )
