# Written by `thalweg gen` from thalweg:feed@0.1.0. Do not edit.
"""What thalweg:feed@0.1.0 can be asked."""

from thalweg import layout

from . import _layout
from .views import EventView

PACKAGE = layout.Package("thalweg:feed", "0.1.0", 0x0898AB8C98348E4F)

ALL = PACKAGE.stream_method(
    "feed.all",
    (0x3BC93270EA6E6686, 0x1925F896516AD388, 0, 0xA41223DD4966EC14),
    (8, (("count", 0, layout.U64),)),
    _layout.EVENT,
    EventView,
)

RECENT = PACKAGE.stream_method(
    "feed.recent",
    (0x3BC93270EA6E6686, 0x1925F896516AD388, 0, 0xA41223DD4966EC14),
    (8, (("count", 0, layout.U64),)),
    _layout.EVENT,
    EventView,
)

NEWEST = PACKAGE.stream_method(
    "feed.newest",
    (0x3BC93270EA6E6686, 0x1925F896516AD388, 0, 0xA41223DD4966EC14),
    (8, (("count", 0, layout.U64),)),
    _layout.EVENT,
    EventView,
)
