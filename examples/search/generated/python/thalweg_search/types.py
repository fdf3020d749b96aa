# Written by `thalweg gen` from thalweg:search@0.1.0. Do not edit.
"""The types of thalweg:search@0.1.0."""

from __future__ import annotations

from dataclasses import dataclass

import thalweg


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a query."""

    fixed: bool
    """The pattern is plain text, not a regular expression."""
    ignore_case: bool
    """The search ignores case."""
    hidden: bool
    """Also search files and directories whose names begin with a dot."""
    ignore_files: bool
    """Obey the `.gitignore` and `.ignore` files in the tree."""
    globs: list[str]
    """Search only paths that match one of these globs. A glob that begins with `!` excludes paths."""


@dataclass(frozen=True, slots=True)
class Match:
    """A matching line."""

    path: str
    """The path of the file, which begins with the searched directory."""
    line: int
    """The line number, counted from 1."""
    column: int
    """The byte of the line at which the first match begins, counted from 1."""
    text: str
    """The line without its end, cut off at 65,536 bytes."""
    path_bytes: bytes | None
    """The bytes of the path, if they are not UTF-8."""
    text_bytes: bytes | None
    """The bytes of the text, if they are not UTF-8."""
    cut: bool
    """The line is longer than `text`."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of the searches of a query."""

    files: int
    """Number of searched files."""
    bytes: int
    """Number of bytes in these files."""
    matches: int
    """Number of matching lines."""
    unreadable: int
    """Number of files and directories that could not be read."""
    problem: str | None = None
    """The last unreadable path, with the reason."""


class SearchError(thalweg.ServiceError):
    """Why a search cannot begin."""


class SearchErrorPattern(SearchError):
    """The pattern is not a valid regular expression: the reason."""

    payload: str


class SearchErrorGlob(SearchError):
    """A glob is not valid: the glob and the reason."""

    payload: str


class SearchErrorDirectory(SearchError):
    """The directory does not exist, is not a directory, or cannot be read."""

    payload: str
