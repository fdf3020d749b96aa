# Written by `thalweg gen` from thalweg:feed@0.1.0. Do not edit.
"""What thalweg:feed@0.1.0 can be asked."""

from thalweg import layout

from . import _layout
from .views import EventView

PACKAGE = layout.Package("thalweg:feed", "0.1.0", 0x0898AB8C98348E4F)

ALL = PACKAGE.stream_method(
    "feed.all",
    (
        "record{count:u64}",
        "stream<record{number:u64,at-ns:u64,symbol:u32,kind:enum{quote,trade,halt},price:s64,size:u64,bids:list<record{price:s64,size:u64},14>,asks:list<record{price:s64,size:u64},14>}>",
        "",
        "record{number:u64,at-ns:u64,symbol:u32,kind:enum{quote,trade,halt},price:s64,size:u64,bids:list<record{price:s64,size:u64},14>,asks:list<record{price:s64,size:u64},14>}",
    ),
    (8, (("count", 0, layout.U64),)),
    _layout.EVENT,
    EventView,
)

RECENT = PACKAGE.stream_method(
    "feed.recent",
    (
        "record{count:u64}",
        "stream<record{number:u64,at-ns:u64,symbol:u32,kind:enum{quote,trade,halt},price:s64,size:u64,bids:list<record{price:s64,size:u64},14>,asks:list<record{price:s64,size:u64},14>}>",
        "",
        "record{number:u64,at-ns:u64,symbol:u32,kind:enum{quote,trade,halt},price:s64,size:u64,bids:list<record{price:s64,size:u64},14>,asks:list<record{price:s64,size:u64},14>}",
    ),
    (8, (("count", 0, layout.U64),)),
    _layout.EVENT,
    EventView,
)

NEWEST = PACKAGE.stream_method(
    "feed.newest",
    (
        "record{count:u64}",
        "stream<record{number:u64,at-ns:u64,symbol:u32,kind:enum{quote,trade,halt},price:s64,size:u64,bids:list<record{price:s64,size:u64},14>,asks:list<record{price:s64,size:u64},14>}>",
        "",
        "record{number:u64,at-ns:u64,symbol:u32,kind:enum{quote,trade,halt},price:s64,size:u64,bids:list<record{price:s64,size:u64},14>,asks:list<record{price:s64,size:u64},14>}",
    ),
    (8, (("count", 0, layout.U64),)),
    _layout.EVENT,
    EventView,
)
