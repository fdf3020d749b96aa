# Written by `thalweg gen` from thalweg:echo@0.1.0. Do not edit.
"""Records of thalweg:echo@0.1.0 as batches of a stream give them."""

from __future__ import annotations

import thalweg.layout

from .types import Tick


class TickView(thalweg.View[Tick]):
    """A `Tick` in a batch. Its fields raise once that is released."""

    __slots__ = ()

    number: thalweg.layout.Field[int] = thalweg.layout.field(0, thalweg.layout.U32)
    """Number of the tick, counted from 1."""
    late_ns: thalweg.layout.Field[int] = thalweg.layout.field(8, thalweg.layout.U64)
    """Delay in nanoseconds between the scheduled time and the actual time. A timer never fires early."""
