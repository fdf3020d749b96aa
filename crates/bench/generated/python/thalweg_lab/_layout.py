# Written by `thalweg gen` from thalweg:lab@0.1.0. Do not edit.
"""How the types of thalweg:lab@0.1.0 lie in messages."""

from thalweg import layout

from .types import Match

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
