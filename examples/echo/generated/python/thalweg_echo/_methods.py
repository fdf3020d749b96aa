# Written by `thalweg gen` from thalweg:echo@0.1.0. Do not edit.
"""What thalweg:echo@0.1.0 can be asked."""

from thalweg import layout

from . import _layout
from .views import TickView

PACKAGE = layout.Package("thalweg:echo", "0.1.0", 0x85B23D4EFD1E2C0A)

TIMER = PACKAGE.resource_method(
    "echo.[constructor]timer",
    (
        "record{name:string}",
        "own<timer>",
        "variant{no-name,too-long(u32),too-short}",
        "",
    ),
    (8, (("name", 0, layout.STRING),)),
    _layout.TIMER_ERROR,
)

TIMER_ECHO = PACKAGE.method(
    "echo.[method]timer.echo",
    (
        "record{self:borrow<timer>,request:record{message:string,delay-ms:u32}}",
        "record{message:string,name:string}",
        "variant{no-name,too-long(u32),too-short}",
        "",
    ),
    (16, (("self_", 0, layout.BORROW), ("request", 4, _layout.REQUEST))),
    _layout.RESPONSE,
    _layout.TIMER_ERROR,
)

TIMER_COMPLEX = PACKAGE.method(
    "echo.[method]timer.complex",
    (
        "record{self:borrow<timer>,request:record{messages:list<record{message:string,delay-ms:u32}>,tags:list<string>,note:option<string>,retries:option<s64>}}",
        "record{summary:string,item-count:u64,has-note:bool}",
        "",
        "",
    ),
    (56, (("self_", 0, layout.BORROW), ("request", 8, _layout.COMPLEX_REQUEST))),
    _layout.COMPLEX_RESPONSE,
)

TIMER_SCHEDULE = PACKAGE.stream_method(
    "echo.[method]timer.schedule",
    (
        "record{self:borrow<timer>,every-ms:u32,times:u32}",
        "stream<record{number:u32,late-ns:u64}>",
        "variant{no-name,too-long(u32),too-short}",
        "record{number:u32,late-ns:u64}",
    ),
    (
        12,
        (
            ("self_", 0, layout.BORROW),
            ("every_ms", 4, layout.U32),
            ("times", 8, layout.U32),
        ),
    ),
    _layout.TICK,
    TickView,
    _layout.TIMER_ERROR,
)

VERSION = PACKAGE.method(
    "echo.version",
    ("record{}", "string", "", ""),
    (0, ()),
    layout.STRING,
)
