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

PACKAGE = layout.Package("thalweg:lab", "0.1.0", 0xC52EC832A1A49749)

NOP = PACKAGE.method("lab.nop", ("record{}", "_", "", ""), (0, ()), None)

NOP_ASYNC = PACKAGE.method("lab.nop-async", ("record{}", "_", "", ""), (0, ()), None)

GENERATE = PACKAGE.stream_method(
    "lab.generate",
    (
        "record{count:u64}",
        "stream<record{path:string,line:u64,column:u64,text:string,path-bytes:option<list<u8>>,text-bytes:option<list<u8>>,cut:bool}>",
        "",
        "record{path:string,line:u64,column:u64,text:string,path-bytes:option<list<u8>>,text-bytes:option<list<u8>>,cut:bool}",
    ),
    (8, (("count", 0, layout.U64),)),
    _layout.MATCH,
    MatchView,
)

EVENTS = PACKAGE.stream_method(
    "lab.events",
    (
        "record{count:u64,batch:u32}",
        "stream<record{words:list<u64,56>,rest0:u64,rest1:u64,rest2:u64,detail:string,payload:list<u8>}>",
        "",
        "record{words:list<u64,56>,rest0:u64,rest1:u64,rest2:u64,detail:string,payload:list<u8>}",
    ),
    (16, (("count", 0, layout.U64), ("batch", 8, layout.U32))),
    _layout.EVENT,
    EventView,
)

TICKS = PACKAGE.stream_method(
    "lab.ticks",
    (
        "record{count:u64,batch:u32}",
        "stream<record{number:u64,at:u64,bid:u64,ask:u64,bid-size:u64,ask-size:u64,last:u64,volume:u64}>",
        "",
        "record{number:u64,at:u64,bid:u64,ask:u64,bid-size:u64,ask-size:u64,last:u64,volume:u64}",
    ),
    (16, (("count", 0, layout.U64), ("batch", 8, layout.U32))),
    _layout.TICK,
    TickView,
)

HEARTBEAT = PACKAGE.stream_method(
    "lab.heartbeat",
    (
        "record{count:u64,period-us:u64}",
        "stream<record{number:u64,at:u64,bid:u64,ask:u64,bid-size:u64,ask-size:u64,last:u64,volume:u64}>",
        "",
        "record{number:u64,at:u64,bid:u64,ask:u64,bid-size:u64,ask-size:u64,last:u64,volume:u64}",
    ),
    (16, (("count", 0, layout.U64), ("period_us", 8, layout.U64))),
    _layout.TICK,
    TickView,
)

PULSES = PACKAGE.stream_method(
    "lab.pulses",
    (
        "record{count:u64,batch:u32}",
        "stream<record{number:u64,kind:u64}>",
        "",
        "record{number:u64,kind:u64}",
    ),
    (16, (("count", 0, layout.U64), ("batch", 8, layout.U32))),
    _layout.PULSE,
    PulseView,
)

FEED = PACKAGE.stream_method(
    "lab.feed",
    (
        "record{count:u64,batch:u32,writers:u32,tails:u32,per-s:u64}",
        "stream<record{words:list<u64,56>,rest0:u64,rest1:u64,rest2:u64,detail:string,payload:list<u8>}>",
        "",
        "record{words:list<u64,56>,rest0:u64,rest1:u64,rest2:u64,detail:string,payload:list<u8>}",
    ),
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

FEED_AT_ONCE = PACKAGE.stream_method(
    "lab.feed-at-once",
    (
        "record{count:u64,batch:u32,writers:u32,tails:u32,per-s:u64}",
        "stream<record{words:list<u64,56>,rest0:u64,rest1:u64,rest2:u64,detail:string,payload:list<u8>}>",
        "",
        "record{words:list<u64,56>,rest0:u64,rest1:u64,rest2:u64,detail:string,payload:list<u8>}",
    ),
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
    (
        "record{count:u64,batch:u32}",
        "stream<record{words:list<u64,56>,rest0:u64,rest1:u64,rest2:u64,detail:string,payload:list<u8>}>",
        "",
        "record{words:list<u64,56>,rest0:u64,rest1:u64,rest2:u64,detail:string,payload:list<u8>}",
    ),
    (16, (("count", 0, layout.U64), ("batch", 8, layout.U32))),
    _layout.EVENT,
    EventView,
)

EVENTS_IN1024 = PACKAGE.stream_method(
    "lab.events-in1024",
    (
        "record{count:u64,batch:u32}",
        "stream<record{words:list<u64,56>,rest0:u64,rest1:u64,rest2:u64,detail:string,payload:list<u8>}>",
        "",
        "record{words:list<u64,56>,rest0:u64,rest1:u64,rest2:u64,detail:string,payload:list<u8>}",
    ),
    (16, (("count", 0, layout.U64), ("batch", 8, layout.U32))),
    _layout.EVENT,
    EventView,
)

PARITY = PACKAGE.method(
    "lab.parity",
    ("record{a:s64,b:s64,x:f64}", "bool", "", ""),
    (24, (("a", 0, layout.S64), ("b", 8, layout.S64), ("x", 16, layout.F64))),
    layout.BOOL,
)

PAYLOAD = PACKAGE.method(
    "lab.payload",
    ("record{data:list<u8>}", "bool", "", ""),
    (8, (("data", 0, layout.BYTES),)),
    layout.BOOL,
)

PARITIES = PACKAGE.stream_method(
    "lab.parities",
    (
        "record{count:u64}",
        "stream<record{a:s64,b:s64,x:f64}>",
        "",
        "record{a:s64,b:s64,x:f64}",
    ),
    (8, (("count", 0, layout.U64),)),
    _layout.SCALARS,
    ScalarsView,
)

PAYLOADS = PACKAGE.stream_method(
    "lab.payloads",
    (
        "record{count:u64,size:u32}",
        "stream<record{data:list<u8>}>",
        "",
        "record{data:list<u8>}",
    ),
    (16, (("count", 0, layout.U64), ("size", 8, layout.U32))),
    _layout.BYTES_PAYLOAD,
    BytesPayloadView,
)
