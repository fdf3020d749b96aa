# Written by `thalweg gen` from thalweg:conformance@0.1.0. Do not edit.
"""Records of thalweg:conformance@0.1.0 as batches of a stream give them."""

from __future__ import annotations

import thalweg.layout

from .types import Item


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
