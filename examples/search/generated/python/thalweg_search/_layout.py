# Written by `thalweg gen` from thalweg:search@0.1.0. Do not edit.
"""How the types of thalweg:search@0.1.0 lie in messages."""

from thalweg import layout

from .types import (
    Match,
    Options,
    Progress,
    SearchError,
    SearchErrorDirectory,
    SearchErrorGlob,
    SearchErrorPattern,
)

OPTIONS = layout.record(
    Options,
    12,
    4,
    ("fixed", 0, layout.BOOL),
    ("ignore_case", 1, layout.BOOL),
    ("hidden", 2, layout.BOOL),
    ("ignore_files", 3, layout.BOOL),
    ("globs", 4, layout.list_of(layout.STRING)),
)
MATCH = layout.record(
    Match,
    64,
    8,
    ("path", 0, layout.STRING),
    ("line", 8, layout.U64),
    ("column", 16, layout.U64),
    ("text", 24, layout.STRING),
    ("path_bytes", 32, layout.option(layout.BYTES, 12, 4, 4)),
    ("text_bytes", 44, layout.option(layout.BYTES, 12, 4, 4)),
    ("cut", 56, layout.BOOL),
)
PROGRESS = layout.record(
    Progress,
    48,
    8,
    ("files", 0, layout.U64),
    ("bytes", 8, layout.U64),
    ("matches", 16, layout.U64),
    ("unreadable", 24, layout.U64),
    ("problem", 32, layout.option(layout.STRING, 12, 4, 4)),
)
SEARCH_ERROR: layout.Kind[SearchError] = layout.variant(
    12,
    4,
    1,
    4,
    (SearchErrorPattern, layout.STRING),
    (SearchErrorGlob, layout.STRING),
    (SearchErrorDirectory, layout.STRING),
)
