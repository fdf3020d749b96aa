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
