# Written by `thalweg gen` from thalweg:lab@0.1.0. Do not edit.
"""What thalweg:lab@0.1.0 can be asked."""

from thalweg import layout

from . import _layout
from .views import (
    BytesPayloadView,
    EventView,
    MatchView,
    PulseView,
    ScalarsView,
    TickView,
)

PACKAGE = layout.Package("thalweg:lab", "0.1.0", 0x852995D6EA1A847F)

NOP = PACKAGE.method(
    "lab.nop",
    (0x651BCCB0340F0EF8, 0xAF64124C8602484E, 0, 0),
    (0, ()),
    None,
)

NOP_ASYNC = PACKAGE.method(
    "lab.nop-async",
    (0x651BCCB0340F0EF8, 0xAF64124C8602484E, 0, 0),
    (0, ()),
    None,
)

GENERATE = PACKAGE.stream_method(
    "lab.generate",
    (0x3BC93270EA6E6686, 0x439252368C6F876C, 0, 0xC2BC292635916F6C),
    (8, (("count", 0, layout.U64),)),
    _layout.MATCH,
    MatchView,
)

EVENTS = PACKAGE.stream_method(
    "lab.events",
    (0x4F4395A6E2A20856, 0x26DE68C9DC8573CA, 0, 0xAFEA62F75D7A5CE6),
    (16, (("count", 0, layout.U64), ("batch", 8, layout.U32))),
    _layout.EVENT,
    EventView,
)

TICKS = PACKAGE.stream_method(
    "lab.ticks",
    (0x4F4395A6E2A20856, 0xF218BDB5DE96D54E, 0, 0xAFD5CF084A580546),
    (16, (("count", 0, layout.U64), ("batch", 8, layout.U32))),
    _layout.TICK,
    TickView,
)

HEARTBEAT = PACKAGE.stream_method(
    "lab.heartbeat",
    (0x861D028DAF47F4AB, 0xF218BDB5DE96D54E, 0, 0xAFD5CF084A580546),
    (16, (("count", 0, layout.U64), ("period_us", 8, layout.U64))),
    _layout.TICK,
    TickView,
)

PULSES = PACKAGE.stream_method(
    "lab.pulses",
    (0x4F4395A6E2A20856, 0xE3EEF521D5312605, 0, 0x1A0A16B4CA96E05F),
    (16, (("count", 0, layout.U64), ("batch", 8, layout.U32))),
    _layout.PULSE,
    PulseView,
)

FEED = PACKAGE.stream_method(
    "lab.feed",
    (0x3993FF546FA25E97, 0x26DE68C9DC8573CA, 0, 0xAFEA62F75D7A5CE6),
    (
        32,
        (
            ("count", 0, layout.U64),
            ("batch", 8, layout.U32),
            ("writers", 12, layout.U32),
            ("tails", 16, layout.U32),
            ("per_s", 24, layout.U64),
        ),
    ),
    _layout.EVENT,
    EventView,
)

EVENTS_IN256 = PACKAGE.stream_method(
    "lab.events-in256",
    (0x4F4395A6E2A20856, 0x26DE68C9DC8573CA, 0, 0xAFEA62F75D7A5CE6),
    (16, (("count", 0, layout.U64), ("batch", 8, layout.U32))),
    _layout.EVENT,
    EventView,
)

EVENTS_IN1024 = PACKAGE.stream_method(
    "lab.events-in1024",
    (0x4F4395A6E2A20856, 0x26DE68C9DC8573CA, 0, 0xAFEA62F75D7A5CE6),
    (16, (("count", 0, layout.U64), ("batch", 8, layout.U32))),
    _layout.EVENT,
    EventView,
)

PARITY = PACKAGE.method(
    "lab.parity",
    (0x35F6E4610A1A0A97, 0xCD2FD49BC6B014BD, 0, 0),
    (24, (("a", 0, layout.S64), ("b", 8, layout.S64), ("x", 16, layout.F64))),
    layout.BOOL,
)

PAYLOAD = PACKAGE.method(
    "lab.payload",
    (0x587C313435DEB21B, 0xCD2FD49BC6B014BD, 0, 0),
    (8, (("data", 0, layout.BYTES),)),
    layout.BOOL,
)

PARITIES = PACKAGE.stream_method(
    "lab.parities",
    (0x3BC93270EA6E6686, 0x0C837DEF2AA813E1, 0, 0x35F6E4610A1A0A97),
    (8, (("count", 0, layout.U64),)),
    _layout.SCALARS,
    ScalarsView,
)

PAYLOADS = PACKAGE.stream_method(
    "lab.payloads",
    (0x4154656799C1DEAB, 0x44E25F94654AC679, 0, 0x587C313435DEB21B),
    (16, (("count", 0, layout.U64), ("size", 8, layout.U32))),
    _layout.BYTES_PAYLOAD,
    BytesPayloadView,
)
