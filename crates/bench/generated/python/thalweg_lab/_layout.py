# Written by `thalweg gen` from thalweg:lab@0.1.0. Do not edit.
"""How the types of thalweg:lab@0.1.0 lie in messages."""

from thalweg import layout

from .types import (
    BytesPayload,
    ComplexRequest,
    EchoRequest,
    EchoResponse,
    Event,
    Match,
    Pulse,
    Scalars,
    Tick,
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
EVENT = layout.record(
    Event,
    488,
    8,
    ("words", 0, layout.array_of(layout.U64, 56)),
    ("rest0", 448, layout.U64),
    ("rest1", 456, layout.U64),
    ("rest2", 464, layout.U64),
    ("detail", 472, layout.STRING),
    ("payload", 480, layout.BYTES),
)
TICK = layout.record(
    Tick,
    64,
    8,
    ("number", 0, layout.U64),
    ("at", 8, layout.U64),
    ("bid", 16, layout.U64),
    ("ask", 24, layout.U64),
    ("bid_size", 32, layout.U64),
    ("ask_size", 40, layout.U64),
    ("last", 48, layout.U64),
    ("volume", 56, layout.U64),
)
PULSE = layout.record(Pulse, 16, 8, ("number", 0, layout.U64), ("kind", 8, layout.U64))
SCALARS = layout.record(
    Scalars,
    24,
    8,
    ("a", 0, layout.S64),
    ("b", 8, layout.S64),
    ("x", 16, layout.F64),
)
ECHO_REQUEST = layout.record(
    EchoRequest,
    16,
    8,
    ("message", 0, layout.STRING),
    ("delay_ms", 8, layout.S64),
)
ECHO_RESPONSE = layout.record(
    EchoResponse,
    16,
    4,
    ("echoed", 0, layout.STRING),
    ("timer_name", 8, layout.STRING),
)
COMPLEX_REQUEST = layout.record(
    ComplexRequest,
    48,
    8,
    ("messages", 0, layout.list_of(ECHO_REQUEST)),
    ("tags", 8, layout.list_of(layout.STRING)),
    ("note", 16, layout.option(layout.STRING, 12, 4, 4)),
    ("retries", 32, layout.option(layout.S64, 16, 8, 8)),
)
BYTES_PAYLOAD = layout.record(BytesPayload, 8, 4, ("data", 0, layout.BYTES))
