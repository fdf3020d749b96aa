# Written by `thalweg gen` from thalweg:lab@0.1.0. Do not edit.
"""Records of thalweg:lab@0.1.0 as batches of a stream give them."""

from __future__ import annotations

import thalweg.layout

from .types import Match


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
