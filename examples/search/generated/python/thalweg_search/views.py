# Written by `thalweg gen` from thalweg:search@0.1.0. Do not edit.
"""Records of thalweg:search@0.1.0 as batches of a stream give them."""

from __future__ import annotations

import thalweg.layout

from .types import Match, Progress


class MatchView(thalweg.View[Match]):
    """A `Match` in a batch. Its fields raise once that is released."""

    __slots__ = ()

    path: thalweg.layout.Field[str] = thalweg.layout.field(0, thalweg.layout.STRING)
    """Path of the file, below the directory that was searched and beginning with it."""
    line: thalweg.layout.Field[int] = thalweg.layout.field(8, thalweg.layout.U64)
    """The line's number, from 1."""
    column: thalweg.layout.Field[int] = thalweg.layout.field(16, thalweg.layout.U64)
    """Byte of the line at which the first match begins, from 1."""
    text: thalweg.layout.Field[str] = thalweg.layout.field(24, thalweg.layout.STRING)
    """The line without its end, at most 65,536 bytes of it."""
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


class ProgressView(thalweg.View[Progress]):
    """A `Progress` in a batch. Its fields raise once that is released."""

    __slots__ = ()

    files: thalweg.layout.Field[int] = thalweg.layout.field(0, thalweg.layout.U64)
    """Files searched."""
    bytes: thalweg.layout.Field[int] = thalweg.layout.field(8, thalweg.layout.U64)
    """Bytes in them."""
    matches: thalweg.layout.Field[int] = thalweg.layout.field(16, thalweg.layout.U64)
    """Lines that matched."""
    unreadable: thalweg.layout.Field[int] = thalweg.layout.field(24, thalweg.layout.U64)
    """Files and directories that could not be read."""
    problem: thalweg.layout.Field[str | None] = thalweg.layout.field(
        32,
        thalweg.layout.option(thalweg.layout.STRING, 12, 4, 4),
    )
    """The last of them, and why."""
