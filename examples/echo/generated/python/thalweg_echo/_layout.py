# Written by `thalweg gen` from thalweg:echo@0.1.0. Do not edit.
"""How the types of thalweg:echo@0.1.0 lie in messages."""

from thalweg import layout

from .types import (
    ComplexRequest,
    ComplexResponse,
    Request,
    Response,
    Tick,
    TimerError,
    TimerErrorNoName,
    TimerErrorTooLong,
    TimerErrorTooShort,
)

REQUEST = layout.record(
    Request,
    12,
    4,
    ("message", 0, layout.STRING),
    ("delay_ms", 8, layout.U32),
)
RESPONSE = layout.record(
    Response,
    16,
    4,
    ("message", 0, layout.STRING),
    ("name", 8, layout.STRING),
)
COMPLEX_REQUEST = layout.record(
    ComplexRequest,
    48,
    8,
    ("messages", 0, layout.list_of(REQUEST)),
    ("tags", 8, layout.list_of(layout.STRING)),
    ("note", 16, layout.option(layout.STRING, 12, 4, 4)),
    ("retries", 32, layout.option(layout.S64, 16, 8, 8)),
)
COMPLEX_RESPONSE = layout.record(
    ComplexResponse,
    24,
    8,
    ("summary", 0, layout.STRING),
    ("item_count", 8, layout.U64),
    ("has_note", 16, layout.BOOL),
)
TICK = layout.record(Tick, 16, 8, ("number", 0, layout.U32), ("late_ns", 8, layout.U64))
TIMER_ERROR: layout.Kind[TimerError] = layout.variant(
    8,
    4,
    1,
    4,
    (TimerErrorNoName, None),
    (TimerErrorTooLong, layout.U32),
    (TimerErrorTooShort, None),
)
