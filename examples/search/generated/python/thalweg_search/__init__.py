# Written by `thalweg gen` from thalweg:search@0.1.0. Do not edit.
r"""Search a directory tree with ripgrep's own libraries.

A line ends in `\n`. Every count is a number of matching lines. Bytes that are not UTF-8 are
replaced by U+FFFD in the text, and a second field contains the original bytes.
"""

from .aio import AsyncQuery, AsyncSearch
from .client import Query, Search
from .types import (
    Match,
    Options,
    Progress,
    SearchError,
    SearchErrorDirectory,
    SearchErrorGlob,
    SearchErrorPattern,
)
from .views import MatchView, ProgressView

__all__ = [
    "AsyncQuery",
    "AsyncSearch",
    "Match",
    "MatchView",
    "Options",
    "Progress",
    "ProgressView",
    "Query",
    "Search",
    "SearchError",
    "SearchErrorDirectory",
    "SearchErrorGlob",
    "SearchErrorPattern",
]
