# Written by `thalweg gen` from thalweg:lab@0.1.0. Do not edit.
"""What thalweg:lab@0.1.0 can be asked."""

from thalweg import layout

from . import _layout
from .views import EventView, MatchView

PACKAGE = layout.Package("thalweg:lab", "0.1.0", 0xDA2D7BFADCCBB9C4)

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
