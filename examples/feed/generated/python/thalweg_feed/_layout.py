# Written by `thalweg gen` from thalweg:feed@0.1.0. Do not edit.
"""How the types of thalweg:feed@0.1.0 lie in messages."""

from thalweg import layout

from .types import Event, Kind, Level

KIND = layout.enumeration(Kind, 1)
LEVEL = layout.record(Level, 16, 8, ("price", 0, layout.S64), ("size", 8, layout.U64))
EVENT = layout.record(
    Event,
    488,
    8,
    ("number", 0, layout.U64),
    ("at_ns", 8, layout.U64),
    ("symbol", 16, layout.U32),
    ("kind", 20, KIND),
    ("price", 24, layout.S64),
    ("size", 32, layout.U64),
    ("bids", 40, layout.array_of(LEVEL, 14)),
    ("asks", 264, layout.array_of(LEVEL, 14)),
)
