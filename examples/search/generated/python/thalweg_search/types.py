# Written by `thalweg gen` from thalweg:search@0.1.0. Do not edit.
"""The types of thalweg:search@0.1.0."""

from __future__ import annotations

from dataclasses import dataclass

import thalweg


@dataclass(frozen=True, slots=True)
class Options:
    """What a query looks for and where it looks."""

    fixed: bool
    """The pattern is plain text, not a regular expression."""
    ignore_case: bool
    """Upper and lower case are the same."""
    hidden: bool
    """Also look at files and directories whose name begins with a dot."""
    ignore_files: bool
    """Obey `.gitignore` and `.ignore` files found in the tree."""
    globs: list[str]
    """Only paths that match one of these globs; one that begins with `!` excludes."""


@dataclass(frozen=True, slots=True)
class Match:
    """One line that matched."""

    path: str
    """Path of the file, below the directory that was searched and beginning with it."""
    line: int
    """The line's number, from 1."""
    column: int
    """Byte of the line at which the first match begins, from 1."""
    text: str
    """The line without its end, at most 65,536 bytes of it."""
    path_bytes: bytes | None
    """The path's bytes, where they are not UTF-8."""
    text_bytes: bytes | None
    """The text's bytes, where they are not UTF-8."""
    cut: bool
    """The line was longer than `text` holds."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the searches of a query have come."""

    files: int
    """Files searched."""
    bytes: int
    """Bytes in them."""
    matches: int
    """Lines that matched."""
    unreadable: int
    """Files and directories that could not be read."""
    problem: str | None = None
    """The last of them, and why."""


class SearchError(thalweg.ServiceError):
    """Why a search could not begin."""


class SearchErrorPattern(SearchError):
    """The pattern is not a regular expression: what is wrong with it."""

    payload: str


class SearchErrorGlob(SearchError):
    """A glob is not one: which, and why."""

    payload: str


class SearchErrorDirectory(SearchError):
    """The directory is not there, is not a directory, or may not be read."""

    payload: str
