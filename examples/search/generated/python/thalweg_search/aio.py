# Written by `thalweg gen` from thalweg:search@0.1.0. Do not edit.
"""The client of thalweg:search@0.1.0 for asyncio."""

from __future__ import annotations

from os import PathLike
from typing import Self

import thalweg

from . import _methods
from .types import Match, Options, Progress
from .views import MatchView, ProgressView


class AsyncQuery(thalweg.AsyncResource):
    """A compiled pattern with the directory to search. It can be used for several searches."""

    __slots__ = ()

    async def progress(
        self,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[Progress, ProgressView]:
        """The progress of all searches of this query from now on. A slow reader gets only the newest
        state.

        The stream holds one unread record; a newer record replaces it, which is counted.
        """
        return await _methods.QUERY_PROGRESS.start(self, timeout, self)


class AsyncSearch(thalweg.AsyncClient):
    r"""Search a directory tree with ripgrep's own libraries.

    A line ends in `\n`. Every count is a number of matching lines. Bytes that are not UTF-8 are
    replaced by U+FFFD in the text, and a second field contains the original bytes.

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

    async def query(
        self,
        pattern: str,
        dir: str,
        options: Options,
        *,
        timeout: float | None = None,
    ) -> AsyncQuery:
        """A new `AsyncQuery`.

        Raises `SearchError`.
        """
        return await _methods.QUERY.start_make(
            AsyncQuery,
            self,
            timeout,
            pattern,
            dir,
            options,
        )

    async def count(
        self,
        pattern: str,
        dir: str,
        *,
        timeout: float | None = None,
    ) -> int:
        """The number of lines below `dir` that match a regular expression. Hidden files are searched, and
        ignore files are not obeyed.

        Raises `SearchError`.
        """
        return await _methods.COUNT.start(self, timeout, pattern, dir)

    async def matches(
        self,
        query: AsyncQuery,
        *,
        timeout: float | None = None,
    ) -> thalweg.AsyncStream[Match, MatchView]:
        """The matching lines. The lines of one file are in order. The stream ends with the search.

        The stream holds 8192 unread records; when it is full, the writer waits.

        Raises `SearchError`.
        """
        return await _methods.MATCHES.start(self, timeout, query)

    async def escape(self, text: str, *, timeout: float | None = None) -> str:
        """A regular expression that matches exactly this text."""
        return await _methods.ESCAPE.start(self, timeout, text)
