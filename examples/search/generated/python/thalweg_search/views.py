# Written by `thalweg gen` from thalweg:search@0.1.0. Do not edit.
"""Records of thalweg:search@0.1.0 as batches of a stream give them."""

from __future__ import annotations

import thalweg.layout

from .types import Match, Progress


class MatchView(thalweg.View[Match]):
    """A `Match` in a batch. Its fields raise once that is released."""

    __slots__ = ()

    path: thalweg.layout.Field[str] = thalweg.layout.field(0, thalweg.layout.STRING)
    """The path of the file, which begins with the searched directory."""
    line: thalweg.layout.Field[int] = thalweg.layout.field(8, thalweg.layout.U64)
    """The line number, counted from 1."""
    column: thalweg.layout.Field[int] = thalweg.layout.field(16, thalweg.layout.U64)
    """The byte of the line at which the first match begins, counted from 1."""
    text: thalweg.layout.Field[str] = thalweg.layout.field(24, thalweg.layout.STRING)
    """The line without its end, cut off at 65,536 bytes."""
    path_bytes: thalweg.layout.Field[bytes | None] = thalweg.layout.field(
        32,
        thalweg.layout.option(thalweg.layout.BYTES, 12, 4, 4),
    )
    """The bytes of the path, if they are not UTF-8."""
    text_bytes: thalweg.layout.Field[bytes | None] = thalweg.layout.field(
        44,
        thalweg.layout.option(thalweg.layout.BYTES, 12, 4, 4),
    )
    """The bytes of the text, if they are not UTF-8."""
    cut: thalweg.layout.Field[bool] = thalweg.layout.field(56, thalweg.layout.BOOL)
    """The line is longer than `text`."""


class ProgressView(thalweg.View[Progress]):
    """A `Progress` in a batch. Its fields raise once that is released."""

    __slots__ = ()

    files: thalweg.layout.Field[int] = thalweg.layout.field(0, thalweg.layout.U64)
    """Number of searched files."""
    bytes: thalweg.layout.Field[int] = thalweg.layout.field(8, thalweg.layout.U64)
    """Number of bytes in these files."""
    matches: thalweg.layout.Field[int] = thalweg.layout.field(16, thalweg.layout.U64)
    """Number of matching lines."""
    unreadable: thalweg.layout.Field[int] = thalweg.layout.field(24, thalweg.layout.U64)
    """Number of files and directories that could not be read."""
    problem: thalweg.layout.Field[str | None] = thalweg.layout.field(
        32,
        thalweg.layout.option(thalweg.layout.STRING, 12, 4, 4),
    )
    """The last unreadable path, with the reason."""
