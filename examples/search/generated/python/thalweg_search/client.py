# Written by `thalweg gen` from thalweg:search@0.1.0. Do not edit.
"""The client of thalweg:search@0.1.0 for sync code."""

from __future__ import annotations

from os import PathLike
from typing import Self

import thalweg

from . import _methods
from .types import Match, Options, Progress
from .views import MatchView, ProgressView


class Query(thalweg.Resource):
    """A pattern compiled once and used often, with the directory it is used on."""

    __slots__ = ()

    def progress(
        self,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Progress, ProgressView]:
        """Progress of every search of this query from now on. A slow reader misses what was
        overtaken, never the newest.

        The stream holds one unread record; a newer record replaces it, which is counted.
        """
        return _methods.QUERY_PROGRESS.call(self, timeout, self)


class Search(thalweg.Client):
    r"""Search a directory tree with ripgrep's own libraries.

    A line is what ends in `\n`; the unit of every count is lines that match. Bytes that are not
    UTF-8 are replaced by U+FFFD in the text, and the bytes themselves stand beside it.

    A client has an instance of the service of its own. Every call takes `timeout`, in
    seconds, and raises `thalweg.TimedOut` when it is over.
    """

    __slots__ = ()

    @classmethod
    def open(cls, path: str | PathLike[str] | None = None) -> Self:
        """Opens a library, by default the one in this package, and makes a client of it.

        Raises `OSError` where it cannot be loaded and `thalweg.VersionMismatch` where it does
        not fit this package.
        """
        return cls._open(_methods.PACKAGE, thalweg.library_path(path, __file__))

    def query(
        self,
        pattern: str,
        dir: str,
        options: Options,
        *,
        timeout: float | None = None,
    ) -> Query:
        """A new `Query`.

        Raises `SearchError`.
        """
        return _methods.QUERY.make(Query, self, timeout, pattern, dir, options)

    def count(self, pattern: str, dir: str, *, timeout: float | None = None) -> int:
        """How many lines below `dir` match the regular expression, hidden files included, ignore files not obeyed.

        Raises `SearchError`.
        """
        return _methods.COUNT.call(self, timeout, pattern, dir)

    def matches(
        self,
        query: Query,
        *,
        timeout: float | None = None,
    ) -> thalweg.Stream[Match, MatchView]:
        """The lines that match, each file's in order. The stream ends with the search.

        The stream holds 8192 unread records; when it is full, the writer waits.

        Raises `SearchError`.
        """
        return _methods.MATCHES.call(self, timeout, query)

    def escape(self, text: str, *, timeout: float | None = None) -> str:
        """A regular expression that matches just this text."""
        return _methods.ESCAPE.call(self, timeout, text)
